"""The record of one call, and what the gate remembers of runs."""

import pytest

from tests.calls.kit import SCOPE, Counted, ManualClock, Recording, core, gate, invocation
from toolcell.calls import gate as gate_module
from toolcell.calls.record import CallRecord, Recorder
from toolcell.calls.redaction import NO_SECRETS
from toolcell.protocol.scope import RunScope


def test_a_call_begins_and_ends_once_whatever_is_said_later() -> None:
    """rule 8.3, TR-03: exactly one start and one end; the first word counts."""
    sink, clock = Recording(), ManualClock()
    record = CallRecord(invocation(core("x", Counted())), 7, Recorder(sink, clock, NO_SECRETS))
    clock.now += 1.5
    record.begin({"a": 1})
    record.begin({"a": 2})
    record.end("completed", result=1)
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
