"""Time and memory: what a program cannot take, whatever it does."""

from __future__ import annotations

import time

import anyio
import pytest

from tests.execution.conformance.conftest import Kind
from tests.execution.conformance.harness import first, program, run, suspend
from toolcell.execution.contract import Answer, Executor, Faulted, Limits

pytestmark = pytest.mark.anyio

MIB = 1 << 20


@pytest.mark.parametrize(
    "source",
    [
        "while (true) {}",
        "await null; while (true) {}",
        "function f() { return Promise.resolve().then(f) } await f()",
        "while (true) { try { while (true) {} } catch (e) { text('c') } finally { text('f') } }",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "async function g() { for (;;) await 0 } await g()",
        "return {get x() { while (true) {} }}",
        "return {toJSON() { while (true) {} }}",
        "return {then() { while (true) {} }}",
        "const s = 'a'.repeat(2e6); for (;;) s.indexOf('b')",
        "const s = 'a'.repeat(1 << 25); for (let i = 0; i < 1e6; i++) s.lastIndexOf('ab')",
        "const a = Array.from({length: 3e5}, (_, i) => i * 7919 % 100003); for (;;) a.sort()",
        "let x = 3n; for (;;) x = x * x % (1n << 60000n)",
        "const a = []; a.length = 4e9; a.indexOf(1)",
        "for (const x of (function*() { for (;;) yield 1 })()) ;",
        "new Promise(() => { while (true) {} })",
        "call('echo').then(() => { while (true) {} })",
    ],
)
async def test_endless_work_of_any_kind_times_out(executor: Executor, source: str) -> None:
    """EX-01, BEHAVIOURS 105, rule 9.4."""
    begin = time.perf_counter()
    ran = await run(executor, f"text('before'); {source}", seconds=0.1)
    assert ran.fault.kind == "timeout", ran.end
    assert time.perf_counter() - begin < 1.6
    assert ran.texts[0] == "before"


async def test_the_time_of_a_step_is_its_own(executor: Executor) -> None:
    """rule 3.5: each exec and wait has its own seconds; a resume may time out too."""
    step = await suspend(executor, "await call('a'); while (true) {}")
    end = await step.continuation.resume([Answer(1, "1")], 0.1)
    assert isinstance(end, Faulted)
    assert end.kind == "timeout"


async def test_huge_source_is_charged_to_the_time(executor: Executor) -> None:
    """EX-18: parsing cannot outlive the deadline either."""
    begin = time.perf_counter()
    await first(executor, "x=1;\n" * 1_000_000, seconds=0.3)
    assert time.perf_counter() - begin < 1.8


async def test_fifty_timeouts_leave_a_working_executor(executor: Executor) -> None:
    """EX-14."""
    for _ in range(50):
        step = await first(executor, "for (;;);", seconds=0.01)
        assert isinstance(step, Faulted)
        assert step.kind == "timeout"
    assert (await run(executor, "return 'alive'")).value == "alive"
    assert executor.statistics()["live"] == 0


async def test_the_loop_stays_responsive_while_programs_spin(executor: Executor) -> None:
    """EX-01, BEHAVIOURS 105: at least eight ticks of 20 ms in 300 ms."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.02)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        async with anyio.create_task_group() as spinning:
            for _ in range(2):
                spinning.start_soon(executor.start, program("while (true) {}"), Limits(), 0.4)
        group.cancel_scope.cancel()
    assert ticks >= 8


BOMBS = [
    "let s = ['k']; while (true) s = s.concat(s)",
    "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "const a = []; for (;;) a.push(new Array(1000).fill(0))",
    "const a = []; for (let i = 0;; i++) a.push('x'.repeat(1e5) + i)",
    "const m = new Map(); for (let i = 0;; i++) m.set({i}, i)",
    "const a = []; for (;;) a.push(Promise.reject(1))",
    "for (;;) call('echo', 'x'.repeat(1000)).catch(() => 0)",
]


@pytest.mark.parametrize("source", BOMBS)
async def test_a_memory_bomb_ends_its_own_program_only(
    executor: Executor, kind: Kind, source: str
) -> None:
    """EX-10, BEHAVIOURS 108, rule 9.4: a real error that speaks of memory, never null."""
    ran = await run(executor, source, limits=Limits(memory_bytes=8 * MIB), seconds=20)
    if kind.boundary:
        assert ran.fault.kind == "memory", ran.end
    assert "memory" in ran.fault.error.message.lower()
    assert (await run(executor, "return 1")).value == 1


@pytest.mark.parametrize(
    "body",
    [
        "let s = ['k']; while (true) s = s.concat(s)",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20))",
        "const a = []; for (;;) { try { a.push({}) } catch (e) { a.length = 0; throw e } }",
    ],
)
async def test_running_out_of_memory_is_never_caught_as_null(executor: Executor, body: str) -> None:
    """EX-10."""
    source = f"try {{ {body} }} catch (x) {{ return String(x) }}"
    ran = await run(executor, source, limits=Limits(memory_bytes=8 * MIB), seconds=20)
    said = ran.fault.error.message if isinstance(ran.end, Faulted) else ran.value
    assert "memory" in said.lower()


async def test_a_program_may_go_on_after_catching_an_out_of_memory(executor: Executor) -> None:
    """EX-10: the limit is an error like others while there is room to handle it."""
    source = "try { new Uint8Array(1 << 28) } catch (e) { return [e instanceof Error, 'went on'] }"
    ran = await run(executor, source, limits=Limits(memory_bytes=8 * MIB))
    assert ran.value == [True, "went on"]


async def test_memory_counts_what_the_program_adds(executor: Executor) -> None:
    """rule 1.2: the engine's own image is not charged."""
    source = "const a = new Uint8Array(700 * 1024).fill(1); return a.length"
    assert (await run(executor, source, limits=Limits(memory_bytes=MIB))).value == 700 * 1024


async def test_cancelling_a_start_stops_the_program_soon(executor: Executor) -> None:
    """BEHAVIOURS 110, EX-18."""
    await run(executor, "return 1")
    begin = time.perf_counter()
    with anyio.move_on_after(0.1) as scope:
        await first(executor, "while (true) {}", seconds=30)
    assert scope.cancelled_caught
    assert time.perf_counter() - begin < 0.6
    assert (await run(executor, "return 1")).value == 1
    assert executor.statistics()["live"] == 0


async def test_cancelling_a_resume_disposes_of_the_program(executor: Executor) -> None:
    """BEHAVIOURS 207."""
    step = await suspend(
        executor, "await call('a'); const s = 'a'.repeat(2e6); for (;;) s.indexOf('b')"
    )
    with anyio.move_on_after(0.1) as scope:
        await step.continuation.resume([Answer(1, "1")], 30)
    assert scope.cancelled_caught
    await step.continuation.dispose()
    assert (await run(executor, "return 1")).value == 1
    assert executor.statistics()["live"] == 0


async def test_many_programs_at_once_keep_their_values_apart(executor: Executor) -> None:
    """BEHAVIOURS 104."""
    values: dict[int, object] = {}

    async def one(number: int) -> None:
        values[number] = (
            await run(
                executor, f"globalThis.n = {number}; return [await call('echo', {number}), n]"
            )
        ).value

    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(one, number)
    assert values == {number: [number, number] for number in range(24)}
