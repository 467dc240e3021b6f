"""``python -m fake_acp_server``: the command line of the fake agent."""

from __future__ import annotations

from fake_acp_server.cli import main

if __name__ == "__main__":
    main()
