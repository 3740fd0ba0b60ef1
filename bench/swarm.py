"""Children of one cell against direct runs of the same agent at the same concurrency.

    python bench/swarm.py [children] [at once]

Both sides ask the same scripted model, which answers at once, and record into memory; what is
measured is what the group, its queue, the bridge and the cell add. The sides take turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio

from toolcell.app.conversation import Turn, converse, with_children
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.protocol.messages import Message, ModelReply, ModelRequest
from toolcell.sessions.memory import MemorySessions

ROUNDS = 25


class Prompt:
    """A model that answers at once."""

    async def complete(self, _request: ModelRequest, **_options: Any) -> ModelReply:
        """Say something short."""
        message = Message(role="assistant", text="done")
        return ModelReply(message=message, finish="stop", request_bytes=0)

    async def aclose(self) -> None:
        """Nothing to close."""


def look() -> int:
    """Look."""
    return 1


async def direct(runtime: Runtime, children: int, at_once: int) -> None:
    """Run an agent `children` times, `at_once` at a time."""
    limiter = anyio.CapacityLimiter(at_once)

    async def one(number: int) -> None:
        async with limiter:
            turn = Turn(scope=runtime.scope(), prompt=f"t{number}", model="s/m", history=())
            await converse(runtime, None, turn)

    async with anyio.create_task_group() as group:
        for number in range(children):
            group.start_soon(one, number)


async def swarm(runtime: Runtime, children: int) -> None:
    """Start as many from one cell."""
    run = runtime.run(runtime.scope())
    runtime.swarming.runner.parent_model(run.scope.run_id, "s/m")
    code = (
        f"const all = [...Array({children}).keys()].map((n) => agents.run('t' + n));\n"
        "return (await Promise.all(all)).length"
    )
    outcome = (await run.exec({"code": code})).to_dict()
    if outcome.get("value") != children:
        raise SystemExit(f"the cell failed: {outcome}")
    await runtime.end(run)


async def timed(work: Callable[[], Any]) -> float:
    """Return how many milliseconds it takes."""
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def main(children: int, at_once: int) -> None:
    """Take turns and print the medians."""
    limits = {"maxConcurrent": at_once, "maxChildrenPerGroup": children}
    config = parse_config(
        {
            "tools": {
                "codeMode": {"enabled": True, "executor": "quickjs", "timeoutMs": 60_000},
                "swarm": {"enabled": True, "maxTotalPerGroup": children, **limits},
            }
        }
    )
    sides: dict[str, list[float]] = {"direct": [], "swarm": []}
    for number in range(ROUNDS + 1):
        parts = Parts(tools=[look], sinks=(MemorySessions(),), load_plugins=False)
        runtime = Runtime(config, parts, Host())
        runtime.providers.add("s", Prompt())
        with_children(runtime)
        await runtime.start()
        try:
            await swarm(runtime, 1)  # loads the engine and makes the image
            took = {
                "direct": await timed(lambda: direct(runtime, children, at_once)),  # noqa: B023 - awaited at once
                "swarm": await timed(lambda: swarm(runtime, children)),  # noqa: B023 - awaited at once
            }
        finally:
            await runtime.aclose()
        if number:
            for side, milliseconds in took.items():
                sides[side].append(milliseconds)
    medians = {side: statistics.median(each) for side, each in sides.items()}
    for side, each in sides.items():
        print(f"{side:7} median {medians[side]:7.1f} ms  best {min(each):7.1f} ms")
    # Of each round by itself: the speed of a shared machine changes from one to the next.
    pairs = zip(sides["swarm"], sides["direct"], strict=True)
    ratio = statistics.median(swarm / direct for swarm, direct in pairs)
    print(
        f"ratio   {ratio:.2f}  (median of {ROUNDS} rounds, {children} children, {at_once} at once)"
    )


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    anyio.run(main, given[0] if given else 200, given[1] if len(given) > 1 else 8)
