"""pydantic-monty: Python cells in worker subprocesses; 100 external functions."""

import asyncio

from measure import report, timed
from pydantic_monty import AsyncMonty


async def noop(**_arguments):
    return {"ok": True}


LOOKUP = {f"tool_{number}": noop for number in range(100)}
LIMITS = {"max_feed_duration_secs": 10.0, "max_memory": 64 << 20}
SEQUENTIAL = "for i in range(100):\n    await tool_0(i=i)\n100"
PARALLEL = "import asyncio\nlen(await asyncio.gather(*[tool_0(i=i) for i in range(100)]))"
BOMBS = {"memory": "x = []\nwhile True:\n    x.append([0] * 100000)", "time": "while True: pass"}


async def main():
    async with AsyncMonty() as pool:

        async def cell(code, limits=LIMITS):
            async with pool.checkout(limits=limits) as session:
                return await session.feed_run(code, external_lookup=LOOKUP)

        assert await cell("1 + 2") == 3
        report(
            peer="pydantic-monty",
            cell_ms=await timed(lambda: cell("1 + 2"), 40),
            sequential_100_ms=await timed(lambda: cell(SEQUENTIAL), 8),
            parallel_100_ms=await timed(lambda: cell(PARALLEL), 8),
        )


asyncio.run(main())
