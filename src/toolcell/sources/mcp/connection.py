"""Owns one server from first start to end: connecting, listing, noticing its death, trying again.

All of it happens in the one task that runs `run`, because the SDK's task groups must be left in the
task that entered them. Others only set events, read what is published, or wait for answers.

Above: `McpSource`. Below: live sessions, transports, listings.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import httpx2
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from toolcell.base.clock import Clock
from toolcell.errors import CallError, McpError
from toolcell.sources.mcp.answering import Answering, client_session
from toolcell.sources.mcp.calls import Caller
from toolcell.sources.mcp.failures import reason_of
from toolcell.sources.mcp.listing import Listing, read_listing
from toolcell.sources.mcp.live import Live, greet
from toolcell.sources.mcp.notices import Notices
from toolcell.sources.mcp.options import McpOptions
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import LogTail, ServerState, ServerStatus
from toolcell.sources.mcp.stdio import Exit
from toolcell.sources.mcp.tools import ListedTool, Operation, listed_tool, operation_tool
from toolcell.sources.mcp.transports import open_streams
from toolcell.sources.mcp.wire import Wire
from toolcell.tools.tool import Execute, SourcedTool

QUIET_SECONDS = 0.05
"""A burst of change notices is let pass before the tools are listed again."""

BETWEEN_LISTINGS = 1.0
"""Shortest time between two listings of a connected server (REPORTS MC-05: a bounded number)."""

STABLE_SECONDS = 10.0
GOODBYE_SECONDS = 2.0
_FRESH_TRIES = 3

# The SDK logs what a server does wrong; it is shown by `status`, not on somebody's terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_PLAINLY: Mapping[ServerState, str] = {
    "starting": "it is still starting",
    "ready": "it is being listed",
    "retrying": "it cannot be reached; it is tried again",
    "stopped": "it was stopped",
    "disabled": "it is disabled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a connection is given.

    Attributes:
        clock: Time.
        notices: Where to report.
        changed: Told of every change of the tools.
        options: What all servers share.
    """

    clock: Clock
    notices: Notices
    changed: Callable[[], None]
    options: McpOptions


class Connection:
    """One server.

    Attributes:
        tried: Set when the first attempt is over, well or not.
        done: Set when `run` is over.
        tools: What is published at the moment.
    """

    def __init__(self, name: str, settings: McpServerSettings, around: Surroundings) -> None:
        self.name = name
        self.tried = anyio.Event()
        self.done = anyio.Event()
        self.tools: tuple[SourcedTool, ...] = ()
        self._settings = settings
        self._around = around
        self._log = LogTail()
        self._state: ServerState = "starting"
        self._reason = ""
        self._scope = anyio.CancelScope()
        self._stopping = anyio.Event()
        self._leave = anyio.Event()
        self._dirty = anyio.Event()
        self._doubt = anyio.Event()
        self._live: Live | None = None
        self._listing: Listing | None = None
        self._current: frozenset[str] = frozenset()
        self._identity = ("", "")
        self._listings = 0
        self._connects = 0
        self._answering = Answering(name, around.options.answers, self._log)
        self._caller = Caller(
            server=name,
            timeout=settings.call_timeout_seconds,
            clock=around.clock,
            surrogates=settings.kind == "stdio",
            live=self._session,
            suspect=self._suspect,
        )

    @property
    def problem(self) -> str:
        """Why its tools are not here, without a word of the server's own; empty when they are."""
        return "" if self._listing is not None else _PLAINLY[self._state]

    def status(self) -> ServerStatus:
        """Return its state for an operator."""
        listing = self._listing or Listing()
        return ServerStatus(
            name=self.name,
            transport=self._settings.kind,
            state=self._state,
            server=self._identity[0],
            protocol=self._identity[1],
            tool_count=len(listing.tools),
            oddities=listing.oddities,
            last_error=self._reason,
            log_tail=self._log.lines(),
            listings=self._listings,
            connects=self._connects,
        )

    async def run(self) -> None:
        """Keep the server connected until `stop` or cancellation. Raises nothing else."""
        try:
            with self._scope:
                await self._keep_connected()
        finally:
            self._withdraw("stopped")
            self.tried.set()
            self.done.set()

    def stop(self) -> None:
        """Ask it to end: a connected server gets a moment to be told, others are cut off."""
        self._stopping.set()
        self._leave.set()
        grace = GOODBYE_SECONDS if self._live is not None else 0.0
        self._scope.deadline = anyio.current_time() + grace

    async def _keep_connected(self) -> None:
        pause = self._around.options.retry.first
        while not self._stopping.is_set():
            began = self._around.clock.monotonic()
            ended = Exit()
            try:
                await self._connect_and_serve(ended)
            # The one border where whatever a server makes the SDK raise becomes its state.
            except Exception as error:  # noqa: BLE001
                self._failed(reason_of(error, ended))
            if self._around.clock.monotonic() - began > STABLE_SECONDS:
                pause = self._around.options.retry.first
            self.tried.set()
            with anyio.move_on_after(pause):
                await self._stopping.wait()
            pause = min(pause * 2, self._around.options.retry.longest)

    async def _connect_and_serve(self, ended: Exit) -> None:
        seconds = self._settings.start_timeout_seconds
        self._connects += 1
        self._leave = anyio.Event()
        self._dirty = anyio.Event()
        self._doubt = anyio.Event()
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + seconds) as starting:
                auth = self._sign_in()
                async with open_streams(self._settings, self._log, ended, auth) as streams:
                    dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(
                        *streams, on_stream_exception=self._transport_fault
                    )
                    wire = Wire(
                        dispatcher,
                        on_notification=self._notified,
                        answering=self._answering,
                        on_closed=self._leave.set,
                    )
                    async with client_session(wire, self._answering) as session:
                        live = await greet(session, wire)
                        self._identity = (live.server, live.protocol)
                        self._live = live
                        await self._first_listing(live)
                        starting.deadline = math.inf
                        self.tried.set()
                        await self._serve(live)
        finally:
            self._live = None
        if starting.cancelled_caught:
            msg = f"it was not ready within {seconds:g} s"
            raise McpError(msg)
        if not self._stopping.is_set():
            raise McpError("the connection ended")

    def _sign_in(self) -> httpx2.Auth | None:
        if self._settings.oauth is None:
            return None
        # It imports cryptography: only who signs in pays for it.
        from toolcell.sources.mcp.oauth import provider  # noqa: PLC0415

        return provider(self.name, self._settings, self._around.options.tokens)

    async def _first_listing(self, live: Live) -> None:
        try:
            await self._list(live)
        except (MCPError, McpError) as error:
            if self._leave.is_set():
                raise
            self._failed(f"its tools cannot be listed: {reason_of(error)}")
            self._dirty.set()

    async def _serve(self, live: Live) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_listed, live)
            tasks.start_soon(self._keep_sound, live)
            if live.modern:
                tasks.start_soon(self._follow_changes, live)
            await self._leave.wait()
            tasks.cancel_scope.cancel()

    async def _keep_listed(self, live: Live) -> None:
        """List again after changes; after a failure with growing pauses (REPORTS MC-04)."""
        pause = self._around.options.retry.first
        failed = self._listing is None
        while True:
            if failed:
                await anyio.sleep(pause)
            await self._dirty.wait()
            await anyio.sleep(QUIET_SECONDS)
            try:
                with anyio.fail_after(self._settings.start_timeout_seconds):
                    await self._list(live)
            except (MCPError, McpError, TimeoutError) as error:
                failed = True
                pause = min(pause * 2, self._around.options.retry.longest)
                self._dirty.set()
                self._failed(
                    f"its tools cannot be listed: {reason_of(error)}",
                    keep=self._listing is not None,
                )
            else:
                failed = False
                pause = self._around.options.retry.first
                await anyio.sleep(BETWEEN_LISTINGS)

    async def _keep_sound(self, live: Live) -> None:
        """After a sign of trouble, leave unless the server answers a ping."""
        while True:
            await self._doubt.wait()
            self._doubt = anyio.Event()
            if live.in_flight:
                # It may be busy with others' calls; they will tell.
                continue
            try:
                with anyio.fail_after(self._around.options.retry.ping):
                    await live.ping()
            except (MCPError, TimeoutError):
                self._leave.set()

    async def _follow_changes(self, live: Live) -> None:
        try:
            await live.changes()
        except (MCPError, RuntimeError, TimeoutError) as error:
            self._log.add(f"[toolcell] no stream of changes: {reason_of(error)}")

    async def _list(self, live: Live) -> None:
        """List until no change came in meanwhile, so that no stale list is shown (MC-01)."""
        for _ in range(_FRESH_TRIES):
            self._dirty = anyio.Event()
            raw = await live.list_tools() if live.has_tools else []
            self._listings += 1
            if not self._dirty.is_set():
                break
        self._publish(live, read_listing(self.name, self._settings, raw))

    def _publish(self, live: Live, listing: Listing) -> None:
        self._reason = ""
        self._state = "ready"
        if listing == self._listing:
            return
        self._around.notices.oddities(self.name, listing.oddities, self._listing)
        self._listing = listing
        self._current = frozenset(tool.wire_name for tool in listing.tools)
        tools = [listed_tool(self.name, tool, self._execute(tool)) for tool in listing.tools]
        tools += [operation_tool(self.name, each, self._operate) for each in live.operations]
        self.tools = tuple(tools)
        self._around.changed()

    def _execute(self, listed: ListedTool) -> Execute:
        async def execute(arguments: Any, context: Any) -> Any:
            if self._live is not None and listed.wire_name not in self._current:
                msg = (
                    f"MCP server {self.name!r} no longer offers {listed.name!r}; "
                    "search for what it offers now"
                )
                raise CallError(
                    msg,
                    code="unavailable",
                    effect="none",
                )
            return await self._caller.tool(listed, arguments, context)

        return execute

    def _operate(self, operation: Operation) -> Execute:
        return partial(self._caller.operation, operation)

    def _session(self) -> Live:
        if self._live is None:
            msg = f"MCP server {self.name!r} is not here: {_PLAINLY[self._state]}"
            raise CallError(
                msg,
                code="unavailable",
                effect="none",
            )
        return self._live

    def _withdraw(self, state: ServerState) -> None:
        before = self.problem
        self._state = state
        self._live = None
        self._listing = None
        self._current = frozenset()
        self.tools = ()
        if self.problem != before:
            self._around.changed()

    def _failed(self, reason: str, *, keep: bool = False) -> None:
        repeated = reason == self._reason
        self._reason = reason
        if not keep:
            self._withdraw("retrying")
        if not repeated:
            self._around.notices.failure(self.name, reason, self._log.lines(3))

    def _suspect(self) -> None:
        self._doubt.set()

    def _notified(self, method: str, params: Any) -> None:
        if method == "notifications/tools/list_changed":
            self._dirty.set()
        elif method == "notifications/message":
            self._log.add(f"[{params.get('level')}] {params.get('data')}")

    async def _transport_fault(self, fault: Exception) -> None:
        self._log.add(f"[toolcell] {reason_of(fault)}")
