"""Owns the sessions of MCP clients: one run for each, so that no client sees another's cells.

Above: the protocol server. Below: `app`. Refuses to know: transports and their ends, which call
`end`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types

from toolcell.app.run import Run
from toolcell.app.runtime import Runtime
from toolcell.base.identifiers import fresh
from toolcell.base.spawner import Spawner
from toolcell.codemode.controls import WAIT_NAME
from toolcell.mcp_server.asking import Channel, ClientApprover, Desk
from toolcell.mcp_server.presentation import (
    INSTRUCTIONS,
    SEARCH_INSTRUCTIONS,
    call_result,
    listed_tools,
)
from toolcell.mcp_server.progress import CallProgress, Report
from toolcell.mcp_server.rounds import Rounds
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.surface.plan import SurfacePlan

CHANNEL = "mcp"


class ClientSession:
    """One MCP session: a run of its own, hence a scope of its own (rules 2.5, 3.7).

    Attributes:
        run: The run.
        rounds: Calls that take several requests (the 2026 revision).
    """

    def __init__(self, run: Run, progress: CallProgress, desk: Desk, spawner: Spawner) -> None:
        self.run = run
        self.rounds = Rounds(spawner)
        self._progress = progress
        self._desk = desk
        self._listed: tuple[SurfacePlan, list[types.Tool]] | None = None

    async def tools(self) -> list[types.Tool]:
        """Return the tools as they are now; rendered once for each version of them."""
        plan = await self.run.plan()
        if self._listed is None or self._listed[0] is not plan:
            self._listed = (plan, listed_tools(plan))
        return self._listed[1]

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        report: Report | None,
        channel: Channel | None = None,
    ) -> types.CallToolResult:
        """Run one call; cancelling it aborts the cell it runs.

        Args:
            name: The tool, as listed.
            arguments: Its arguments.
            report: Sends progress; None when the client did not ask for it.
            channel: How its user is asked while the call runs; None when nobody can be.
        """
        with self._desk.open_over(channel):
            return await self._called(name, arguments, report)

    async def _called(
        self, name: str, arguments: Mapping[str, Any], report: Report | None
    ) -> types.CallToolResult:
        visible = (await self.run.plan()).resolve(name)
        call_id = fresh("call")
        if report is None:
            result = await self.run.call(name, arguments, call_id=call_id)
            return call_result(visible, result)
        followed = call_id
        if visible is not None and visible.name == WAIT_NAME:
            cell = str(arguments.get("runId"))
            followed = self._progress.parent_of(cell, self.run.scope.run_id) or call_id
        with self._progress.feeding(followed) as feed:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(feed.send_all, report)
                result = await self.run.call(name, arguments, call_id=call_id)
                tasks.cancel_scope.cancel()
            # A client that left hears nothing; its call is over all the same.
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await feed.flush(report)
        return call_result(visible, result)


class ClientSessions:
    """Makes and ends the sessions of one runtime."""

    def __init__(self, runtime: Runtime, progress: CallProgress, approver: ClientApprover) -> None:
        self._runtime = runtime
        self._progress = progress
        self._approver = approver
        self._live: set[ClientSession] = set()

    @property
    def live(self) -> int:
        """How many there are."""
        return len(self._live)

    @property
    def version(self) -> int:
        """Grows whenever the tools before policy are others."""
        return self._runtime.toolbox.version

    @property
    def instructions(self) -> str:
        """What a client is told of the server as a whole."""
        code = self._runtime.options(DEFAULT_AGENT).enabled is True
        return INSTRUCTIONS if code else SEARCH_INSTRUCTIONS

    def open(self, session_id: str | None = None) -> ClientSession:
        """Return a new session."""
        scope = self._runtime.scope(session_id=session_id, channel=CHANNEL)
        desk = self._approver.join(scope.session_id)
        run, spawner = self._runtime.run(scope), self._runtime.supervisor
        session = ClientSession(run, self._progress, desk, spawner)
        self._live.add(session)
        return session

    async def end(self, session: ClientSession) -> None:
        """End a session: its cells are given up."""
        self._live.discard(session)
        session.rounds.end()
        self._approver.leave(session.run.scope.session_id)
        await self._runtime.end(session.run)
