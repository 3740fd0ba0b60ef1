"""Owns what core tools need of the program around them: sessions, agents, other runs, itself.

Above: session, agent and gateway tools; `app`, which supplies the ports. Below: `sessions`,
`protocol`. Refuses to know: how a run is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio

from toolcell.base.jsontext import JsonObject
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sources.core.expecting import ExpectedReplies

SENT_CHANNEL = "sessions_send"
"""The channel of runs that `sessions_send` began; such a run cannot begin another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """One configured agent."""

    id: str
    model: str | None
    sandboxed: bool


@dataclass(slots=True, kw_only=True)
class SentTurn:
    """A run that was begun in another session. `done` is set when it is over."""

    run_id: str
    done: anyio.Event = field(default_factory=anyio.Event)
    reply: str = ""
    error: str | None = None


class SessionSender(Protocol):
    """Begins runs in other sessions."""

    async def start(self, sender: RunScope, session_id: str, message: str) -> SentTurn:
        """Begin a run that answers `message` in a session of the sender's agent.

        Raises:
            CallError: the session has a run already, or no run can be begun.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """One MCP server and how it stands."""

    name: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStatus:
    """How this process stands."""

    version: str
    uptime_seconds: float
    tools: int
    agents: Sequence[str]
    servers: Sequence[ServerInfo]
    unavailable: Sequence[str]
    counts: dict[str, int]


class Self(Protocol):
    """Tells of this very process."""

    def status(self) -> OwnStatus:
        """Return how it stands."""
        ...

    def config(self) -> JsonObject:
        """Return its config tree as JSON, secrets masked."""
        ...


def _no_agents() -> Sequence[AgentInfo]:
    return ()


def _nobody(_scope: RunScope) -> Sequence[str]:
    return ()


@dataclass(slots=True, kw_only=True)
class CorePorts:
    """What the program lends its core tools. `sender` may be named after the tools are made.

    Attributes:
        sessions: The record; None for no session tools.
        agents: Every configured agent.
        may_start: The agents that children of a run may run as.
        sender: Begins runs; None when nobody can.
        own: Tells of this process; None for no `openclaw` tool.
        expected: Where turns of conversations wait for replies that come in; None when none can.
    """

    sessions: Sessions | None = None
    agents: Callable[[], Sequence[AgentInfo]] = _no_agents
    may_start: Callable[[RunScope], Sequence[str]] = _nobody
    sender: SessionSender | None = None
    own: Self | None = None
    expected: ExpectedReplies | None = None


Role = Literal["system", "user", "assistant", "tool"]
