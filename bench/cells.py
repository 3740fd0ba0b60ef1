"""Speed and memory of cells through the public library face, on QuickJS.

Run: python bench/cells.py
Prints one JSON line per figure: what, value, the target, and whether it holds; the machine's load first.
"""

import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import psutil

from toolcell import CodeMode, Waiting
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

SCHEMA = {
    "type": "object",
    "properties": {"i": {"type": "integer"}, "name": {"type": "string"}},
    "additionalProperties": False,
}


async def noop(arguments, context):
    return ToolResult(content=(TextContent("ok"),), details={"ok": True})


def tools(count):
    return [
        Tool(
            name=f"tool_{number}",
            description=f"Do nothing, number {number}, for records of kind {number % 17}.",
            parameters=SCHEMA,
            output_schema={
                "type": "object",
                "properties": {"ok": {"type": "boolean"}},
                "required": ["ok"],
                "additionalProperties": False,
            },
            execute=noop,
        )
        for number in range(count)
    ]


def show(what, value, target=None, unit="ms"):
    holds = None if target is None else value <= target
    line = {"what": what, "value": round(value, 3), "unit": unit, "target": target, "holds": holds}
    print(json.dumps(line), flush=True)


async def median(make, runs, warm=5):
    for _ in range(warm):
        await make()
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        await make()
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


async def value_of(cm, code):
    outcome = await cm.exec(code)
    if outcome.status != "completed":
        raise SystemExit(f"a cell failed: {outcome}")
    return outcome.value


SEQUENTIAL = "for (let i = 0; i < 100; i++) await tool_0({i}); return 100"
PARALLEL = "return (await Promise.all(Array.from({length: 100}, (_, i) => tool_0({i})))).length"


async def cells():
    config = {"tools": {"codeMode": {"maxPendingToolCalls": 128}}}
    async with (
        CodeMode(tools=tools(100), config=config, executor="quickjs") as small,
        CodeMode(tools=tools(1000), config=config, executor="quickjs") as large,
    ):
        few, many = await trivial(small, large, 200)
        show("trivial cell, 100 tools", few, 2.0)
        show("trivial cell, 1000 tools", many, 2.0)
        show("1000 tools against 100", many / few, 1.2, "ratio")
        show("100 sequential calls", await median(lambda: value_of(small, SEQUENTIAL), 20), 40)
        show("100 parallel calls", await median(lambda: value_of(small, PARALLEL), 20), 25)
        show("suspend and resume", await median(lambda: suspended(small), 50), 8)
        await parked(large)


async def trivial(small, large, runs):
    """Return the medians of both; they take turns, so that the machine's moods meet both alike."""
    took = {small: [], large: []}
    for _ in range(runs + 5):
        for cm, times in took.items():
            start = time.perf_counter()
            await value_of(cm, "return 1 + 1")
            times.append((time.perf_counter() - start) * 1000)
    return [statistics.median(times[5:]) for times in took.values()]


async def suspended(cm):
    outcome = await cm.exec("await yield_control(); return 1")
    assert isinstance(outcome, Waiting), outcome
    done = await cm.wait(outcome.cell_id)
    assert done.status == "completed", done


async def parked(cm):
    for _ in range(3):
        await suspended(cm)
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    waiting = [
        await cm.exec("const a = [1, 2, 3]; await yield_control(); return a") for _ in range(60)
    ]
    gc.collect()
    each = (process.memory_info().rss - before) / len(waiting) / 1024
    show("memory of a parked cell, 1000 tools", each, 60, "KB")
    at_rest = cm.statistics()["quickjs"].get("parked_bytes")
    if at_rest:
        show("state of a parked cell, 1000 tools", at_rest / len(waiting) / 1024, 60, "KB")
    for outcome in waiting:
        done = await cm.wait(outcome.cell_id)
        assert done.value == [1, 2, 3], done


async def lag():
    config = {"tools": {"codeMode": {"timeoutMs": 2000}}}
    async with CodeMode(tools=tools(100), config=config, executor="quickjs") as cm:
        await cm.exec("return 1")
        late = []

        async def ticker():
            while True:
                due = time.perf_counter() + 0.005
                await asyncio.sleep(0.005)
                late.append((time.perf_counter() - due) * 1000)

        tick = asyncio.ensure_future(ticker())
        spins = [cm.exec("for (;;);") for _ in range(2)]
        outcomes = await asyncio.gather(*spins)
        tick.cancel()
        assert all(each.code == "timeout" for each in outcomes), outcomes
        show("event loop lag p99, two spinning cells", sorted(late)[int(len(late) * 0.99)], 20)


FIRST = """
import asyncio, time, sys
start = time.perf_counter()
import toolcell
from toolcell import CodeMode, tool
imported = (time.perf_counter() - start) * 1000
sys.path.insert(0, {bench!r})
rss = int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1]) / 1024
import json
from cells import tools
made = tools(100)
async def main():
    start = time.perf_counter()
    async with CodeMode(tools=made, executor="quickjs") as cm:
        outcome = await cm.exec("return 1")
        took = (time.perf_counter() - start) * 1000
        assert outcome.status == "completed", outcome
    print(json.dumps([imported, took, rss]))
asyncio.run(main())
"""


def first():
    code = FIRST.format(bench=os.path.dirname(os.path.abspath(__file__)))
    # An installed package has its bytecode: the first run, which is not counted, leaves it behind.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    rows = []
    for _ in range(6):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        )
        rows.append(json.loads(done.stdout))
    rows = rows[1:]
    show("import toolcell and CodeMode", statistics.median(row[0] for row in rows), 300)
    show("first cell of a process after import", statistics.median(row[1] for row in rows), 150)
    show("process before its first cell", statistics.median(row[2] for row in rows), 60, "MB")


if __name__ == "__main__":
    print(
        json.dumps(
            {"load": os.getloadavg(), "cpus": os.cpu_count(), "python": sys.version.split()[0]}
        )
    )
    asyncio.run(cells())
    asyncio.run(lag())
    first()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    show("peak memory of this bench", peak, None, "MB")
