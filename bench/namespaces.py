"""What a plugin's namespace adds to a call: 100 calls in one cell, beside the plain tool's.

Run: python bench/namespaces.py [--rounds N]
Both executors and both guest APIs, alone and among 50 other namespaces; the two sides run in turns.
The target is a ratio of 1.1, from the medians of one run.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import time

from toolcell import CodeMode, define_tool_plugin, tool
from toolcell.codemode.namespaces.registry import (
    clear_code_mode_namespaces_for_test,
    register_code_mode_namespace_for_plugin,
)
from toolcell.codemode.namespaces.scope import create_code_mode_namespace_tool

TARGET = 1.1
PLAIN = {"catalog": "item_get", "tools": "tools.item_get"}


@tool
async def item_get(number: int) -> dict[str, int]:
    """Get an item."""
    return {"number": number}


def register(others):
    clear_code_mode_namespaces_for_test()
    for index in range(others + 1):
        register_code_mode_namespace_for_plugin(
            "items",
            {
                "id": f"items{index}",
                "globalName": f"Items{index}",
                "description": "Items.",
                "requiredToolNames": ["item_get"],
                "createScope": lambda _: {"get": create_code_mode_namespace_tool("item_get")},
            },
        )


def cell(call):
    return f"let n = 0; for (let i = 0; i < 100; i++) n += (await {call}({{number: i}})).number; return n"


async def took(cm, code):
    start = time.perf_counter()
    outcome = await cm.exec(code)
    end = time.perf_counter()
    if outcome.status != "completed" or outcome.value != 4950:
        raise SystemExit(f"a cell failed: {outcome}")
    return (end - start) * 1000


async def measure(executor, api, others, rounds):
    register(others)
    plugin = define_tool_plugin(
        id="items", name="Items", description="Items", tools=lambda _: [item_get]
    )
    config = {"tools": {"codeMode": {"timeoutMs": 60000}}}
    async with CodeMode(tools=[plugin], executor=executor, guest_api=api, config=config) as cm:
        # The last one, so that looking through the others would show.
        sides = {"plain": cell(PLAIN[api]), "namespace": cell(f"Items{others}.get")}
        times = {side: [] for side in sides}
        for code in list(sides.values()) * 3:
            await took(cm, code)
        gc.collect()
        for number in range(rounds):
            for side in sorted(sides, reverse=number % 2 == 0):
                times[side].append(await took(cm, sides[side]))
    plain, namespace = (statistics.median(times[side]) for side in ("plain", "namespace"))
    ratio = namespace / plain
    line = {
        "what": f"100 namespace calls, {executor}, {api} API, {others} others",
        "plain_ms": round(plain, 2),
        "namespace_ms": round(namespace, 2),
        "ratio": round(ratio, 3),
        "target": TARGET,
        "holds": ratio <= TARGET,
    }
    print(json.dumps(line), flush=True)


async def main(rounds):
    print(json.dumps({"load": os.getloadavg(), "cpus": os.cpu_count()}))
    for executor in ("quickjs", "node"):
        for api in ("catalog", "tools"):
            for others in (0, 50):
                await measure(executor, api, others, rounds)
    clear_code_mode_namespaces_for_test()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    asyncio.run(main(parser.parse_args().rounds))
