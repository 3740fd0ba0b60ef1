"""Owns `RunScope`: who a run acts for. Carried by every call, hook, event and continuation.

Above: everything that runs. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_AGENT = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """The identity of one run (rule 8.1).

    Attributes:
        agent_id: The agent whose configuration applies.
        session_id: The session the run belongs to.
        session_key: The stable key of the session, such as `agent:main:main`.
        run_id: This run; a parked cell may only be resumed within it (rule 3.7).
        sender: Who asked, where a channel knows.
        channel: Where the request came from, such as `cli` or `http`.
        sandboxed: Whether the sandbox tool policy applies.
    """

    agent_id: str
    session_id: str
    session_key: str
    run_id: str
    sender: str | None = None
    channel: str | None = None
    sandboxed: bool = False
