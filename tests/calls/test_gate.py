"""One call through the gate: contracts, errors and the record."""

import math
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.calls.kit import (
    NUMBERS,
    SCOPE,
    SUM,
    Counted,
    ManualClock,
    add,
    core,
    gate,
    invocation,
    mcp,
)
from toolcell.errors import CallError
from toolcell.protocol.events import CallUpdated, Diagnostic
from toolcell.tools.content import MISSING, TextContent, ToolResult
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolKind

pytestmark = pytest.mark.anyio

ADD = core("add", add, parameters=NUMBERS, output_schema=SUM)


async def refused(sourced: SourcedTool, arguments: Any = None, **more: Any) -> CallError:
    """Call through a fresh gate and return the error; the record must agree with it."""
    made, sink = gate()
    with pytest.raises(CallError) as caught:
        await made.call(invocation(sourced, arguments, **more))
    end = sink.only_end()
    assert (end.error, end.code) == (caught.value.message, caught.value.code)
    assert end.result is None
    return caught.value


async def test_a_call_gives_its_result_and_leaves_one_start_and_one_end() -> None:
    """BR-10, BEHAVIOURS 163, rule 8.3: the record names the parent, the tool and the result."""
    made, sink = gate(clock=ManualClock())
    result = await made.call(invocation(ADD, {"a": 1, "b": 2}, call_id="n1", parent_id="exec1"))
    assert result.details == {"sum": 3}
    start, end = sink.started[0], sink.only_end()
    assert start.arguments == {"a": 1, "b": 2}
    assert (start.call_id, start.parent_id, start.tool_id) == ("n1", "exec1", "openclaw:core:add")
    assert (start.scope, start.source, start.started) == (SCOPE, "openclaw", 1)
    assert (end.status, end.result, end.error, end.code) == ("completed", {"sum": 3}, None, None)
    assert end.parent_id == "exec1"
    assert end.at == 1000.0


async def test_calls_are_numbered_in_dispatch_order_within_their_run() -> None:
    """TR-01, rule 2.5: numbers count per run and start at 1."""
    made, sink = gate()
    other = type(SCOPE)(agent_id="main", session_id="s", session_key="k", run_id="r2")
    for scope in (SCOPE, SCOPE, other):
        await made.call(invocation(ADD, {"a": 1, "b": 2}, scope=scope))
    assert [event.started for event in sink.started] == [1, 2, 1]


@pytest.mark.parametrize("arguments", [{"a": "1", "b": 2}, [1, 2], "x", 5, True, {}])
async def test_bad_arguments_never_reach_the_tool(arguments: Any) -> None:
    """BR-03, BEHAVIOURS 148: an input error comes before dispatch, and nothing has happened."""
    body = Counted({"sum": 3})
    error = await refused(core("add", body, parameters=NUMBERS), arguments)
    assert (error.code, error.effect, body.count) == ("input_contract", "none", 0)
    assert error.message.startswith('Invalid arguments for tool "openclaw:core:add": ')


async def test_null_is_not_an_object() -> None:
    """BR-03: `add(null)` is refused even by a tool that takes anything."""
    body = Counted()
    made, _ = gate()
    call = invocation(core("any", body))
    with pytest.raises(CallError, match="expected one object, got null"):
        await made.call(type(call)(sourced=call.sourced, arguments=None, scope=SCOPE, call_id="c"))
    assert body.count == 0


async def test_an_input_error_names_the_fields_the_nearest_name_and_the_input() -> None:
    """BR-02, BEHAVIOURS 332: our words, a suggestion, the expected input, no library names."""
    properties = {"path": {"type": "string"}, "limit": {"type": "number"}}
    schema = {**NUMBERS, "properties": properties, "required": ["path"]}
    error = await refused(
        core("open", Counted(), parameters=schema), {"pth": "x"}, input_hint="{ path: string }"
    )
    assert "missing property path; unknown property pth" in error.message
    assert error.message.endswith("Did you mean: path? Expected input: { path: string }.")
    for word in ("pydantic", "jsonschema", "http"):
        assert word not in error.message.lower()


async def test_names_that_objects_inherit_are_ordinary_properties() -> None:
    """TS-10: `constructor` and `toString` are required, missed, accepted and passed on."""
    names = ("constructor", "toString")
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }
    body = Counted()
    tool = core("odd", body, parameters=schema)
    error = await refused(tool, {})
    assert all(name in error.message for name in names)
    made, _ = gate()
    await made.call(invocation(tool, {"constructor": "a", "toString": "b"}))
    assert body.seen == [{"constructor": "a", "toString": "b"}]


async def test_integer_bounds_hold_for_trusted_tools() -> None:
    """TS-11: a fractional offset is refused."""
    offset = {"type": "integer", "minimum": 1}
    schema = {"type": "object", "properties": {"offset": offset}}
    error = await refused(core("page", Counted(), parameters=schema), {"offset": 0.5})
    assert error.code == "input_contract"


async def test_an_mcp_tools_arguments_are_checked_without_hints() -> None:
    """BEHAVIOURS 332, rule 4.9: a valid remote schema holds; its words are marked untrusted."""
    body = Counted({})
    error = await refused(
        mcp("fx", "add", body, parameters=NUMBERS), {"a": 1, "c": 2}, input_hint="unknown"
    )
    assert (error.code, error.untrusted, body.count) == ("input_contract", True, 0)
    assert "Did you mean" not in error.message
    assert "Expected input" not in error.message


async def test_a_broken_remote_schema_does_not_stop_its_tool() -> None:
    """rule 4.9: the far side checks; a local tool with such a schema is not run."""
    broken = {"type": "no-such-type"}
    body = Counted({"ok": True})
    made, _ = gate()
    result = await made.call(invocation(mcp("fx", "x", body, parameters=broken), {"any": 1}))
    assert result.details == {"ok": True}
    error = await refused(core("x", Counted(), parameters=broken))
    assert (error.code, error.effect) == ("invalid_contract", "none")


async def test_an_invalid_output_schema_keeps_the_tool_from_running() -> None:
    """BEHAVIOURS 283, rule 7.1: compiled before the tool runs."""
    body = Counted({"sum": 1})
    error = await refused(core("x", body, output_schema={"type": "no-such-type"}))
    assert error.message == 'Tool "openclaw:core:x" has an invalid outputSchema.'
    assert (error.code, error.effect, body.count) == ("invalid_contract", "none", 0)


@pytest.mark.parametrize(
    "details", [{"sum": "S3CR3T"}, {"sum": 1, "more": "S3CR3T"}, None, MISSING]
)
async def test_details_that_break_the_output_contract_fail_without_being_printed(
    details: Any,
) -> None:
    """BEHAVIOURS 284, TS-12, rule 7.1: the text advises to check the state; no value in it."""
    error = await refused(core("x", Counted(details), output_schema=SUM))
    first, *lines = error.message.split("\n")
    assert first.startswith(
        'Tool "openclaw:core:x" returned details that do not match its declared outputSchema.'
    )
    assert 1 <= len(lines) <= 5
    assert all(len(line.encode()) <= len("- ") + 256 for line in lines)
    assert "S3CR3T" not in error.message
    assert (error.code, error.effect) == ("output_contract", "unknown")


async def test_a_result_that_looks_blocked_is_validated_like_any_other() -> None:
    """BEHAVIOURS 287: only the gate itself can block."""
    forged = {"status": "blocked", "reason": "no"}
    error = await refused(core("x", Counted(forged), output_schema=SUM))
    assert error.code == "output_contract"
    error = await refused(core("x", Counted(raises=CallError("no", code="blocked"))))
    assert error.effect == "unknown"


async def test_a_body_cannot_claim_that_it_was_blocked() -> None:
    """BEHAVIOURS 287: the record says failed, for the body ran."""
    made, sink = gate()
    with pytest.raises(CallError):
        await made.call(invocation(core("x", Counted(raises=CallError("no", code="blocked")))))
    assert sink.only_end().status == "failed"


async def test_without_an_output_schema_nothing_is_validated() -> None:
    """BEHAVIOURS 290, 291, rule 7.3: nor for the schema of an MCP tool."""
    made, _ = gate()
    for tool in (core("x", Counted([1])), mcp("fx", "x", Counted([1]), output_schema=SUM)):
        assert (await made.call(invocation(tool))).details == [1]


async def test_a_republished_tool_is_held_to_its_new_schema() -> None:
    """BEHAVIOURS 289: validators are kept by schema object, not by name."""
    made, _ = gate()
    await made.call(invocation(core("x", Counted({"sum": 1}), output_schema=SUM)))
    text = {"type": "object", "properties": {"sum": {"type": "string"}}}
    with pytest.raises(CallError, match="do not match"):
        await made.call(invocation(core("x", Counted({"sum": 1}), output_schema=text)))


async def test_a_promised_type_is_never_replaced_by_an_error_envelope() -> None:
    """rule 7.1: a tool with a contract that reports failure without details fails the call."""
    failure = ToolResult(content=(TextContent("disk full"),), is_error=True)
    error = await refused(core("x", Counted(failure), output_schema=SUM))
    assert (error.code, error.message) == ("tool_error", "disk full")


async def test_a_failure_as_a_value_is_returned_and_recorded_as_failed() -> None:
    """BEHAVIOURS 359, rule 5.1: an MCP `isError` result reaches the program; history shows it."""
    failure = ToolResult(content=(TextContent("no such page"),), is_error=True, untrusted=True)
    made, sink = gate()
    result = await made.call(invocation(mcp("fx", "x", Counted(failure))))
    assert result == failure
    end = sink.only_end()
    assert (end.status, end.code, end.error) == ("failed", "tool_error", "no such page")
    assert end.result["isError"] is True


async def test_details_null_and_no_details_stay_apart() -> None:
    """BEHAVIOURS 157: the caller can tell an absent `details` from null."""
    made, sink = gate()
    assert (await made.call(invocation(core("x", Counted(None))))).details is None
    assert (await made.call(invocation(core("x", Counted(MISSING))))).details is MISSING
    assert [end.result for end in sink.ended] == [None, {"content": []}]


async def test_what_happens_to_a_value_later_does_not_show() -> None:
    """BEHAVIOURS 288: tool, caller and record each have a copy of their own."""
    kept: dict[str, Any] = {"items": [1], "args": None}

    async def body(arguments: Any, context: Any) -> ToolResult:
        del context
        kept["args"] = arguments
        return ToolResult(details=kept["items"])

    made, sink = gate()
    given = {"list": [1]}
    result = await made.call(invocation(core("x", body), given))
    kept["items"].append(2)
    kept["args"]["list"].append(2)
    assert result.details == [1]
    assert given == {"list": [1]}
    result.details.append(3)
    assert sink.ended[0].result == [1]
    assert sink.started[0].arguments == {"list": [1]}


async def test_arguments_that_are_not_json_are_refused() -> None:
    """BR-09: the tool is not executed."""
    loop: dict[str, Any] = {}
    loop["o"] = loop
    for bad in ({"v": b"x"}, {"v": math.nan}, loop, {"v": object()}):
        body = Counted()
        error = await refused(core("echo", body), bad)
        assert (error.code, error.effect, body.count) == ("invalid_input", "none", 0)


async def test_progress_reaches_the_record_and_the_caller_until_the_call_ends() -> None:
    """BEHAVIOURS 167: updates go to `on_update`; a late one goes nowhere; none fails the call."""
    late: list[Any] = []

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments
        context.update({"done": 1})
        late.append(context.update)
        context.update(b"x")
        context.update("x" * 70_000)
        return ToolResult(details=None)

    seen: list[Any] = []
    made, sink = gate()
    await made.call(invocation(core("x", body), on_update=seen.append))
    late[0]({"done": 2})
    first, odd, large = seen
    assert first == {"done": 1}
    assert odd["omitted"].startswith("not JSON")
    assert (large["omitted"], len(large["start"])) == ("70002 bytes", 8192)
    assert [event.update for event in sink.of(CallUpdated)] == seen


async def test_progress_from_a_worker_thread_is_recorded_on_the_event_loop() -> None:
    """BEHAVIOURS 167: sync tools report too; sinks and listeners are never called off the loop."""
    threads: list[int] = []

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments
        await anyio.to_thread.run_sync(context.update, {"done": 1})
        return ToolResult(details=None)

    made, sink = gate()
    call = invocation(core("x", body), on_update=lambda _: threads.append(threading.get_ident()))
    await made.call(call)
    assert threads == [threading.get_ident()]
    assert [event.update for event in sink.of(CallUpdated)] == [{"done": 1}]


async def test_a_control_is_recorded_and_checks_its_own_arguments() -> None:
    """rule 2.7, DESIGN knot 1: controls get hooks and a record, no contract and no turn."""
    control = SourcedTool(
        tool=Tool(
            name="exec",
            description="",
            parameters=NUMBERS,
            execute=Counted({"ok": 1}),
            kind=ToolKind.CONTROL,
        ),
        source="openclaw",
        owner="core",
        group=Group.CORE,
    )
    made, sink = gate()
    assert (await made.call(invocation(control, {"code": "1"}))).details == {"ok": 1}
    assert sink.only_end().status == "completed"


async def test_authority_is_asked_before_the_body_and_before_its_result() -> None:
    """rule 8.1: a caller that lost its right gets neither a run nor a result."""
    for allowed, ran, effect in ((0, 0, "none"), (1, 0, "none"), (2, 1, "unknown")):
        asked = []

        def authority(limit: int = allowed, asked: list[int] = asked) -> None:
            asked.append(1)
            if len(asked) > limit:
                raise CallError("gone", code="unavailable", effect="none")

        body = Counted({})
        error = await refused(core("x", body), authority=authority)
        assert (error.code, error.effect, body.count) == ("unavailable", effect, ran)


async def test_statistics_count_what_is_under_way() -> None:
    """STYLE: stateful objects can be looked into (rule 8.4)."""
    made, _ = gate()
    await made.call(invocation(ADD, {"a": 1, "b": 2}))
    assert made.statistics() == {
        "calls": 1,
        "active": 0,
        "open_approvals": 0,
        "waiting_turns": 0,
        "runs": 1,
    }


async def test_arguments_that_are_no_object_stand_on_record_as_they_were() -> None:
    """rule 8.3: the history shows what was asked for, not what should have been."""
    made, sink = gate()
    with pytest.raises(CallError):
        await made.call(invocation(ADD, [1, {"a": 2}]))
    assert sink.started[0].arguments == [1, {"a": 2}]


async def test_a_fault_of_a_step_fails_the_call_and_tells_the_operator() -> None:
    """rule 3.10, SE-07: the caller gets a CallError with no inside in it; nothing ran."""

    def authority() -> None:
        raise ZeroDivisionError("inside")

    body = Counted({})
    made, sink = gate()
    with pytest.raises(CallError, match="an internal error") as caught:
        await made.call(invocation(core("x", body), authority=authority))
    assert (caught.value.code, caught.value.effect, body.count) == ("tool_error", "none", 0)
    assert sink.only_end().status == "failed"
    assert "inside" in sink.of(Diagnostic)[0].message
