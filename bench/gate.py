"""What the gate adds to a tool call: validation, output contract, record, run catalog, hooks.

Run: PYTHONPATH=src python bench/gate.py [--calls N]
The target is 80 µs for a no-op call without hooks, on a quiet machine.
"""

import argparse
import os
import statistics
import time

import anyio

from toolcell.calls.access import RunCatalog
from toolcell.calls.gate import Gate
from toolcell.calls.invocation import Invocation
from toolcell.calls.redaction import Redactor
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.policy.approvals import ASK_BEFORE_SHELL, ApprovalRules
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Tool, ToolContext, core_tool

SCOPE = RunScope(agent_id="main", session_id="s", session_key="agent:main:main", run_id="r")
CLOSED = {"type": "object", "additionalProperties": False}
INPUT = {**CLOSED, "properties": {"a": {"type": "number"}, "b": {"type": "string"}}}
OUTPUT = {**CLOSED, "properties": {"n": {"type": "number"}}, "required": ["n"]}
TARGET_US = 80.0


class Counting:
    """A sink that counts."""

    def __init__(self):
        self.count = 0

    def emit(self, event):
        del event
        self.count += 1


async def noop(arguments, context):
    del arguments, context
    return ToolResult(details={"n": 1})


def tools(count):
    made = [
        Tool(
            name="noop", description="Nothing", parameters=INPUT, execute=noop, output_schema=OUTPUT
        )
    ]
    made += [
        Tool(name=f"other_{i}", description="Another", parameters=INPUT, execute=noop)
        for i in range(count - 1)
    ]
    return [core_tool(tool) for tool in made]


async def microseconds(call, calls):
    rounds = []
    for _ in range(7):
        before = time.perf_counter()
        for _ in range(calls):
            await call()
        rounds.append((time.perf_counter() - before) / calls * 1e6)
    return statistics.median(rounds), min(rounds)


async def measure(calls):
    arguments = {"a": 1, "b": "x"}
    tool = tools(1)[0]

    def through(gate):
        async def call():
            await gate.call(
                Invocation(
                    sourced=tool, arguments=arguments, scope=SCOPE, call_id="c", parent_id="p"
                )
            )

        return call

    def through_catalog(count, **more):
        snapshot = CatalogSnapshot.build(tools(count))
        run = RunCatalog(snapshot, gate=Gate(sink=Counting()), scope=SCOPE, **more)
        entry = snapshot.get("openclaw:core:noop")

        async def call():
            await run.call(entry, arguments, parent_id="p")

        return call

    context = ToolContext(
        scope=SCOPE, call_id="c", parent_id=None, deadline=None, update=lambda _: None
    )

    async def bare():
        await noop(arguments, context)

    hooks = Hooks(before=[lambda _: None], after=[lambda _: None])
    rules = ApprovalRules((ASK_BEFORE_SHELL,))
    secrets = Redactor([f"secret-value-{i}" for i in range(20)])
    cases = {
        "tool body alone": bare,
        "gate": through(Gate(sink=Counting())),
        "gate, built-in approval rule": through(Gate(sink=Counting(), approvals=rules)),
        "gate, 20 secrets to mask": through(Gate(sink=Counting(), redactor=secrets)),
        "gate, a hook before and after": through(Gate(sink=Counting(), hooks=hooks)),
        "run catalog, 100 tools": through_catalog(100),
        "run catalog, 1,000 tools": through_catalog(1000),
        "run catalog, 1,000 tools, visibility asked": through_catalog(1000, visible=lambda _: True),
    }
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores, {calls} calls a round")
    results = {}
    for name, call in cases.items():
        await microseconds(call, calls // 10)
        results[name] = await microseconds(call, calls)
        print(f"{name:<44} median {results[name][0]:7.1f} µs   best {results[name][1]:7.1f} µs")
    best = results["gate"][1]
    print(f"target {TARGET_US:.0f} µs per no-op call: {'met' if best <= TARGET_US else 'MISSED'}")
    print(f"100 parallel calls through the run catalog: {await parallel() * 1e3:.2f} ms")


async def parallel():
    run = RunCatalog(CatalogSnapshot.build(tools(100)), gate=Gate(sink=Counting()), scope=SCOPE)
    rounds = []
    for _ in range(7):
        before = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(one, run)
        rounds.append(time.perf_counter() - before)
    return statistics.median(rounds)


async def one(run):
    await run.call("openclaw:core:noop", {"a": 1}, parent_id="p")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    anyio.run(measure, parser.parse_args().calls)
