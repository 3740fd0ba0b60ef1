"""What holds for guest code on Node: constraints of programming, not a boundary (rule 9.2)."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import psutil
import pytest

from tests.execution.conformance.harness import first, run, suspend
from toolcell.execution.contract import Answer, Faulted, Finished, Limits
from toolcell.execution.node import executor as node
from toolcell.execution.node.executor import NodeExecutor
from toolcell.execution.node.steps import judge

pytestmark = pytest.mark.anyio

MIB = 1 << 20


@pytest.fixture
async def executor() -> AsyncIterator[NodeExecutor]:
    made = NodeExecutor()
    yield made
    await made.aclose()


async def test_no_path_leads_to_host_objects(executor: NodeExecutor) -> None:
    """SE-01: constructors, errors of every kind, stack overflows at the border, modules."""
    source = """const made = [text, call, handle, Promise, Error, performance.now, later(1).promise,
        Uint8Array, ArrayBuffer.prototype.slice, 'x'.repeat, Error.prepareStackTrace,
        Object.getPrototypeOf(async () => {}), Object.getPrototypeOf(function*() {})];
      const add = (value) => { if (made.length < 500) made.push(value) };
      const keep = (run) => {
        try { const got = run(); add(got); got?.catch?.(add) } catch (e) { add(e) } };
      const deep = (run, n = 0) => {
        try { deep(run, n + 1) } catch (e) { add(e); if (n % 50 === 0) keep(run); throw e } };
      const overflow = (run) => { try { deep(run) } catch (e) { add(e) } };
      for (const run of [() => text('x'), () => performance.now(), () => new Uint8Array(1e12),
                         () => 'x'.repeat(-1), () => json(1n), () => call('a', 1n),
                         () => new (class extends Uint8Array { })(-1)]) {
        keep(run); overflow(run) }
      for (const bad of ["import('fs')", "import('node:process')", "eval('import(\\"fs\\")')",
                         "Function('return import(\\"fs\\")')()"]) {
        try { const p = eval(bad); made.push(p); await p } catch (e) { made.push(e) } }
      try { await call('boom') } catch (e) { made.push(e) }
      const seen = new Set();
      for (let f of made) {
        for (let depth = 0; f && depth < 4; depth++, f = f.constructor) {
          try { seen.add(f.constructor.constructor('return typeof process + typeof require')()) }
          catch (x) { seen.add(x instanceof Error ? 'blocked' : 'foreign: ' + x) }
          if (/object|function/.test(typeof f) && !(f instanceof Object)) seen.add('not ours');
        } }
      return [...seen]"""
    ran = await run(executor, source)
    assert set(ran.value) <= {"blocked", "undefinedundefined"}


async def test_modules_are_refused_with_an_error_of_the_guest(executor: NodeExecutor) -> None:
    """Rule 3.2, rule 9.2."""
    source = """const told = [];
      for (const name of ['fs', 'node:process', 'data:text/javascript,1']) {
        try { await import(name) }
        catch (e) { told.push([e.constructor === TypeError, e.message]) } }
      return told"""
    told = (await run(executor, source)).value
    assert told == [[True, "modules cannot be loaded in a cell"]] * 3


async def test_what_could_run_after_a_cell_is_not_there(executor: NodeExecutor) -> None:
    """Rule 2.5: no finalizer, no timer of the engine's own, no shared memory, no native code."""
    names = "FinalizationRegistry Atomics SharedArrayBuffer WebAssembly console setTimeout gc"
    found = await run(
        executor, f"return '{names}'.split(' ').filter((n) => globalThis[n] !== undefined)"
    )
    assert found.value == []


async def test_a_stack_shows_the_users_file_only(executor: NodeExecutor) -> None:
    """EX-03, rule 3.10: no path of the host, columns of the first line right."""
    source = "const e = Error('x'); const f = () => new TypeError('y'); return [e.stack, f().stack]"
    plain, typed = (await run(executor, source)).value
    assert plain == "Error: x\n    at openclaw-code-mode:user.js:1:11"
    assert typed.startswith("TypeError: y\n    at f (openclaw-code-mode:user.js:1:39)\n")
    parsed = (await run(executor, "  const b = ;")).fault
    assert (parsed.error.line, parsed.error.column) == (1, 13)
    late = (await run(executor, "const a = 1;\n\nif (a) {")).fault
    assert (late.kind, late.error.line) == ("syntax", 4)  # behind the program


async def test_output_before_a_hard_end_is_kept_whole(executor: NodeExecutor) -> None:
    """Rule 3.11: frames outlive the thread that wrote them, across pieces of shared memory."""
    source = "for (let i = 0; i < 300; i++) text(i + 'é'.repeat(500)); for (;;);"
    ran = await run(executor, source, seconds=0.4)
    assert ran.fault.kind == "timeout"
    assert [int(text.partition("é")[0]) for text in ran.texts] == list(range(300))


async def test_work_started_by_the_result_itself_is_stopped(executor: NodeExecutor) -> None:
    """Rule 9.4: nothing of a cell runs on after its end."""
    source = "return {toJSON() { (async () => { for (;;) await 0 })(); return 1 }}"
    ran = await run(executor, source, seconds=0.2)
    assert ran.fault.kind == "timeout"
    assert (await run(executor, "return 1")).value == 1


@pytest.mark.parametrize(
    "source",
    [
        "new Uint8Array(2 ** 31)",
        "new Float64Array(1e7)",
        "new ArrayBuffer(1e8)",
        "new (class extends Uint8Array {})(1e8)",
        "Uint8Array.from({length: 1e8})",
        "new Uint8Array({length: 1e8})",
        "let a = new Uint8Array(1e6); const all = []; for (;;) all.push(a.slice())",
        (
            "let a = new Uint8Array(1e6); a.constructor = undefined; const l = []; "
            "for (;;) l.push(a.slice())"
        ),
        "let a = new Uint8Array(1e6); const l = []; for (;;) l.push(a.map((x) => x))",
        "let a = new Uint8Array(1e6); const l = []; for (;;) l.push(a.toSorted())",
        "const l = []; for (;;) l.push(new ArrayBuffer(1e6).transfer(3e6))",
        "'x'.repeat(1e8)",
        "'x'.padStart(1e8)",
    ],
)
async def test_memory_outside_the_heap_is_refused_and_can_be_caught(
    executor: NodeExecutor, source: str
) -> None:
    """EX-10, rule 9.4: what V8's heap limit does not count."""
    limits = Limits(memory_bytes=16 * MIB)
    caught = await run(
        executor, f"try {{ {source} }} catch (e) {{ return [e.name, e.message] }}", limits=limits
    )
    assert caught.value[0] == "RangeError"
    assert caught.value[1].startswith("out of memory")
    fault = (await run(executor, source, limits=limits)).fault
    assert fault.kind == "memory"
    assert executor.statistics()["workers_started"] <= 3


async def test_memory_that_is_free_again_is_not_charged(executor: NodeExecutor) -> None:
    """Rule 1.2: 64 MiB at a time, not in sum."""
    source = (
        "let n = 0; for (let i = 0; i < 600; i++) n += new Uint8Array(1 << 20).length; return n"
    )
    assert (await run(executor, source)).value == 600 * MIB
    garbage = "let n = 0; for (let i = 0; i < 3e6; i++) n += [i, {i}].length; return n"
    assert (await run(executor, garbage)).value == 6_000_000


@pytest.mark.parametrize(
    "source",
    [
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
        "const m = new Map(); for (let i = 0;; i++) m.set({i}, i)",
        "const a = []; for (;;) a.push(new Array(1000))",
        (
            "const l = []; for (;;) { const b = new ArrayBuffer(1, {maxByteLength: 1e6}); "
            "b.resize(1e6); l.push(b) }"
        ),
    ],
)
async def test_the_memory_of_a_bomb_is_bounded_as_seen_from_outside(source: str) -> None:
    """Rule 9.4, EX-10: within a few times the 64 MiB, and the process lives on."""
    executor = NodeExecutor()
    assert (await run(executor, "return 1")).value == 1
    (supervisor,) = psutil.Process().children()
    before = peak = supervisor.memory_info().rss

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, supervisor.memory_info().rss)
            await anyio.sleep(0.002)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        step = await first(executor, source, seconds=20)
        group.cancel_scope.cancel()
    assert isinstance(step, Faulted)
    assert step.kind == "memory"
    assert peak - before < 512 * MIB
    assert (await run(executor, "return 1")).value == 1
    assert executor.statistics()["supervisors_started"] == 1
    await executor.aclose()


async def test_huge_single_allocations_end_their_cell_and_the_next_one_runs(
    executor: NodeExecutor,
) -> None:
    """Rule 9.4: whether the look from outside or V8 itself puts an end to it."""
    source = """const s = 'ab'.repeat(5e5); let t = s; for (let i = 0; i < 8; i++) t += t;
      return t.match(/./g).length + [...t].length"""
    ran = await run(executor, source, seconds=20)
    assert ran.fault.kind in {"memory", "crash"}
    assert (await run(executor, "return 'alive'")).value == "alive"


async def test_limits_of_a_cell_are_its_own(executor: NodeExecutor) -> None:
    """Rule 1.2: a larger budget is not cut by the warm worker of a smaller one."""
    source = "return new Uint8Array(100 * 1024 * 1024).fill(1).length"
    small = await run(executor, source)
    assert small.fault.kind == "memory"
    large = await run(executor, source, limits=Limits(memory_bytes=256 * MIB))
    assert large.value == 100 * MIB


async def test_typed_arrays_behave_as_ever(executor: NodeExecutor) -> None:
    """Rule 9.2: the bounds do not show."""
    source = """class Mine extends Uint8Array { sum() { return this.reduce((a, b) => a + b, 0) } }
      const a = Mine.from([1, 2, 3]);
      return [a.sum(), a instanceof Uint8Array, a.slice(1) instanceof Mine, Uint8Array.name,
        Uint8Array.length, new Float64Array([1.5])[0], new Uint16Array(new Uint8Array([7]))[0],
        new DataView(new ArrayBuffer(4)).byteLength, Uint8Array.of(1).constructor === Uint8Array,
        [...new Set([1, 2]).values()].length, 'ab'.repeat(2), 'a,b'.split(','), [1, 2].fill(3),
        'abc'.padStart.length, new ArrayBuffer(8).slice(2).byteLength,
        Object.prototype.toString.call(new Uint8Array(1))]"""
    assert (await run(executor, source)).value == [
        6,
        True,
        True,
        "Uint8Array",
        3,
        1.5,
        7,
        4,
        True,
        2,
        "abab",
        ["a", "b"],
        [3, 3],
        1,
        6,
        "[object Uint8Array]",
    ]


async def test_large_answers_do_not_hold_up_the_loop(executor: NodeExecutor) -> None:
    """Rule 9.1: tens of megabytes are decoded on a thread."""
    await run(executor, "return 1")
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            begin = anyio.current_time()
            await anyio.sleep(0.005)
            worst = max(worst, anyio.current_time() - begin)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        ran = await run(executor, "return 'é'.repeat(12e6)")
        group.cancel_scope.cancel()
    assert len(ran.value) == 12_000_000
    assert worst < 1.0


async def test_a_flood_of_frames_is_read_on_a_thread(
    executor: NodeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 9.1: "never on the event loop"; a hundred thousand frames take 250 ms to read."""
    threads = {}

    def judged(told: dict[str, Any], *more: Any) -> Any:
        threads[len(told["frames"]) > 1000] = threading.current_thread()
        return judge(told, *more)

    monkeypatch.setattr(node, "judge", judged)
    few = await run(executor, "text('a'); return 1")
    many = await run(executor, "for (let i = 0; i < 5000; i++) text('n' + i); return 2")
    assert (len(few.output), len(many.output)) == (1, 5000)
    assert many.output[-1].text == "n4999"
    assert threads[False] is threading.main_thread()
    assert threads[True] is not threading.main_thread()


async def test_line_breaks_in_json_of_the_host_are_layout(executor: NodeExecutor) -> None:
    """Rule 8.5: a tool's pretty-printed reply cannot break a line of the protocol."""

    step = await suspend(executor, "return await call('a')")
    pretty = json.dumps({"a": [1, {"b": "x\ny"}]}, indent=2) + "\r\n"
    end = await step.continuation.resume([Answer(1, pretty)], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == {"a": [1, {"b": "x\ny"}]}
