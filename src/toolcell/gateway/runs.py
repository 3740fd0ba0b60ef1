"""Owns `RunDesk`: starts runs, finds them, cancels them, and lets one run at a time into a session.

Above: the routes, `service`. Below: `live`, `session_desk`, `app.conversation`. Refuses to know:
HTTP, wires.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import anyio

from toolcell.app.conversation import Turn, converse
from toolcell.app.runtime import Runtime
from toolcell.errors import SessionError, ToolcellError
from toolcell.gateway.faults import ApiError, conflict, draining, not_found, overloaded
from toolcell.gateway.lines import SessionLines
from toolcell.gateway.live import LiveRun
from toolcell.gateway.session_desk import DeskPorts, SessionDesk, doing
from toolcell.protocol.events import Diagnostic, Event
from toolcell.sessions.contract import Sessions

MAX_FINISHED: Final = 1024
"""How many runs that are over can still be asked about."""
MAX_OWNERS: Final = 65_536
MAX_WAITING: Final = 16
"""How many runs may wait for their turn in one session."""


@dataclass(slots=True)
class Counts:
    """Runs so far, by how they ended."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0


class RunDesk:
    """Every run of the gateway.

    Args:
        runtime: Runs them.
        sessions: Keeps their record.
        max_runs: How many may go on at once.

    Attributes:
        counts: Runs so far.
        whole: What is done to whole sessions.
    """

    def __init__(self, runtime: Runtime, sessions: Sessions, *, max_runs: int) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._max_runs = max_runs
        self._live: dict[str, LiveRun] = {}
        self._finished: OrderedDict[str, LiveRun] = OrderedDict()
        self._lines = SessionLines()
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._calls: dict[str, str] = {}
        self._draining = False
        self._idle = anyio.Event()
        self.counts = Counts()
        self.whole = SessionDesk(
            runtime,
            sessions,
            self._lines,
            DeskPorts(room=self._check_room, busy=self._busy_text, forget=self._forget_sessions),
        )

    @property
    def draining(self) -> bool:
        """Whether the gateway is going away."""
        return self._draining

    def emit(self, event: Event) -> None:
        """Take an event of any run (it is a sink)."""
        if event.scope is not None and (live := self._live.get(event.scope.run_id)) is not None:
            live.observe(event)

    def live(self, run_id: str) -> LiveRun | None:
        """Return a run that goes on."""
        return self._live.get(run_id)

    def find(self, run_id: str) -> LiveRun:
        """Return a run, over or not.

        Raises:
            ApiError: 404.
        """
        found = self._live.get(run_id) or self._finished.get(run_id)
        if found is None:
            raise not_found("no such run; runs that are over are in their session's record")
        return found

    def of_call(self, call_id: str) -> LiveRun | None:
        """Return the run that handed out this call of a client tool."""
        run_id = self._calls.get(call_id)
        if run_id is None:
            return next((r for r in self._live.values() if call_id in r.client.handed), None)
        return self._live.get(run_id) or self._finished.get(run_id)

    def listed(self, limit: int) -> list[LiveRun]:
        """Return runs, those that go on first, the latest of each first."""
        both = [*reversed(self._live.values()), *reversed(self._finished.values())]
        return both[:limit]

    async def start(self, turn: Turn, *, listening: bool = True, in_line: bool = False) -> LiveRun:
        """Start a run; it goes on by itself.

        Args:
            turn: What is asked.
            listening: Whether somebody follows what the model says.
            in_line: In a session that has a run already, wait for its end instead of failing.

        Raises:
            ApiError: 503 while draining, 429 when too many go on or wait, 409 when the session has
                a run or belongs to another agent.
        """
        scope = turn.scope
        if turn.history is None:
            await self._check_owner(scope.session_id, scope.agent_id)
        if self._draining:
            raise draining()
        self._check_room()
        holder = self._lines.holder(scope.session_id)
        if holder is not None and not in_line:
            self.counts.refused += 1
            raise conflict(self._busy_text(scope.session_id, holder), "session_busy")
        if self._lines.waiting(scope.session_id) >= MAX_WAITING:
            self.counts.refused += 1
            message = f"{MAX_WAITING} runs wait in session {scope.session_id!r}; try again later"
            raise overloaded(message, "too_many_waiting")
        live = LiveRun(scope, created_at=self._runtime.host.clock.wall(), listening=listening)
        self._live[scope.run_id] = live
        next_up = self._lines.enter(scope.session_id, scope.run_id)
        self.counts.started += 1
        turn = replace(turn, extras=replace(turn.extras, before_model=live.client.done))
        self._runtime.supervisor.start_soon(self._drive, live, turn, next_up, name="gateway run")
        return live

    def cancel(self, live: LiveRun) -> None:
        """Cancel a run; its cells, calls and model request end with it.

        Raises:
            ApiError: 409: it is over.
        """
        if live.over:
            message = f"run {live.run_id!r} is {live.status} already"
            raise conflict(message, "run_over", retry=False)
        live.cancel_scope.cancel()

    def begin_drain(self) -> None:
        """Take no further runs; those that wait for a client wait no longer."""
        self._draining = True
        for live in self._live.values():
            live.client.give_up()

    async def drained(self, seconds: float) -> None:
        """Return when no run goes on; after `seconds` they are cancelled."""
        with anyio.move_on_after(seconds):
            await self._all_over()
        for live in list(self._live.values()):
            live.cancel_scope.cancel()
        await self._all_over()

    def statistics(self) -> Mapping[str, int]:
        """Return counts for health and metrics."""
        return {
            "active": len(self._live),
            "waiting_for_client": sum(bool(r.client.handed_open) for r in self._live.values()),
            "started": self.counts.started,
            "completed": self.counts.completed,
            "failed": self.counts.failed,
            "cancelled": self.counts.cancelled,
            "refused": self.counts.refused,
        }

    async def _drive(self, live: LiveRun, turn: Turn, next_up: anyio.Event) -> None:
        clock = self._runtime.host.clock
        try:
            with live.cancel_scope:
                await next_up.wait()
                result = await converse(self._runtime, self._sessions, turn, on_text=live.add_text)
                await self._recorded(live)
                live.end(result.status, at=clock.wall(), result=result, error=result.error)
        except ToolcellError as error:
            live.end("failed", at=clock.wall(), error=error)
        except Exception as error:
            # The supervisor tells the operator; the client learns that it failed, not why.
            live.end("failed", at=clock.wall(), error=error)
            raise
        finally:
            live.end("cancelled", at=clock.wall())
            self._forget(live)

    async def _recorded(self, live: LiveRun) -> None:
        """Have the turn on disk before the client is told that it is over."""
        try:
            await self._sessions.flush()
        except SessionError as error:
            told = Diagnostic(
                at=self._runtime.host.clock.wall(),
                level="error",
                subject="sessions",
                message=error.message,
                scope=live.scope,
            )
            self._runtime.sink.emit(told)

    def _forget(self, live: LiveRun) -> None:
        self._live.pop(live.run_id, None)
        self._lines.leave(live.scope.session_id, live.run_id)
        match live.status:
            case "completed":
                self.counts.completed += 1
            case "failed":
                self.counts.failed += 1
            case _:
                self.counts.cancelled += 1
        self._finished[live.run_id] = live
        self._calls.update(dict.fromkeys(live.client.handed, live.run_id))
        if len(self._finished) > MAX_FINISHED:
            _, oldest = self._finished.popitem(last=False)
            self._drop(oldest)
        if not self._live:
            self._idle.set()
            self._idle = anyio.Event()

    def _forget_sessions(self, session_ids: Sequence[str]) -> None:
        """What was said in a forgotten session is not to be had from its runs either."""
        for each in session_ids:
            self._owners.pop(each, None)
        for run_id, live in list(self._finished.items()):
            if live.scope.session_id in session_ids:
                self._drop(self._finished.pop(run_id))

    def _drop(self, live: LiveRun) -> None:
        for call_id in live.client.handed:
            self._calls.pop(call_id, None)

    async def _all_over(self) -> None:
        while self._live:
            await self._idle.wait()

    async def _check_owner(self, session_id: str, agent_id: str) -> None:
        """A session is one agent's: another must not read on in it (rule 2.5)."""
        owner = self._owners.get(session_id)
        if owner is None:
            info = await self._sessions.info(session_id)
            owner = info.agent_id if info is not None else agent_id
            owner = self._owners.setdefault(session_id, owner)
            if len(self._owners) > MAX_OWNERS:
                self._owners.popitem(last=False)
        if owner != agent_id:
            message = f"session {session_id!r} belongs to another agent; use a session of your own"
            raise ApiError(409, message, "session_of_other_agent", retry=False)

    def _check_room(self) -> None:
        going_on = len(self._live) + self.whole.compacting
        if going_on >= self._max_runs:
            self.counts.refused += 1
            message = f"{going_on} runs go on at once, which is the most allowed"
            raise overloaded(message, "too_many_runs")

    def _busy_text(self, session_id: str, run_id: str) -> str:
        live = self._live.get(run_id)
        if live is None:
            return f"session {session_id!r} is being {doing(run_id)}; try again in a moment"
        if live.client.handed_open:
            what = "waits for the results of its tool calls; send them"
        else:
            what = "is still going on; wait for it"
        return f"run {run_id!r} of session {session_id!r} {what}, or cancel it"
