"""A whole client as a command, for the tests of ``check``: ``plain_client.py CONDUCT AGENT [ARG ...]``.

``CONDUCT``: ``good``, ``rude`` (two prompts at once), ``hasty`` (owes an answer), ``asleep``, ``deaf``.
"""

from __future__ import annotations

import os
import sys
import time

from tests.fake.driver import Fake
from tests.fake.visitor import Visit, leave


def main(conduct: str, agent: list[str]) -> None:
    """Have one conversation with the agent."""
    if conduct == "deaf":
        return
    if conduct == "asleep":
        time.sleep(600)
    with Fake(agent) as fake:
        if conduct == "good":
            Visit(fake).run()
        elif conduct == "hasty":
            fake.prompt(fake.open_session())
            fake.read_request()
            os._exit(0)
        else:
            session = fake.open_session()
            fake.prompt(session)
            fake.prompt(session)
        leave(fake)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
