"""The record of one call, and what the gate remembers of runs."""

import pytest

from tests.calls.kit import SCOPE, Counted, ManualClock, Recording, core, gate, invocation
from toolcell.calls import gate as gate_module
from toolcell.calls.gate import Gate
from toolcell.calls.record import CallRecord, Recorder
from toolcell.calls.redaction import NO_SECRETS
from toolcell.errors import CallError
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ImageContent, TextContent, ToolResult


def test_a_call_begins_and_ends_once_whatever_is_said_later() -> None:
    """rule 8.3, TR-03: exactly one start and one end; the first word counts."""
    sink, clock = Recording(), ManualClock()
    record = CallRecord(invocation(core("x", Counted())), 7, Recorder(sink, clock, NO_SECRETS))
    clock.now += 1.5
    record.begin({"a": 1})
    record.begin({"a": 2})
    record.end("completed", result=ToolResult(content=(), details=1))
    record.end("aborted", error="late", code="aborted")
    assert [event.arguments for event in sink.started] == [{"a": 1}]
    assert [(event.status, event.result, event.duration_ms) for event in sink.ended] == [
        ("completed", 1, 1500.0)
    ]


@pytest.mark.anyio
async def test_the_gate_forgets_idle_runs_so_that_memory_stays_flat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rule 2.5: the least recently used goes first; one that is under way is kept."""
    monkeypatch.setattr(gate_module, "MAX_IDLE_RUNS", 3)
    made, sink = gate()

    async def call(run_id: str) -> None:
        scope = RunScope(agent_id="m", session_id="s", session_key="k", run_id=run_id)
        await made.call(invocation(core("x", Counted()), scope=scope))

    for run_id in ("a", "b", "a", "c", "d", "a", "b"):
        await call(run_id)
    assert made.statistics()["runs"] == 3
    assert [event.started for event in sink.started] == [1, 1, 2, 1, 1, 3, 1]
    assert SCOPE.run_id not in {event.scope.run_id for event in sink.started}


@pytest.mark.anyio
async def test_what_nobody_listens_to_is_not_made() -> None:
    """rule 8.3: a sink that wants diagnostics alone gets those; the call is none the wiser."""

    class Quiet(Recording):
        diagnostics_only = True

    sink, reports = Quiet(), []

    async def body(arguments, context):
        context.update({"half": True})
        return ToolResult(content=(), details=arguments)

    def broken(_call):
        raise LookupError

    made = Gate(sink=sink)
    asked = invocation(core("x", body), {"a": 1}, on_update=reports.append)
    assert (await made.call(asked)).details == {"a": 1}
    assert (sink.events, reports) == ([], [{"half": True}])
    blocked = Gate(sink=sink, hooks=Hooks(before=(broken,)))
    with pytest.raises(CallError):
        await blocked.call(invocation(core("x", Counted())))
    assert [type(event) for event in sink.events] == [Diagnostic]


def test_images_are_on_record_by_type_and_size() -> None:
    """A record is read by people, and the model has the image from its conversation."""
    sink = Recording()
    record = CallRecord(
        invocation(core("x", Counted())), 1, Recorder(sink, ManualClock(), NO_SECRETS)
    )
    record.begin({})
    content = (TextContent("a cat"), ImageContent("QUJDRA==", "image/png"))
    record.end("completed", result=ToolResult(content=content))
    assert sink.ended[0].result == {
        "content": [
            {"type": "text", "text": "a cat"},
            {"type": "image", "mimeType": "image/png", "bytes": 4},
        ]
    }
