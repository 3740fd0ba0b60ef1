"""Measures the QuickJS executor against the raw engine in the same run.

    PYTHONPATH=src python bench/engine.py [CELLS]

Raw: instantiate the image and evaluate on the calling thread. Everything else goes through
`QuickJSExecutor`. Times are medians with the 10th and 90th percentile; the machine's load is
printed because it decides what they mean.
"""

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path

import psutil

from toolcell.execution.contract import Answer, GuestImage, GuestScript, Limits, Program, Suspended
from toolcell.execution.frames import start_message
from toolcell.execution.quickjs import QuickJSExecutor
from toolcell.execution.quickjs.cell import START, Cell
from toolcell.execution.quickjs.image import ENGINE_WASM, load_engine_code
from toolcell.execution.quickjs.modulecache import ModuleCache
from toolcell.execution.quickjs.watchdog import Watchdog
from toolcell.execution.quickjs.workers import Library, Pool, Worker

PRELUDE = Path(__file__).parents[1] / "src" / "toolcell" / "codemode" / "prelude"
EXTENSION = """(function bench(kit, data) {
  for (const name of data.names) kit.define(name, (...args) => kit.request(name, args));
})"""


def image(tools: int) -> GuestImage:
    names = [f"tool_number_{i}" for i in range(tools)]
    return GuestImage(
        controller=GuestScript("controller.mjs", (PRELUDE / "controller.mjs").read_text("utf-8")),
        extensions=(GuestScript("bench", EXTENSION),),
        data=json.dumps({"bench": {"names": names}}),
    )


def show(what: str, seconds: list[float], unit: float = 1e3, name: str = "ms") -> float:
    ordered = sorted(seconds)
    at = [ordered[int(len(ordered) * part)] * unit for part in (0.1, 0.5, 0.9)]
    print(f"{what:<58} {at[1]:8.3f} {name}   (p10 {at[0]:.3f}, p90 {at[2]:.3f})")
    return at[1]


def timed(action, count: int) -> list[float]:
    taken = []
    for _ in range(count + 10):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return taken[10:]


async def timed_async(action, count: int) -> list[float]:
    taken = []
    for _ in range(count + 10):
        begin = time.perf_counter()
        await action()
        taken.append(time.perf_counter() - begin)
    return taken[10:]


def raw(source: GuestImage, cells: int) -> None:
    library = Library(lambda: load_engine_code(ENGINE_WASM, ModuleCache(), print), 4)
    worker = Worker(Pool(library, 1, 1), library, 1)
    begin = time.perf_counter()
    made = library.image(source, worker)
    print(
        f"load engine and make image: {(time.perf_counter() - begin) * 1e3:.1f} ms, "
        f"image {made.size // 1024} KiB"
    )
    dog = Watchdog()
    message = start_message("return 1 + 1", "u.js", "{}")

    def instantiate() -> None:
        worker.instantiate(made, 128 << 20).close()

    def cell() -> None:
        one = Cell(made, Limits(), "u.js")
        one.begin(worker)
        one.step(START, message, 5, dog)

    show("raw: fresh VM", timed(instantiate, cells))
    show("raw: fresh VM + trivial cell, calling thread", timed(cell, cells))
    dog.close()


async def through_executor(source: GuestImage, cells: int, tools: int) -> None:
    executor = QuickJSExecutor()
    await executor.prepare(source)
    start = Program(image=source, source="return 1 + 1")
    waits = Program(image=source, source="for (;;) await tool_number_0({a: 1})")

    show(
        f"executor: trivial cell, {tools} tools",
        await timed_async(lambda: executor.start(start, Limits(), 5), cells),
    )

    step = await executor.start(waits, Limits(), 5)
    number = 0

    async def settle() -> None:
        nonlocal step, number
        assert isinstance(step, Suspended)
        number += 1
        step = await step.continuation.resume([Answer(number, '{"ok":true}')], 5)

    show("executor: one settle step", await timed_async(settle, cells))
    sizes, parks = [], []

    async def park_and_resume() -> None:
        assert isinstance(step, Suspended)
        begin = time.perf_counter()
        sizes.append(await step.continuation.park())
        parks.append(time.perf_counter() - begin)
        await settle()

    show("executor: park + restore + settle", await timed_async(park_and_resume, cells // 2))
    show("executor: of which park", parks)
    print(f"{'parked size of one cell':<58} {sorted(sizes)[len(sizes) // 2] / 1024:8.1f} KiB")
    await step.continuation.dispose()

    async def parallel() -> None:
        many = Program(
            image=source,
            source=(
                "const all = []; for (let i = 0; i < 1000; i++) all.push(tool_number_0({i}));"
                "return (await Promise.all(all)).length"
            ),
        )
        step = await executor.start(many, Limits(), 5)
        assert isinstance(step, Suspended)
        answers = [Answer(request.id, '{"ok":true}') for request in step.requests]
        await step.continuation.resume(answers, 5)

    show("executor: 1000 parallel requests, one cell", await timed_async(parallel, 20))
    await memory(executor, source)
    await lag(executor, source)
    print(dict(executor.statistics()))
    await executor.aclose()


async def memory(executor: QuickJSExecutor, source: GuestImage) -> None:
    process = psutil.Process()
    program = Program(image=source, source="const v = await tool_number_0({}); return v")

    async def parked():
        step = await executor.start(program, Limits(), 5)
        await step.continuation.park()
        return step

    kept = [await parked() for _ in range(20)]
    gc.collect()
    before = process.memory_info().rss
    kept += [await parked() for _ in range(64)]
    gc.collect()
    grown = (process.memory_info().rss - before) / 64 / 1024
    print(f"{'resident memory per parked cell':<58} {grown:8.1f} KiB")
    for step in kept:
        await step.continuation.dispose()


async def lag(executor: QuickJSExecutor, source: GuestImage) -> None:
    late: list[float] = []
    stop = False

    async def tick() -> None:
        while not stop:
            begin = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append(time.perf_counter() - begin - 0.005)

    spin = Program(image=source, source="for (;;);")
    ticker = asyncio.ensure_future(tick())
    await asyncio.gather(*(executor.start(spin, Limits(), 3) for _ in range(2)))
    stop = True
    await ticker
    late.sort()
    print(
        f"{'ticker lag p99 while two cells spin':<58} {late[int(len(late) * 0.99)] * 1e3:8.3f} ms"
        f"   (p50 {late[len(late) // 2] * 1e3:.3f}, max {late[-1] * 1e3:.3f})"
    )


def main() -> None:
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for tools in (100, 1000):
        print(f"-- {tools} tools; load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
        source = image(tools)
        raw(source, cells)
        asyncio.run(through_executor(source, cells, tools))


if __name__ == "__main__":
    main()
