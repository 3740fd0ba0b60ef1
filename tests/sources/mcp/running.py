"""Real servers for the tests: start a source on them, call their tools, wait for changes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import anyio

from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.base.deadline import Deadline
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.scope import RunScope
from toolcell.sources.mcp.options import McpOptions, Retry
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.source import McpSource
from toolcell.sources.mcp.status import ServerStatus
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import SourcedTool, ToolContext

SRC = str(Path(__file__).parents[3] / "src")
SCOPE = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")
QUICK = Retry(first=0.1, longest=0.4, ping=0.5)


def fixture(*flags: str, mark: str = "MARKED", **more: Any) -> McpServerSettings:
    """Settings of the fixture; its children inherit the variable `mark` too."""
    return McpServerSettings(
        command=sys.executable,
        args=("-m", "toolcell.testing.mcp_fixture", *flags),
        env={"PYTHONPATH": SRC, mark: "1"},
        **more,
    )


class Running:
    """A started source, and what it reported."""

    def __init__(self, source: McpSource, events: list[Any], said: list[str]) -> None:
        self.source = source
        self.events = events
        self.said = said

    @property
    def ids(self) -> list[str]:
        return [tool.id for tool in self.source.tools()]

    @property
    def diagnostics(self) -> list[str]:
        return [f"{e.subject}: {e.message}" for e in self.events if isinstance(e, Diagnostic)]

    def tool(self, ident: str) -> SourcedTool:
        return next(tool for tool in self.source.tools() if tool.id == f"mcp:{ident}")

    def status(self, name: str) -> ServerStatus:
        return next(each for each in self.source.status() if each.name == name)

    async def call(
        self,
        ident: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        updates: list[Any] | None = None,
        seconds: float | None = None,
    ) -> ToolResult:
        return await run_tool(self.tool(ident), arguments, updates=updates, seconds=seconds)

    async def until(self, holds: Callable[[], Any], seconds: float = 15.0) -> None:
        with anyio.fail_after(seconds):
            while not holds():  # noqa: ASYNC110  what another process does sets no event
                await anyio.sleep(0.01)


async def run_tool(
    sourced: SourcedTool,
    arguments: Mapping[str, Any] | None = None,
    *,
    updates: list[Any] | None = None,
    seconds: float | None = None,
) -> ToolResult:
    context = ToolContext(
        scope=SCOPE,
        call_id="c1",
        parent_id=None,
        deadline=None if seconds is None else Deadline(seconds),
        update=(updates if updates is not None else []).append,
    )
    with anyio.fail_after(30):
        return await sourced.tool.execute(arguments or {}, context)


class Events(list[Any]):
    def emit(self, event: Any) -> None:
        self.append(event)


class GroupSpawner:
    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group

    def start_soon(self, function: Callable[..., Any], *args: Any, name: str = "") -> None:
        self._group.start_soon(function, *args, name=name)


@asynccontextmanager
async def running(
    servers: Mapping[str, McpServerSettings], retry: Retry = QUICK, **options: Any
) -> AsyncIterator[Running]:
    events, said = Events(), []
    async with anyio.create_task_group() as group:
        source = McpSource(
            servers,
            spawner=GroupSpawner(group),
            sink=events,
            clock=SYSTEM_CLOCK,
            on_progress=said.append,
            options=McpOptions(retry=retry, **options),
        )
        with anyio.fail_after(40):
            await source.start()
        try:
            yield Running(source, events, said)
        finally:
            with anyio.CancelScope(shield=True):
                await source.aclose()


@contextmanager
def http_server(*flags: str) -> Iterator[tuple[str, Popen[str]]]:
    """Run the HTTP fixture; give its address and its process."""
    with Popen(
        [sys.executable, "-m", "toolcell.testing.mcp_http", *flags],
        stdout=PIPE,
        text=True,
        env={"PYTHONPATH": SRC},
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1], process
        finally:
            process.kill()
