"""Owns what is done to a whole session, while no run goes on in it: forget it, compact it.

Above: `runs`, the routes. Below: `lines`, `app.compacting`, `sessions`. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from toolcell.app.compacting import CompactingPorts, compacted
from toolcell.app.runtime import Runtime
from toolcell.base.identifiers import fresh
from toolcell.errors import ConfigError
from toolcell.gateway.faults import conflict, invalid, not_found
from toolcell.gateway.lines import SessionLines
from toolcell.sessions.contract import Sessions

_DELETION: Final = "deletion"
_COMPACTION: Final = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskPorts:
    """What it asks of the desk of the runs.

    Attributes:
        room: Raises when too much goes on already.
        busy: Says why a session is not free, from its id and what holds it.
        forget: Drops what is remembered of sessions.
    """

    room: Callable[[], None]
    busy: Callable[[str, str], str]
    forget: Callable[[Sequence[str]], None]


class SessionDesk:
    """One per gateway.

    Attributes:
        compacting: How many sessions are being compacted.
    """

    def __init__(
        self, runtime: Runtime, sessions: Sessions, lines: SessionLines, ports: DeskPorts
    ) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._lines = lines
        self._ports = ports
        self.compacting = 0

    async def delete(self, session_id: str) -> Sequence[str]:
        """Forget a session: its record, its children and what they came to.

        Returns:
            The ids of what was forgotten: the session's, and those of its children's.

        Raises:
            ApiError: 404, or 409 when a run goes on in it.
            SessionError: the record cannot be changed.
        """
        swarm = self._runtime.swarming
        async with self._alone(session_id, _DELETION):
            await swarm.archive_session(session_id)
            gone = await self._sessions.delete(session_id)
            for each in gone:
                await swarm.archive_session(each)
            self._ports.forget(gone)
            return gone

    async def compact(self, session_id: str, model: str | None) -> dict[str, Any] | None:
        """Put a summary in the place of a session's older messages.

        Args:
            session_id: The session.
            model: `provider/model` that writes it; the agent's own when None.

        Returns:
            What was done, as plain JSON data; None when nothing is older.

        Raises:
            ApiError: 404; 409 when a run goes on in it; 429 when too much goes on; 400 for a model
                that cannot be had.
            ConfigError: the agent has no model that can be had.
            ProviderError: the model wrote no summary; nothing has changed.
            SessionError: the record cannot be read or changed.
        """
        self._ports.room()
        ports = CompactingPorts(
            config=self._runtime.config,
            sessions=self._sessions,
            providers=self._runtime.providers,
            sink=self._runtime.sink,
            clock=self._runtime.host.clock,
        )
        self.compacting += 1
        try:
            async with self._alone(session_id, _COMPACTION):
                done = await compacted(ports, session_id=session_id, model=model, channel="http")
                await self._sessions.flush()
                return done
        except ConfigError as error:
            if model is None:
                raise
            raise invalid(error.message, param="model") from error
        finally:
            self.compacting -= 1

    @asynccontextmanager
    async def _alone(self, session_id: str, why: str) -> AsyncIterator[None]:
        """Have a session to itself for the body of the `async with`: no run begins meanwhile.

        Raises:
            ApiError: 404, or 409 when a run goes on in it.
        """
        holder = self._lines.holder(session_id)
        if holder is not None:
            raise conflict(self._ports.busy(session_id, holder), "session_busy")
        if self._runtime.swarming.runs_in(session_id):
            message = f"a child agent is at work in session {session_id!r}; end its parent's run"
            raise conflict(message, "session_busy")
        mark = fresh(why)
        self._lines.enter(session_id, mark)
        try:
            if await self._sessions.info(session_id) is None:
                raise not_found("no such session; GET /api/sessions lists what there is")
            yield
        finally:
            self._lines.leave(session_id, mark)


def doing(mark: str) -> str:
    """Return what is done to the session that `mark` holds."""
    return "deleted" if mark.startswith(_DELETION) else "compacted"
