"""Children on two Ray workers against children in this process, at the same concurrency.

    python bench/swarm_ray.py [children] [at once]

Both ask the same scripted model over HTTP, which answers at once from this process, and record into
memory. The sides take turns; the start of Ray is not counted. Needs the extra `ray`.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import AsyncExitStack

import anyio

from toolcell.app.conversation import with_children
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

ROUNDS = 5


def config_of(backend: str, url: str, children: int, at_once: int):
    """Return the config of one side."""
    limits = {"maxConcurrent": at_once, "maxChildrenPerGroup": children}
    return parse_config(
        {
            "tools": {
                "codeMode": {"enabled": True, "executor": "quickjs", "timeoutMs": 60_000},
                "swarm": {
                    "enabled": True,
                    "backend": backend,
                    "maxTotalPerGroup": children,
                    **limits,
                },
            },
            "agents": {"defaults": {"model": "s/m"}},
            "models": {"providers": {"s": {"baseUrl": url, "apiKey": "-"}}},
        }
    )


async def started(runtime: Runtime, children: int) -> float:
    """Run as many children from one cell; return how many milliseconds it takes."""
    run = runtime.run(runtime.scope())
    code = (
        f"const all = [...Array({children}).keys()].map((n) => agents.run('t' + n));\n"
        "return (await Promise.all(all)).length"
    )
    began = time.perf_counter()
    outcome = (await run.exec({"code": code})).to_dict()
    took = (time.perf_counter() - began) * 1000
    if outcome.get("value") != children:
        raise SystemExit(f"the cell failed: {outcome}")
    await runtime.end(run)
    return took


async def main(children: int, at_once: int) -> None:
    """Take turns and print the medians."""
    sides: dict[str, list[float]] = {"local": [], "ray": []}
    async with AsyncExitStack() as stack:
        model = ScriptedModel(["done"], repeat_last=True)
        server = await stack.enter_async_context(openai_server(model))
        runtimes = {}
        for side in sides:
            config = config_of(side, server.base_url, children, at_once)
            parts = Parts(sinks=(MemorySessions(),), load_plugins=False)
            runtime = runtimes[side] = Runtime(config, parts, Host())
            stack.push_async_callback(runtime.aclose)
            with_children(runtime)
            await runtime.start()
            await started(runtime, 1)  # loads the engine, and starts the workers
        for _ in range(ROUNDS):
            for side, runtime in runtimes.items():
                sides[side].append(await started(runtime, children))
    medians = {side: statistics.median(each) for side, each in sides.items()}
    for side, each in sides.items():
        print(f"{side:7} median {medians[side]:7.1f} ms  best {min(each):7.1f} ms")
    print(
        f"ratio   {medians['ray'] / medians['local']:.2f}  ({children} children, {at_once} at once)"
    )


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    anyio.run(main, given[0] if given else 200, given[1] if len(given) > 1 else 8)
