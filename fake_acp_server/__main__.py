"""The command line of the fake agent: ``python -m fake_acp_server``, or ``python PATH/TO/fake_acp_server``.

The second form needs neither an installation nor a certain working directory nor PYTHONPATH: it is for
starting the fake through somebody else's program, which may change the last two.
"""

from __future__ import annotations

import os
import sys

if not __package__:
    # Python put this folder first; our own parent belongs there.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from fake_acp_server.cli import main

if __name__ == "__main__":
    main()
