"""Suspending, parking, restoring, disposing."""

from __future__ import annotations

import json

import pytest

from tests.execution.conformance.conftest import Kind
from tests.execution.conformance.harness import run, suspend
from toolcell.execution.contract import Answer, Executor, Faulted, Finished, Limits, Suspended

pytestmark = pytest.mark.anyio

STATE = """const big = Array.from({length: 500}, (_, i) => ({i, name: 'row' + i}));
const map = new Map([['k', {deep: [1, 2, {x: new Date(0)}]}]]); let closure = 1;
const bump = () => ++closure;
const gen = (function*() { let n = 0; for (;;) yield n++ })(); gen.next();
const pending = [call('a'), call('b')]; const chained = pending[1].then((v) => v + '!');
"""


async def test_a_parked_program_goes_on_where_it_was(executor: Executor) -> None:
    """rule 3.6: closures, generators, maps and pending promises survive; nothing is replayed."""
    step = await suspend(
        executor,
        STATE + "text('once'); const a = await pending[0]; text('resumed'); "
        "return [a, await chained, bump(), gen.next().value, big[7], [...map], big.length]",
    )
    assert [frame.text for frame in step.output] == ["once"]
    size = await step.continuation.park()
    assert isinstance(size, int)
    middle = await step.continuation.resume([Answer(1, '{"v":"✓"}')], 5)
    assert isinstance(middle, Suspended)
    assert [frame.text for frame in middle.output] == ["resumed"]
    assert isinstance(await middle.continuation.park(), int)
    end = await middle.continuation.resume([Answer(2, '"b"')], 5)
    assert isinstance(end, Finished)
    expected_map = [["k", {"deep": [1, 2, {"x": "1970-01-01T00:00:00.000Z"}]}]]
    assert json.loads(end.value) == [
        {"v": "✓"},
        "b!",
        2,
        1,
        {"i": 7, "name": "row7"},
        expected_map,
        500,
    ]


async def test_a_thousand_suspensions(executor: Executor) -> None:
    """rule 3.6: live and parked ones mixed."""
    source = """let s = 0; for (let i = 0; i < 1000; i++) {
      s += await call('echo', i); globalThis['k' + i % 50] = 'v'.repeat(i) } return s"""
    assert (await run(executor, source)).value == 499500
    parked = await run(executor, source.replace("1000", "100"), park=True)
    assert (parked.value, parked.steps) == (4950, 101)


async def test_parking_keeps_memory_that_was_grown(executor: Executor) -> None:
    """rule 3.7."""
    source = """const big = new Uint8Array(5e6);
      for (let i = 0; i < big.length; i += 4096) big[i] = i % 251;
      const more = 'y'.repeat(1e6); await call('a');
      let ok = true; for (let i = 0; i < big.length; i += 4096) ok &&= big[i] === i % 251;
      return [ok, more.length]"""
    assert (await run(executor, source, park=True)).value == [True, 1_000_000]


async def test_a_state_over_the_snapshot_limit_is_a_fault(executor: Executor, kind: Kind) -> None:
    """BEHAVIOURS 205."""
    if not kind.snapshots:
        pytest.skip("this executor keeps suspended programs alive")
    step = await suspend(
        executor,
        "const s = 'x'.repeat(100000); await call('a'); return s",
        limits=Limits(snapshot_bytes=1024),
    )
    fault = await step.continuation.park()
    assert isinstance(fault, Faulted)
    assert fault.kind == "snapshot_limit"
    assert executor.statistics()["live"] + executor.statistics()["parked"] == 0


async def test_limits_still_hold_after_a_park(executor: Executor, kind: Kind) -> None:
    """rule 9.4: memory and time."""
    limits = Limits(memory_bytes=4 << 20)
    bomb = "await call('a'); const a = []; for (;;) a.push(new Array(1000).fill(0))"
    ran = await run(executor, bomb, limits=limits, park=True)
    assert "memory" in ran.fault.error.message
    if kind.boundary:
        assert ran.fault.kind == "memory"
    loop = await run(executor, "await call('a'); for (;;);", seconds=0.1, park=True)
    assert loop.fault.kind == "timeout"


async def test_time_goes_forward_across_a_park(executor: Executor) -> None:
    """BEHAVIOURS 107."""
    source = """const t = [Date.now(), performance.now()]; await call('a');
      return [Date.now() >= t[0], performance.now() >= t[1], t[1] >= 0, t[1] < 60000]"""
    assert (await run(executor, source, park=True)).value == [True] * 4


async def test_disposing_frees_and_may_be_repeated(executor: Executor) -> None:
    """rule 3.8."""
    step = await suspend(executor, "await call('a')")
    parked = await suspend(executor, "await call('a')")
    await parked.continuation.park()
    counts = executor.statistics()
    assert counts["live"] + counts["parked"] == 2
    for one in (step, parked):
        await one.continuation.dispose()
        await one.continuation.dispose()
    counts = executor.statistics()
    assert counts["live"] + counts["parked"] == 0


async def test_sixty_four_suspended_programs_resume_in_any_order(executor: Executor) -> None:
    """RS-02."""
    steps = [
        await suspend(executor, f"const v = await call('a'); return [{i}, v]") for i in range(64)
    ]
    for number in range(0, 64, 2):
        await steps[number].continuation.park()
    for number in reversed(range(64)):
        end = await steps[number].continuation.resume([Answer(1, str(number))], 5)
        assert isinstance(end, Finished)
        assert json.loads(end.value) == [number, number]
