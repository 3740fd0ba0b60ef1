"""Speed and memory of the Node executor, on the image of the catalog API.

Run: PYTHONPATH=src python bench/node.py [--cells N]
Prints one JSON line per figure: what, value, the target, and whether it holds; the machine's load first.
Memory is measured from outside, as the resident size of the supervisor process.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from pathlib import Path

import psutil

from toolcell.execution.contract import (
    Answer,
    Faulted,
    Finished,
    GuestImage,
    GuestScript,
    Limits,
    Program,
    Suspended,
)
from toolcell.execution.node.executor import NodeExecutor

PRELUDE = Path(__file__).parents[1] / "src" / "toolcell" / "codemode" / "prelude"
MIB = 1 << 20


def script(name):
    return GuestScript(name, (PRELUDE / f"{name}.mjs").read_text("utf-8"))


def image(tools):
    native = [
        [
            f"tool_{i}",
            json.dumps(
                {
                    "callableName": f"tool_{i}",
                    "toolName": f"tool_{i}",
                    "description": f"Do nothing, number {i}, for records of kind {i % 17}.",
                    "source": "openclaw",
                    "input": "{ i?: number; name?: string }",
                    "output": "{ ok: boolean }",
                }
            ),
        ]
        for i in range(tools)
    ]
    data = {"catalog": {"native": native, "mcp": {}}, "output": {}, "encoding": {}, "timers": {}}
    return GuestImage(
        controller=script("controller"),
        extensions=tuple(script(name) for name in ("output", "encoding", "timers", "catalog")),
        data=json.dumps(data),
    )


def show(what, value, target=None, unit="ms"):
    holds = None if target is None else value <= target
    line = {"what": what, "value": round(value, 3), "unit": unit, "target": target, "holds": holds}
    print(json.dumps(line), flush=True)


async def median(make, runs):
    for _ in range(5):
        await make()
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        await make()
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


def resident():
    (supervisor,) = psutil.Process().children()
    return supervisor.memory_info().rss


async def speed(tools, cells):
    source = image(tools)
    executor = NodeExecutor()

    def start(code, seconds=10.0, limits=None):
        return executor.start(Program(image=source, source=code), limits or Limits(), seconds)

    async def finish(code):
        step = await start(code)
        assert isinstance(step, Finished), step

    begin = time.perf_counter()
    await finish("return 1")
    show(f"first cell of a process, {tools} tools", (time.perf_counter() - begin) * 1e3, 250)
    target = 5 if tools <= 100 else 6
    await asyncio.sleep(0.5)
    back_to_back = await median(lambda: finish("return 1"), cells)
    show(f"trivial cell, back to back, {tools} tools", back_to_back, target)

    async def apart():
        await asyncio.sleep(0.03)
        start = time.perf_counter()
        await finish("return 1")
        return (time.perf_counter() - start) * 1000

    show(
        f"trivial cell, 30 ms apart, {tools} tools",
        statistics.median([await apart() for _ in range(cells // 4)]),
        target,
    )
    before = executor.statistics()["workers_started"]

    async def syntax():
        assert isinstance(await start("const b = ;"), Faulted)

    show(f"cell with a syntax error, {tools} tools", await median(syntax, cells // 2), 5)

    async def throws():
        assert isinstance(await start("throw new Error('x')"), Faulted)

    show(f"cell that throws, {tools} tools", await median(throws, cells // 2), 5)
    after = executor.statistics()["workers_started"]
    show("workers started by failed cells", after - before, 0, "workers")

    async def drive(code):
        step = await start(code)
        while isinstance(step, Suspended):
            settled = [Answer(one.id, '{"ok":true}') for one in step.requests]
            step = await step.continuation.resume(settled, 10)
        assert isinstance(step, Finished), step

    sequential = "for (let i = 0; i < 100; i++) await tool_0({i}); return 100"
    show("100 sequential calls", await median(lambda: drive(sequential), 20), 60)
    parallel = "return (await Promise.all(Array.from({length: 100}, (_, i) => tool_0({i})))).length"
    show("100 parallel calls", await median(lambda: drive(parallel), 20))
    lines = "for (let i = 0; i < 1000; i++) text('line ' + i); return 1"
    show("1000 output frames", await median(lambda: finish(lines), 20))

    async def one():
        await drive("for (let i = 0; i < 10; i++) await tool_0({i}); return 1")

    async def eight():
        await asyncio.gather(*(one() for _ in range(8)))

    async def rested(make, runs):
        """Each from warm: contexts for the next are made between."""
        took = []
        for _ in range(runs):
            await asyncio.sleep(0.1)
            begin = time.perf_counter()
            await make()
            took.append(time.perf_counter() - begin)
        return statistics.median(took)

    await rested(eight, 5)
    ratio = await rested(eight, 15) / await rested(one, 15)
    show("8 concurrent cells of 10 calls over one alone", ratio, 3, "x")
    await executor.aclose()


async def parked(tools):
    source = image(tools)
    executor = NodeExecutor()
    program = Program(image=source, source="const v = await tool_0({}); return v.ok")
    await executor.prepare(source)
    await asyncio.sleep(0.5)
    before = resident()
    steps = [await executor.start(program, Limits(), 10) for _ in range(32)]
    for step in steps:
        await step.continuation.park()
    await asyncio.sleep(4)
    show(f"a parked cell, of 32, {tools} tools", (resident() - before) / MIB / 32, 6, "MiB")
    for step in steps:
        end = await step.continuation.resume([Answer(1, '{"ok":true}')], 5)
        assert isinstance(end, Finished), end
    await asyncio.sleep(1)
    show("after all have ended", (resident() - before) / MIB, None, "MiB more than before")
    await executor.aclose()


BOMBS = {
    "typed arrays": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "arrays": "const a = []; for (;;) a.push(new Array(1000).fill(0))",
    "objects": "const m = new Map(); for (let i = 0; ; i++) m.set({i}, i)",
    "doubling": "let s = ['k']; while (true) s = s.concat(s)",
    "one string": "let s = 'abcdefgh'.repeat(1 << 23); for (;;) { s += s; s.at(-1) }",
    "one array": "return Array.from({length: 3e7}, (_, i) => ({i})).length",
}


async def bombs():
    """How far over its 64 MiB a program gets before it is over, seen from outside."""
    source = image(100)
    for name, code in BOMBS.items():
        executor = NodeExecutor()
        await executor.prepare(source)
        await asyncio.sleep(0.3)
        before = peak = resident()

        async def watch():
            nonlocal peak
            while True:
                peak = max(peak, resident())
                await asyncio.sleep(0.002)

        watching = asyncio.ensure_future(watch())
        begin = time.perf_counter()
        step = await executor.start(Program(image=source, source=code), Limits(), 20)
        took = time.perf_counter() - begin
        watching.cancel()
        kind = step.kind if isinstance(step, Faulted) else type(step).__name__
        grown = (peak - before) / MIB
        print(
            json.dumps(
                {
                    "what": f"bomb: {name}",
                    "ends as": kind,
                    "s": round(took, 2),
                    "grown MiB": round(grown),
                }
            )
        )
        supervisors = executor.statistics()["supervisors_started"]
        await executor.start(Program(image=source, source="return 1"), Limits(), 5)
        assert executor.statistics()["supervisors_started"] == supervisors, "the process died"
        await executor.aclose()


async def lag():
    """How late the event loop ticks while two programs spin."""
    source = image(100)
    executor = NodeExecutor()
    await executor.prepare(source)
    late = []

    async def tick():
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - begin - 0.005) * 1e3)

    ticking = asyncio.ensure_future(tick())
    spin = Program(image=source, source="for (;;);")
    await asyncio.gather(*(executor.start(spin, Limits(), 1.0) for _ in range(2)))
    ticking.cancel()
    show("event loop lag while two programs spin, p99", sorted(late)[int(len(late) * 0.99)])
    await executor.aclose()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=200)
    cells = parser.parse_args().cells
    print(json.dumps({"load": os.getloadavg()[0], "cores": os.cpu_count()}))
    for tools in (100, 1000):
        asyncio.run(speed(tools, cells))
    asyncio.run(parked(100))
    asyncio.run(bombs())
    asyncio.run(lag())


if __name__ == "__main__":
    main()
