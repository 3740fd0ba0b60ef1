"""Which bodies of a run may overlap."""

from typing import Any

import anyio
import pytest

from tests.calls.kit import SCOPE, core, gate, invocation
from toolcell.calls.gate import Gate
from toolcell.calls.schedule import REENTRANT
from toolcell.errors import CallError
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import SourcedTool

pytestmark = pytest.mark.anyio


class Stage:
    """Bodies that say when they enter, and leave when they are told to."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.inside: set[str] = set()
        self.go: dict[str, anyio.Event] = {}

    def tool(self, name: str, *, mode: str = "parallel") -> SourcedTool:
        self.go[name] = anyio.Event()

        async def body(arguments: Any, context: Any) -> ToolResult:
            del arguments, context
            self.log.append(f"+{name}")
            self.inside.add(name)
            try:
                await self.go[name].wait()
            finally:
                self.inside.discard(name)
                self.log.append(f"-{name}")
            return ToolResult(details=name)

        return core(name, body, execution_mode=mode)


async def settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_parallel_tools_overlap_and_a_sequential_one_runs_alone_in_order() -> None:
    """BEHAVIOURS 191: it waits for those inside, and those after it wait for it."""
    made, _ = gate()
    stage = Stage()
    tools = [stage.tool("a"), stage.tool("b"), stage.tool("s", mode="sequential"), stage.tool("c")]
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            for tool in tools:
                tasks.start_soon(made.call, invocation(tool))
                await settle()
            assert stage.inside == {"a", "b"}
            assert made.statistics()["waiting_turns"] == 2
            stage.go["a"].set()
            await settle()
            assert stage.inside == {"b"}
            stage.go["b"].set()
            await settle()
            assert stage.inside == {"s"}
            stage.go["s"].set()
            await settle()
            assert stage.inside == {"c"}
            stage.go["c"].set()
    assert stage.log == ["+a", "+b", "-a", "-b", "+s", "-s", "+c", "-c"]


async def test_runs_do_not_wait_for_one_another() -> None:
    """rule 2.5: a sequential tool is alone in its own run only."""
    made, _ = gate()
    stage = Stage()
    other = type(SCOPE)(agent_id="main", session_id="s", session_key="k", run_id="r2")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(stage.tool("s", mode="sequential")))
        tasks.start_soon(made.call, invocation(stage.tool("t", mode="sequential"), scope=other))
        with anyio.fail_after(5):
            await settle()
        assert stage.inside == {"s", "t"}
        for event in stage.go.values():
            event.set()


def nesting(made: Gate, name: str, inner: SourcedTool, *, mode: str) -> SourcedTool:
    """Return a tool whose body calls another one, from a task of its own."""

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        found: list[ToolResult] = []

        async def call() -> None:
            found.append(await made.call(invocation(inner, call_id=f"{name}:inner")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
        return found[0]

    return core(name, body, execution_mode=mode)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("sequential", "parallel"), ("parallel", "sequential"), ("sequential", "sequential")],
)
async def test_a_tool_that_would_wait_for_itself_fails_at_once(outer: str, inner: str) -> None:
    """BEHAVIOURS 191: an error instead of a deadlock, and the run goes on."""
    made, _ = gate()
    stage = Stage()
    leaf = stage.tool("leaf", mode=inner)
    with anyio.fail_after(5), pytest.raises(CallError, match=REENTRANT):
        await made.call(invocation(nesting(made, "outer", leaf, mode=outer)))
    assert stage.log == []
    stage.go["leaf"].set()
    with anyio.fail_after(5):
        assert (await made.call(invocation(leaf))).details == "leaf"


async def test_a_parallel_tool_may_call_a_parallel_one_even_past_a_queue() -> None:
    """BEHAVIOURS 191: fairness to a waiting sequential call must not deadlock those inside."""
    made, _ = gate()
    stage = Stage()
    leaf, gatekeeper = stage.tool("leaf"), anyio.Event()

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        await gatekeeper.wait()
        return await made.call(invocation(leaf, call_id="inner"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(core("outer", body)))
        await settle()
        tasks.start_soon(made.call, invocation(stage.tool("s", mode="sequential")))
        await settle()
        gatekeeper.set()
        with anyio.fail_after(5):
            await settle()
            assert stage.inside == {"leaf"}
            stage.go["leaf"].set()
            await settle()
            assert stage.inside == {"s"}
            stage.go["s"].set()


async def test_code_that_outlives_its_tool_is_no_longer_inside_it() -> None:
    """BEHAVIOURS 191: a background task started by a sequential tool may call later."""
    made, _ = gate()
    stage = Stage()
    leaf, later, results = stage.tool("leaf", mode="sequential"), anyio.Event(), []
    stage.go["leaf"].set()

    async with anyio.create_task_group() as tasks:

        async def background() -> None:
            await later.wait()
            results.append(await made.call(invocation(leaf)))

        async def body(arguments: Any, context: Any) -> ToolResult:
            del arguments, context
            tasks.start_soon(background)
            return ToolResult(details=None)

        await made.call(invocation(core("outer", body, execution_mode="sequential")))
        later.set()
    assert [result.details for result in results] == ["leaf"]


async def test_a_turn_is_given_up_when_its_body_fails() -> None:
    """BEHAVIOURS 191: a failing sequential tool does not lock the run."""
    made, _ = gate()

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        raise RuntimeError("boom")

    tool = core("s", body, execution_mode="sequential")
    with anyio.fail_after(5):
        for _ in range(2):
            with pytest.raises(CallError, match="boom"):
                await made.call(invocation(tool))


async def test_a_sequential_tool_may_wait_for_a_call_of_another_run() -> None:
    """BEHAVIOURS 191, rule 2.5: a child run's calls do not wait for their parent's turn."""
    made, _ = gate()
    stage = Stage()
    leaf = stage.tool("leaf", mode="sequential")
    stage.go["leaf"].set()
    other = type(SCOPE)(agent_id="main", session_id="s", session_key="k", run_id="r2")

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        return await made.call(invocation(leaf, scope=other))

    with anyio.fail_after(5):
        result = await made.call(invocation(core("outer", body, execution_mode="sequential")))
    assert result.details == "leaf"
