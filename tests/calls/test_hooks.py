"""Hooks around a call: rewrite, block, ask, replace; closed when one fails."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.calls.kit import NUMBERS, SCOPE, SUM, Counted, add, core, gate, invocation, plugin
from toolcell.errors import CallError
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest
from toolcell.protocol.events import ApprovalRequested, Diagnostic
from toolcell.protocol.hooks import (
    AfterToolCall,
    Ask,
    BeforeToolCall,
    Block,
    Hooks,
    Proceed,
    ReplaceDetails,
)
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolKind

pytestmark = pytest.mark.anyio


def cell(body: Counted) -> SourcedTool:
    tool = Tool(name="exec", description="", parameters={}, execute=body, kind=ToolKind.CONTROL)
    return SourcedTool(tool=tool, source="openclaw", owner="core", group=Group.CORE)


async def test_a_hook_sees_who_calls_what() -> None:
    """BEHAVIOURS 79, rule 8.1: scope, call, parent, tool and source are all there."""
    seen: list[BeforeToolCall] = []
    made, _ = gate(hooks=Hooks(before=[seen.append]))
    tool = plugin("tickets", "create", Counted())
    await made.call(invocation(tool, {"a": 1}, call_id="n1", parent_id="exec1"))
    (view,) = seen
    assert view.scope is SCOPE
    assert (view.call_id, view.parent_id) == ("n1", "exec1")
    assert (view.tool_name, view.tool_id) == ("create", "openclaw:tickets:create")
    assert (view.source, view.source_name) == ("openclaw", "tickets")
    assert view.arguments == {"a": 1}
    assert (view.tool_kind, view.tool_input_kind) == (None, None)


async def test_a_code_cell_is_told_apart_from_the_shell() -> None:
    """PO-06, BEHAVIOURS 73, 78, rule 3.12: one name, two kinds; a control has no catalog id."""
    seen: list[BeforeToolCall] = []
    made, _ = gate(hooks=Hooks(before=[seen.append]))
    kinds: dict[str, Any] = {"tool_kind": "code_mode_exec", "tool_input_kind": "javascript"}
    await made.call(invocation(cell(Counted()), {"code": "1"}, **kinds))
    await made.call(invocation(core("exec", Counted()), {"command": "ls"}))
    assert [(v.tool_name, v.tool_id, v.tool_kind, v.tool_input_kind) for v in seen] == [
        ("exec", None, "code_mode_exec", "javascript"),
        ("exec", "openclaw:core:exec", None, None),
    ]


async def test_hooks_rewrite_in_turn_and_the_result_is_validated() -> None:
    """BEHAVIOURS 332, 336, rule 2.1: in order, each on the last one's work; then the contract."""

    def bump(view: BeforeToolCall) -> Proceed:
        return Proceed(arguments={**view.arguments, "a": view.arguments["a"] + 1})

    async def double(view: BeforeToolCall) -> Proceed:
        return Proceed(arguments={**view.arguments, "a": view.arguments["a"] * 2})

    made, sink = gate(hooks=Hooks(before=[bump, double, lambda _: None, lambda _: Proceed()]))
    tool = core("add", add, parameters=NUMBERS)
    assert (await made.call(invocation(tool, {"a": 1, "b": 0}))).details == {"sum": 4}
    assert sink.started[0].arguments == {"a": 4, "b": 0}
    broken, _ = gate(hooks=Hooks(before=[lambda _: Proceed(arguments={"a": "x"})]))
    with pytest.raises(CallError) as caught:
        await broken.call(invocation(tool, {"a": 1, "b": 0}))
    assert caught.value.code == "input_contract"


async def test_a_hook_cannot_rewrite_in_place() -> None:
    """rule 8.1: what it is shown is a copy, for arguments and for details."""

    def before(view: BeforeToolCall) -> None:
        assert isinstance(view.arguments, dict)
        view.arguments["list"].append("smuggled")

    def after(seen: AfterToolCall) -> None:
        seen.details["list"].append("smuggled")

    body = Counted({"list": []})
    made, _ = gate(hooks=Hooks(before=[before], after=[after]))
    given: dict[str, Any] = {"list": []}
    result = await made.call(invocation(core("x", body), given))
    assert body.seen == [{"list": []}]
    assert given == {"list": []}
    assert result.details == {"list": []}


async def test_the_first_block_ends_it() -> None:
    """PO-03, BEHAVIOURS 166, 286, 359: the reason reaches the caller, the tool never runs."""
    later: list[BeforeToolCall] = []
    body = Counted()
    made, sink = gate(hooks=Hooks(before=[lambda _: Block(reason="no"), later.append]))
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("count", body, output_schema=SUM)))
    assert caught.value.message == 'Tool "openclaw:core:count" was blocked before execution: no'
    assert (caught.value.code, caught.value.effect) == ("blocked", "none")
    assert (body.count, later) == (0, [])
    assert (sink.only_end().status, sink.only_end().code) == ("blocked", "blocked")


def explode(_: object) -> None:
    raise RuntimeError("the hook's own secret trouble")


async def slowly(_: object) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize(
    "hook",
    [
        explode,
        slowly,
        lambda _: {"block": True, "reason": "no"},
        lambda _: Proceed(arguments={"x": b"1"}),
        lambda _: Proceed(arguments=[1]),  # type: ignore[arg-type]
        lambda _: True,
    ],
)
async def test_a_hook_that_fails_closes_the_call(hook: Any) -> None:
    """PO-03, SE-07: raising, too slow or nonsense: the tool does not run, the operator is told."""
    body = Counted()
    made, sink = gate(hooks=Hooks(before=[hook], timeout_seconds=0.02))
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("count", body)))
    assert (caught.value.code, caught.value.effect, body.count) == ("blocked", "none", 0)
    assert "hook failed" in caught.value.message
    assert "secret trouble" not in caught.value.message
    (told,) = sink.of(Diagnostic)
    assert told.subject == "openclaw:core:count"
    assert "fails closed" in told.message
    assert sink.only_end().status == "blocked"


async def test_without_a_hook_registry_every_call_is_blocked() -> None:
    """SE-07: missing hooks are not the same as no hooks; the run can report the reason."""
    body = Counted()
    made, _ = gate(hooks=None)
    for tool in (core("count", body), cell(body)):
        with pytest.raises(CallError, match="policy hooks are not available for this run"):
            await made.call(invocation(tool))
    assert body.count == 0


async def test_hooks_that_ask_lead_to_one_question() -> None:
    """PO-07: several reasons, one request; a control can be asked about too."""
    asked: list[ApprovalRequest] = []

    class Yes:
        async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
            asked.append(request)
            return ApprovalAnswer(approved=True)

    hooks = Hooks(before=[lambda _: Ask(reason="pays"), lambda _: Ask(reason="emails")])
    made, sink = gate(hooks=hooks, approver=Yes())
    await made.call(invocation(core("pay", Counted())))
    await made.call(invocation(cell(Counted())))
    assert [request.reason for request in asked] == ["pays; emails"] * 2
    assert len(sink.of(ApprovalRequested)) == 2


async def test_after_hooks_see_the_outcome_and_may_replace_the_details() -> None:
    """BEHAVIOURS 285, rule 7.1: each sees what the one before returned; the last is validated."""
    seen: list[Any] = []

    def one(after: AfterToolCall) -> ReplaceDetails:
        seen.append((after.status, after.details, after.error, after.before.arguments))
        return ReplaceDetails(details={"sum": 10})

    async def two(after: AfterToolCall) -> ReplaceDetails:
        seen.append(after.details)
        return ReplaceDetails(details={"sum": after.details["sum"] + 1})

    made, sink = gate(hooks=Hooks(after=[one, two]))
    tool = core("add", add, parameters=NUMBERS, output_schema=SUM)
    result = await made.call(invocation(tool, {"a": 1, "b": 2}))
    assert result.details == {"sum": 11}
    assert seen == [("completed", {"sum": 3}, None, {"a": 1, "b": 2}), {"sum": 10}]
    assert sink.ended[0].result == {"sum": 11}
    assert result.content == (TextContent('{"sum":11}'),)
    for bad in ({"sum": "x"}, {"sum": b"x"}):
        made, _ = gate(hooks=Hooks(after=[lambda _, bad=bad: ReplaceDetails(details=bad)]))
        with pytest.raises(CallError) as caught:
            await made.call(invocation(tool, {"a": 1, "b": 2}))
        assert caught.value.code == "output_contract"


@pytest.mark.parametrize("hook", [explode, slowly, lambda _: {"details": 1}])
async def test_an_after_hook_that_fails_withholds_the_result(hook: Any) -> None:
    """PO-03, SE-07: fails closed; the effects are said to be unknown; hooks run once."""
    times: list[AfterToolCall] = []
    body = Counted({"secret": 1})
    made, sink = gate(hooks=Hooks(after=[times.append, hook], timeout_seconds=0.02))
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("count", body)))
    assert (caught.value.code, caught.value.effect) == ("blocked", "unknown")
    assert "ran, but a policy hook failed" in caught.value.message
    assert (body.count, len(times)) == (1, 1)
    assert sink.only_end().status == "failed"
    assert sink.only_end().result is None


async def test_a_replacement_hides_what_the_content_said() -> None:
    """BEHAVIOURS 285: a hook that masks details masks the text for a model too; null counts."""
    told = ToolResult(content=(TextContent("the secret"),))
    made, _ = gate(hooks=Hooks(after=[lambda _: ReplaceDetails(details=None)]))
    result = await made.call(invocation(core("x", Counted(told))))
    assert result == ToolResult(content=(TextContent("null"),), details=None)


async def test_what_a_tool_does_to_its_arguments_is_not_shown_to_hooks() -> None:
    """rule 8.1: `after` hooks see the call as it was decided."""
    seen: list[AfterToolCall] = []

    async def body(arguments: Any, context: Any) -> ToolResult:
        del context
        arguments["list"].append("smuggled")
        return ToolResult(details=None)

    for before in ([], [lambda _: None]):
        made, _ = gate(hooks=Hooks(before=before, after=[seen.append]))
        await made.call(invocation(core("x", body), {"list": []}))
        assert seen[-1].before.arguments == {"list": []}


async def test_after_hooks_see_calls_that_failed_too() -> None:
    """BEHAVIOURS 336: once per call; nothing can be replaced; a failing one changes nothing."""
    seen: list[AfterToolCall] = []

    def replace(after: AfterToolCall) -> ReplaceDetails:
        seen.append(after)
        return ReplaceDetails(details="made up")

    tool = core("boom", Counted(raises=RuntimeError("boom: q")), parameters=NUMBERS)
    made, sink = gate(hooks=Hooks(after=[replace, explode]))
    for arguments, message in (({"a": 1, "b": 1}, "boom: q"), ({}, "Invalid arguments")):
        with pytest.raises(CallError, match=message):
            await made.call(invocation(tool, arguments))
    blocking, _ = gate(hooks=Hooks(before=[lambda _: Block(reason="no")], after=[replace]))
    with pytest.raises(CallError, match="blocked"):
        await blocking.call(invocation(tool, {"a": 1, "b": 1}))
    assert [after.status for after in seen] == ["failed", "failed", "blocked"]
    assert [after.details for after in seen] == [None] * 3
    assert len(sink.ended) == 2


async def test_after_hooks_see_a_failure_that_came_as_a_value() -> None:
    """BEHAVIOURS 359: `isError` counts as failed, with its text."""
    seen: list[AfterToolCall] = []
    failure = ToolResult(content=(TextContent("no page"),), is_error=True)
    made, _ = gate(hooks=Hooks(after=[seen.append]))
    await made.call(invocation(core("x", Counted(failure))))
    assert (seen[0].status, seen[0].error) == ("failed", "no page")


async def test_a_blocked_call_is_recorded_as_it_was_asked_for() -> None:
    """rule 8.3: no tool got the rewritten arguments, so the caller's stand on record."""
    shown: list[Mapping[str, Any]] = []

    def note(view: BeforeToolCall) -> Block:
        shown.append(view.arguments)
        return Block(reason="no")

    hooks = Hooks(before=[lambda _: Proceed(arguments={"a": 2}), note])
    made, sink = gate(hooks=hooks)
    with pytest.raises(CallError):
        await made.call(invocation(core("x", Counted()), {"a": 1}))
    assert shown == [{"a": 2}]
    assert sink.started[0].arguments == {"a": 1}
