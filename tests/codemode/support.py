"""The fixture catalog of the reports, a runtime around it, and the executors the tests run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.calls.access import RunCatalog
from toolcell.calls.gate import Gate
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.codemode.continuations import ContinuationStore, SuspensionCap
from toolcell.codemode.extensions import GuestExtension
from toolcell.codemode.image import ImageShelf
from toolcell.codemode.results import Outcome
from toolcell.codemode.runtime import CodeModeRuntime, RuntimePorts
from toolcell.config.code_mode import CodeModeOptions
from toolcell.errors import CallError
from toolcell.execution.contract import Executor
from toolcell.execution.node.executor import NodeExecutor
from toolcell.execution.quickjs.executor import QuickJSExecutor, QuickJSOptions
from toolcell.protocol.events import Event
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import (
    Group,
    McpOrigin,
    SourcedTool,
    Tool,
    ToolContext,
    ToolKind,
    core_tool,
)

Body = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]
SCOPE = RunScope(agent_id="main", session_id="s-1", session_key="agent:main:main", run_id="r-1")


def schema(*required: str, closed: bool = False, **properties: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: {} if kind == "any" else {"type": kind} for name, kind in properties.items()
        },
        "required": list(required),
    }
    if closed:
        made["additionalProperties"] = False
    return made


def tool(name: str, parameters: Mapping[str, Any], body: Body, **more: Any) -> Tool:
    async def execute(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        given = await body(arguments, context)
        return given if isinstance(given, ToolResult) else ToolResult(details=given)

    more.setdefault("description", f"The {name} tool.")
    return Tool(name=name, parameters=parameters, execute=execute, **more)


@dataclass
class Fixture:
    """The fixture tools, with what really ran."""

    ran: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    gates: dict[str, anyio.Event] = field(default_factory=dict)
    started: dict[str, anyio.Event] = field(default_factory=dict)
    overlap: int = 0
    most_overlap: int = 0

    def count(self, name: str) -> int:
        return self.ran.count(name)

    def tools(self) -> list[SourcedTool]:
        made = [
            tool("echo", schema("v", v="any"), self._echo, replay_safe=True),
            tool(
                "add",
                schema("a", "b", closed=True, a="number", b="number"),
                self._add,
                output_schema=schema("sum", closed=True, sum="number"),
            ),
            tool("slow", schema("ms", ms="number", tag="any"), self._slow),
            tool("boom", schema("why", why="string"), self._boom),
            tool("count", schema(n="any"), self._count),
            tool("big", schema("n", n="integer"), self._big),
            tool("hold", schema("key", key="string"), self._hold),
            tool("write_note", schema("path", "body", path="string", body="string"), self._echo),
        ]
        return [core_tool(one) for one in made]

    async def _echo(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        self.ran.append("echo")
        return {"v": arguments.get("v")}

    async def _add(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        self.ran.append("add")
        return {"sum": arguments["a"] + arguments["b"]}

    async def _slow(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        self.ran.append("slow")
        self.overlap += 1
        self.most_overlap = max(self.most_overlap, self.overlap)
        context.update({"tag": arguments.get("tag")})
        try:
            await anyio.sleep(arguments["ms"] / 1000)
        except anyio.get_cancelled_exc_class():
            self.aborted.append("slow")
            raise
        finally:
            self.overlap -= 1
        return {"tag": arguments.get("tag")}

    async def _boom(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        self.ran.append("boom")
        raise RuntimeError("boom: " + arguments["why"])

    async def _count(self, _arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        self.ran.append("count")
        return {"n": self.count("count")}

    async def _big(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        return {"text": "x" * arguments["n"]}

    async def _hold(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        """Held until the test opens its gate."""
        key = arguments["key"]
        self.ran.append(f"hold:{key}")
        self.start_of(key).set()
        try:
            await self.gate_of(key).wait()
        except anyio.get_cancelled_exc_class():
            self.aborted.append(f"hold:{key}")
            raise
        return {"key": key}

    def gate_of(self, key: str) -> anyio.Event:
        return self.gates.setdefault(key, anyio.Event())

    def start_of(self, key: str) -> anyio.Event:
        return self.started.setdefault(key, anyio.Event())


def mcp_tool(
    server: str,
    name: str,
    body: Body,
    parameters: Mapping[str, Any] | None = None,
    *,
    operation: Any = "tool",
    description: str = "A remote tool.",
) -> SourcedTool:
    kind = ToolKind.ORDINARY if operation == "tool" else ToolKind.MCP_OPERATION
    made = tool(name, parameters or {"type": "object"}, body, description=description, kind=kind)
    return SourcedTool(
        tool=made,
        source="mcp",
        owner=server,
        group=Group.MCP,
        mcp=McpOrigin(server=server, tool=name, operation=operation),
    )


def mcp_result(text: str, **more: Any) -> ToolResult:
    details = {"content": [{"type": "text", "text": text}], **more}
    return ToolResult(content=(TextContent(text),), details=details, untrusted=True)


async def remote_echo(arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
    return mcp_result(str(arguments.get("text", "")), structuredContent=dict(arguments))


async def remote_boom(arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
    message = f"remote {arguments.get('text', '')}<|endoftext|>"
    raise CallError(message, code="tool_error", untrusted=True)


class Events:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def emit(self, event: Event) -> None:
        self.all.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.all if isinstance(event, kind)]


class GroupSpawner:
    """A `Spawner` on a test's own task group."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self.faults: list[Exception] = []
        self.live = 0

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], *args: Any, name: str = ""
    ) -> None:
        self.live += 1
        self._group.start_soon(self._child, function, args, name=name or None)

    async def _child(self, function: Callable[..., Awaitable[Any]], args: Any) -> None:
        try:
            await function(*args)
        except Exception as error:  # noqa: BLE001 - kept for the test to look at
            self.faults.append(error)
        finally:
            self.live -= 1


@dataclass
class Bench:
    """One host: a store, an executor, and runtimes on it."""

    executor: Executor
    store: ContinuationStore
    spawner: GroupSpawner
    fixture: Fixture
    events: Events
    clock: Clock
    executors_asked: list[str] = field(default_factory=list)
    images: ImageShelf = field(default_factory=ImageShelf)

    def snapshot(self, *more: SourcedTool) -> CatalogSnapshot:
        return CatalogSnapshot.build([*self.fixture.tools(), *more])

    def runtime(
        self,
        *more: SourcedTool,
        snapshot: CatalogSnapshot | None = None,
        scope: RunScope = SCOPE,
        hooks: Hooks | None = None,
        visible: Callable[[Any], bool] | None = None,
        extra: tuple[GuestExtension, ...] = (),
        gate: Gate | None = None,
        **options: Any,
    ) -> CodeModeRuntime:
        snapshot = snapshot or self.snapshot(*more)
        chosen = CodeModeOptions(enabled=True, **{"executor": "quickjs", **options})
        gate = gate or Gate(hooks=hooks or Hooks(), sink=self.events, clock=self.clock)
        catalog = RunCatalog(
            snapshot,
            gate=gate,
            scope=scope,
            visible=visible,
            search_default_limit=chosen.search_default_limit,
            max_search_limit=chosen.max_search_limit,
        )

        async def executors(name: str) -> Executor:
            self.executors_asked.append(name)
            return self.executor

        ports = RuntimePorts(
            executors=executors,
            spawner=self.spawner,
            store=self.store,
            sink=self.events,
            clock=self.clock,
            images=self.images,
        )
        return CodeModeRuntime(catalog, chosen, ports, extra=extra)


@asynccontextmanager
async def bench(
    executor: Executor, *, clock: Clock = SYSTEM_CLOCK, cap: int = 64
) -> AsyncIterator[Bench]:
    async with anyio.create_task_group() as group:
        spawner = GroupSpawner(group)
        store = ContinuationStore(clock=clock, spawner=spawner, cap=SuspensionCap(cap))
        yield Bench(executor, store, spawner, Fixture(), Events(), clock)
        await store.aclose()
        group.cancel_scope.cancel()


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "quickjs": lambda: QuickJSExecutor(QuickJSOptions(threads=2)),
    "node": NodeExecutor,
}


@asynccontextmanager
async def bench_on(name: str) -> AsyncIterator[Bench]:
    """A host on the executor of this name."""
    executor = EXECUTORS[name]()
    try:
        async with bench(executor) as made:
            yield made
    finally:
        await executor.aclose()


@asynccontextmanager
async def quickjs(**more: Any) -> AsyncIterator[Bench]:
    """A host on the real engine."""
    executor = QuickJSExecutor(QuickJSOptions(threads=4))
    try:
        async with bench(executor, **more) as made:
            yield made
    finally:
        await executor.aclose()


async def run(runtime: CodeModeRuntime, code: str, **more: Any) -> Outcome:
    return await runtime.exec({"code": code, **more}, call_id="call-1")


async def value_of(runtime: CodeModeRuntime, code: str) -> Any:
    outcome = await run(runtime, code)
    assert outcome.status == "completed", outcome
    return outcome.value


def context(call_id: str) -> ToolContext:
    return ToolContext(
        scope=SCOPE, call_id=call_id, parent_id=None, deadline=None, update=lambda _: None
    )


async def until(check: Callable[[], object]) -> None:
    """Wait, at most five seconds, for something that no event tells of."""
    with anyio.fail_after(5):
        while not check():  # noqa: ASYNC110 - what is looked at belongs to other tasks
            await anyio.sleep(0.002)
