"""A scriptable ACP v1 agent for testing ACP clients.

It owns one side of the wire: an agent on stdin and stdout whose every word, fault and process habit is told
by a *scenario*. It promises that each frame it sends is valid ACP unless the scenario says otherwise, that it
starts within tens of milliseconds (the standard library only, and little of it), and that it goes away by
itself when it is forgotten. It knows nothing of any client: how a client judges what it sees is left to the
client's tests.

Start it with ``python -m fake_acp_server --scenario NAME`` or ``fake-acp-server --scenario NAME``.
"""

__version__ = "0.1.0"
