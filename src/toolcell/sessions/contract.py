"""Owns the port of a session store.

Above: the agent loop, the library face, the CLI. Below: `protocol`, `records`, `projections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from toolcell.protocol.events import Event
from toolcell.protocol.messages import Message
from toolcell.sessions.listing import SessionInfo, Trace
from toolcell.sessions.projections import CallNode
from toolcell.sessions.records import Record
from toolcell.sessions.search import Found, Wanted

MAX_VALUE_BYTES = 256 << 10
"""Arguments, results, code and errors are recorded up to about this size each."""


class Sessions(Protocol):
    """Keeps events and reads them back. It is a `Sink`; reads see everything emitted before."""

    def emit(self, event: Event) -> None:
        """Take one event; never blocks, never raises."""
        ...

    async def flush(self) -> None:
        """Return when everything emitted so far is committed.

        Raises:
            SessionError: something could not be written; says what and why.
        """
        ...

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return the whole conversation; empty for an unknown session."""
        ...

    async def events(
        self,
        session_id: str,
        *,
        types: Sequence[str] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Record]:
        """Return records in order, from behind the record `after`; only of `types`, where given."""
        ...

    async def tree(self, session_id: str) -> tuple[CallNode, ...]:
        """Return the tool calls of a session, nested ones under their parent (rule 8.3)."""
        ...

    async def list_sessions(self, *, limit: int = 100) -> Sequence[SessionInfo]:
        """Return sessions, the last used first."""
        ...

    async def info(self, session_id: str) -> SessionInfo | None:
        """Return what a listing says of one session; None when there is no such session."""
        ...

    async def trace(self, session_id: str) -> Trace:
        """Return everything that is kept of a session.

        Raises:
            SessionError: there is no such session.
        """
        ...

    async def search(self, wanted: Wanted) -> Found:
        """Return sessions in which one message holds all of some words."""
        ...

    async def delete(self, session_id: str) -> Sequence[str]:
        """Forget a session and those of its children; returns the ids of what was forgotten.

        Raises:
            SessionError: there is no such session, or it cannot be deleted.
        """
        ...

    async def show(self, session_id: str) -> dict[str, Any]:
        """Return `{session, transcript, calls}` as plain JSON data.

        Raises:
            SessionError: there is no such session.
        """
        ...
