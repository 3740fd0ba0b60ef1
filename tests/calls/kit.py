"""A recording sink, tools and scopes for the tests of the calls room."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolcell.calls.gate import Gate
from toolcell.calls.invocation import Invocation
from toolcell.protocol.events import CallEnded, CallStarted, Event
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool, ToolContext, core_tool

SCOPE = RunScope(agent_id="main", session_id="s1", session_key="agent:main:main", run_id="r1")
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
NUMBERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
SUM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
    "additionalProperties": False,
}

Body = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]


class Recording:
    """A sink that keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def started(self) -> list[CallStarted]:
        return self.of(CallStarted)

    @property
    def ended(self) -> list[CallEnded]:
        return self.of(CallEnded)

    def only_end(self) -> CallEnded:
        """Return the one end, and check that exactly one start came before it."""
        assert len(self.started) == len(self.ended) == 1
        assert self.events.index(self.started[0]) < self.events.index(self.ended[0])
        return self.ended[0]


class Counted:
    """A tool body that counts how often it really ran; `returns` is its details, or its result."""

    def __init__(self, returns: Any = None, *, raises: BaseException | None = None) -> None:
        self.count = 0
        self.seen: list[Mapping[str, Any]] = []
        self._returns = returns
        self._raises = raises

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        del context
        self.count += 1
        self.seen.append(arguments)
        if self._raises is not None:
            raise self._raises
        if isinstance(self._returns, ToolResult):
            return self._returns
        return ToolResult(details=self._returns)


async def add(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    del context
    return ToolResult(details={"sum": arguments["a"] + arguments["b"]})


def core(name: str, body: Body, **more: Any) -> SourcedTool:
    made = {"description": name, "parameters": ANY_OBJECT, **more}
    return core_tool(Tool(name=name, execute=body, **made))


def plugin(owner: str, name: str, body: Body, **more: Any) -> SourcedTool:
    made = {"description": name, "parameters": ANY_OBJECT, **more}
    tool = Tool(name=name, execute=body, **made)
    return SourcedTool(tool=tool, source="openclaw", owner=owner, group=Group.EXTERNAL)


def mcp(server: str, name: str, body: Body, **more: Any) -> SourcedTool:
    made = {"description": name, "parameters": ANY_OBJECT, **more}
    tool = Tool(name=name, execute=body, **made)
    origin = McpOrigin(server=server, tool=name)
    return SourcedTool(tool=tool, source="mcp", owner=server, group=Group.MCP, mcp=origin)


def invocation(sourced: SourcedTool, arguments: Any = None, **more: Any) -> Invocation:
    made = {"scope": SCOPE, "call_id": "c1", "parent_id": "exec1", **more}
    given = {} if arguments is None else arguments
    return Invocation(sourced=sourced, arguments=given, **made)


def gate(**more: Any) -> tuple[Gate, Recording]:
    sink = Recording()
    return Gate(sink=sink, **more), sink


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now
