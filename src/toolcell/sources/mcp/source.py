"""Owns `McpSource`: every configured MCP server as one source of tools.

Above: `app`, which starts it and collects its tools. Below: connections, one per server.
Refuses to know: policy, catalogs, guest namespaces.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from toolcell.base.clock import Clock
from toolcell.base.spawner import Spawner
from toolcell.protocol.sink import Sink
from toolcell.sources.contract import Unavailable
from toolcell.sources.mcp.notices import Notices
from toolcell.sources.mcp.options import McpOptions
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import ServerStatus
from toolcell.tools.tool import SourcedTool

if TYPE_CHECKING:
    from toolcell.sources.mcp.connection import Connection

CLOSE_SECONDS = 12.0
"""Longest wait for servers to end: two graces of stdio, a goodbye, and slack."""


class McpSource:
    """The MCP servers of one runtime, as `sources.contract.Source`.

    The MCP SDK is imported by `start`, in a thread, and only when a server is enabled: the import
    takes a second and 60 MB.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServerSettings],
        *,
        spawner: Spawner,
        sink: Sink,
        clock: Clock,
        on_progress: Callable[[str], None] | None = None,
        options: McpOptions | None = None,
    ) -> None:
        self._servers = dict(servers)
        self._spawner = spawner
        self._clock = clock
        self._notices = Notices(clock=clock, sink=sink, progress=on_progress)
        self._options = options or McpOptions()
        self._connections: dict[str, Connection] = {}
        self._version = 0
        self._tools: tuple[SourcedTool, ...] | None = ()

    @property
    def version(self) -> int:
        """Grows with every change of the tools or of what is unavailable."""
        return self._version

    def tools(self) -> Sequence[SourcedTool]:
        """Return the tools of every server that is connected, in the order of the config."""
        if self._tools is None:
            self._tools = self._collected()
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """Return the enabled servers whose tools are not here (REPORTS SR-12)."""
        return tuple(
            Unavailable(owner=name, reason=connection.problem)
            for name, connection in self._connections.items()
            if connection.problem
        )

    def status(self) -> tuple[ServerStatus, ...]:
        """Return the state of every configured server, for an operator."""
        return tuple(self._status_of(name) for name in self._servers)

    async def start(self) -> None:
        """Start every enabled server at once and wait, with patience, for each first attempt.

        A server that fails is reported, listed as unavailable and tried again; it never raises.
        """
        enabled = {name: each for name, each in self._servers.items() if each.enabled}
        if not enabled or self._connections:
            return
        module = await anyio.to_thread.run_sync(
            importlib.import_module, "toolcell.sources.mcp.connection"
        )
        around = module.Surroundings(
            clock=self._clock,
            notices=self._notices,
            changed=self._changed,
            options=self._options,
        )
        for name, settings in enabled.items():
            self._connections[name] = module.Connection(name, settings, around)
        for connection in self._connections.values():
            self._spawner.start_soon(connection.run, name=f"mcp:{connection.name}")
        with anyio.move_on_after(self._options.patience):
            await self._first_attempts()

    async def aclose(self) -> None:
        """End every connection and child process; bounded, and safe to call again."""
        for connection in self._connections.values():
            connection.stop()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            for connection in self._connections.values():
                await connection.done.wait()

    async def _first_attempts(self) -> None:
        count = len(self._connections)
        ready = 0

        async def watch(connection: Connection) -> None:
            nonlocal ready
            await connection.tried.wait()
            ready += 1
            state = connection.problem or f"{len(connection.tools)} tools"
            self._notices.say(f"MCP servers {ready}/{count}: {connection.name}: {state}")

        self._notices.say(f"MCP servers 0/{count}: starting")
        async with anyio.create_task_group() as tasks:
            for connection in self._connections.values():
                tasks.start_soon(watch, connection)

    def _status_of(self, name: str) -> ServerStatus:
        connection = self._connections.get(name)
        if connection is not None:
            return connection.status()
        settings = self._servers[name]
        return ServerStatus(
            name=name,
            transport=settings.kind,
            state="starting" if settings.enabled else "disabled",
        )

    def _changed(self) -> None:
        self._version += 1
        self._tools = None

    def _collected(self) -> tuple[SourcedTool, ...]:
        """Join the servers' tools; ids are unique even when names hold colons."""
        found: dict[str, Any] = {}
        for connection in self._connections.values():
            for tool in connection.tools:
                found.setdefault(tool.id, tool)
        return tuple(found.values())
