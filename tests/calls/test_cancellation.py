"""Cancelling a call at every point of its way: one end, `aborted`, nothing left behind."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.calls.kit import Counted, Recording, core, gate, invocation
from toolcell.base.deadline import Deadline
from toolcell.calls.gate import Gate
from toolcell.calls.hooks import ABORT_GRACE_SECONDS
from toolcell.errors import CallError
from toolcell.policy.approvals import ApprovalRule, ApprovalRules
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest
from toolcell.protocol.events import ApprovalAnswered
from toolcell.protocol.hooks import AfterToolCall, Hooks
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import SourcedTool

pytestmark = pytest.mark.anyio

ASK = ApprovalRules((ApprovalRule(tool="*", decision="ask"),))


class Silent:
    """An approver that never answers."""

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        del request
        await anyio.sleep_forever()
        raise AssertionError


class Hanging:
    """A tool body that never ends, and notes how it was stopped."""

    def __init__(self) -> None:
        self.entered = anyio.Event()
        self.cleaned = False

    async def __call__(self, arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        self.entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cleaned = True
        raise AssertionError


async def aborted(made: Gate, sink: Recording, tool: SourcedTool, **more: Any) -> None:
    """Start a call, let it come to rest, cancel it, and check that it ended once, as aborted."""
    before = len(sink.ended)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(tool, call_id="victim", **more))
        with anyio.fail_after(5):
            await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    ends = sink.ended[before:]
    assert [(end.call_id, end.status, end.code) for end in ends] == [
        ("victim", "aborted", "aborted")
    ]
    assert len([event for event in sink.started if event.call_id == "victim"]) == 1


async def test_cancelled_in_its_body_the_body_is_cancelled() -> None:
    """rule 8.1, BEHAVIOURS 110: the body cleans up, the record says aborted, once."""
    body = Hanging()
    made, sink = gate()
    await aborted(made, sink, core("x", body))
    assert body.cleaned
    assert made.statistics()["active"] == 0


async def test_cancelled_while_a_person_is_asked_the_tool_never_runs() -> None:
    """PO-07, rule 3.5: the question is closed as a no, the budget goes on."""
    body, budget = Counted(), Deadline(60)
    made, sink = gate(approver=Silent(), approvals=ASK)
    await aborted(made, sink, core("x", body), budget=budget)
    (answer,) = sink.of(ApprovalAnswered)
    assert (answer.approved, answer.reason) == (False, "the call was aborted while it waited")
    assert (body.count, budget.paused, made.statistics()["open_approvals"]) == (0, False, 0)


async def test_cancelled_while_it_waits_for_its_turn_it_leaves_the_queue() -> None:
    """BEHAVIOURS 191: those behind it are not held up."""
    made, sink = gate()
    release, body = anyio.Event(), Counted()

    async def hold(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        await release.wait()
        return ToolResult(details=None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(core("first", hold)))
        with anyio.fail_after(5):
            await anyio.wait_all_tasks_blocked()
        await aborted(made, sink, core("x", body, execution_mode="sequential"))
        assert made.statistics()["waiting_turns"] == 0
        with anyio.fail_after(5):
            await made.call(invocation(core("y", Counted())))
        release.set()
    assert body.count == 0


async def test_cancelled_at_the_very_moment_its_turn_comes_the_turn_is_not_lost() -> None:
    """BEHAVIOURS 191: granted and cancelled together, the turn goes to the next."""
    made, sink = gate()
    release, body, scope = anyio.Event(), Counted(), anyio.CancelScope()

    async def hold(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        await release.wait()
        scope.cancel()
        return ToolResult(details=None)

    async def victim() -> None:
        with scope:
            await made.call(invocation(core("x", body, execution_mode="sequential")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(core("s", hold, execution_mode="sequential")))
        with anyio.fail_after(5):
            await anyio.wait_all_tasks_blocked()
        tasks.start_soon(victim)
        with anyio.fail_after(5):
            await anyio.wait_all_tasks_blocked()
        release.set()
    assert body.count == 0
    assert sorted(end.status for end in sink.ended) == ["aborted", "completed"]
    with anyio.fail_after(5):
        await made.call(invocation(core("y", Counted(), execution_mode="sequential")))


async def sleeping(_: object) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("place", ["before", "after"])
async def test_cancelled_in_a_hook_it_ends_as_aborted(place: str) -> None:
    """rule 8.1: preparation and result finalisation are covered like the body."""
    body = Counted({})
    hooks = Hooks(before=[sleeping]) if place == "before" else Hooks(after=[sleeping])
    made, sink = gate(hooks=hooks)
    await aborted(made, sink, core("x", body))
    assert body.count == (1 if place == "after" else 0)


async def test_an_after_hook_is_told_of_an_abort_and_cannot_delay_it_for_long() -> None:
    """rule 8.1: shielded for a second, then cut off."""
    seen: list[str] = []

    async def slow(after: AfterToolCall) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(after.status)
        await anyio.sleep_forever()

    made, sink = gate(hooks=Hooks(after=[slow]))
    before = anyio.current_time()
    await aborted(made, sink, core("x", Hanging()))
    assert seen == ["aborted"]
    assert anyio.current_time() - before < ABORT_GRACE_SECONDS + 1.0


async def test_a_body_that_turns_its_cancellation_into_an_error_is_still_aborted() -> None:
    """rule 8.1: what it raises instead changes nothing."""

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise RuntimeError("swallowed") from error
        raise AssertionError

    made, sink = gate()
    await aborted(made, sink, core("x", body))


async def test_a_native_task_cancellation_is_an_abort_too() -> None:
    """rule 8.1: `asyncio` users cancel tasks, not scopes."""
    body = Hanging()
    made, sink = gate()
    task = asyncio.ensure_future(made.call(invocation(core("x", body))))
    with anyio.fail_after(5):
        await body.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert body.cleaned
    assert sink.only_end().status == "aborted"


async def test_a_timeout_inside_a_tool_is_the_tools_own_failure() -> None:
    """BEHAVIOURS 148: only the caller's cancellation is an abort."""

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        with anyio.fail_after(0.01):
            await anyio.sleep_forever()
        raise AssertionError

    made, sink = gate()
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("x", body)))
    assert caught.value.code == "tool_error"
    assert sink.only_end().status == "failed"


def cancelled_future(_: object) -> Callable[[], Any]:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return future  # type: ignore[return-value]


async def test_a_stray_cancellation_in_a_hook_or_approver_fails_closed() -> None:
    """SE-07, PO-07: it is a no, not an abort of the caller."""

    class Stray:
        async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
            await cancelled_future(request)  # type: ignore[misc]
            raise AssertionError

    body = Counted()
    for more in (
        {"hooks": Hooks(before=[cancelled_future])},
        {"approver": Stray(), "approvals": ASK},
    ):  # type: ignore[list-item]
        made, sink = gate(**more)
        with pytest.raises(CallError) as caught:
            await made.call(invocation(core("x", body)))
        assert caught.value.code == "blocked"
        assert sink.only_end().status == "blocked"
    assert body.count == 0
