"""langchain-quickjs: its eval tool's own REPL with 100 LangChain tools, a fresh REPL for each cell."""

import asyncio

from langchain_core.tools import StructuredTool
from langchain_quickjs._repl import _ThreadREPL  # its middleware drives this class
from measure import report, timed
from quickjs_rs import Runtime, ThreadWorker


async def noop(i: int = 0) -> dict:
    return {"ok": True}


TOOLS = [
    StructuredTool.from_function(coroutine=noop, name=f"tool_{n}", description="Do nothing.")
    for n in range(100)
]
SEQUENTIAL = "for (let i = 0; i < 100; i++) await tools.tool_0({i}); 100"
PARALLEL = "(await Promise.all(Array.from({length: 100}, (_, i) => tools.tool_0({i})))).length"


async def main():
    worker = ThreadWorker()
    runtime = worker.run_sync(make_runtime())

    async def cell(code):
        repl = _ThreadREPL(
            worker,
            runtime,
            timeout=10.0,
            capture_console=True,
            max_stdout_chars=65536,
            subagents_enabled=False,
        )
        repl.install_tools(TOOLS)
        outcome = await repl.eval_async(code, outer_loop=asyncio.get_running_loop())
        repl.close()
        assert outcome.error_type is None, outcome
        return outcome.result

    await cell("1 + 2")
    report(
        peer="langchain-quickjs",
        cell_ms=await timed(lambda: cell("1 + 2"), 30),
        sequential_100_ms=await timed(lambda: cell(SEQUENTIAL), 5),
        parallel_100_ms=await timed(lambda: cell(PARALLEL), 5),
    )


async def make_runtime():
    return Runtime(memory_limit=64 << 20)


asyncio.run(main())
