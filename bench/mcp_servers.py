"""Speed of MCP servers as a source: nested calls against the SDK's own, parallel calls, start-up.

Run: python bench/mcp_servers.py   (from the repository, with toolcell installed or PYTHONPATH=src)
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from toolcell import CodeMode
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import NullSink
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.source import McpSource
from toolcell.tools.tool import ToolContext

SRC = str(Path(__file__).parents[1] / "src")
SCOPE = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")
CONTEXT = ToolContext(
    scope=SCOPE, call_id="c", parent_id=None, deadline=None, update=lambda _: None
)
FIXTURE = ("-m", "toolcell.testing.mcp_fixture")
CALLS = 300
BLOCK = 20
BLOCKS = 60


class Spawner:
    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.group = group

    def start_soon(self, function: Any, *args: Any, name: str = "") -> None:
        self.group.start_soon(function, *args, name=name)


def stdio(*flags: str) -> McpServerSettings:
    return McpServerSettings(
        command=sys.executable, args=(*FIXTURE, *flags), env={"PYTHONPATH": SRC}
    )


def source(group: anyio.abc.TaskGroup, servers: dict[str, McpServerSettings]) -> McpSource:
    return McpSource(servers, spawner=Spawner(group), sink=NullSink(), clock=SYSTEM_CLOCK)


async def timed(call: Callable[[], Awaitable[Any]]) -> list[float]:
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    return times


def line(name: str, times: list[float]) -> float:
    median = statistics.median(times)
    p95 = sorted(times)[int(len(times) * 0.95)]
    print(f"{name:34} median {median:6.3f} ms   p95 {p95:6.3f} ms")
    return median


async def calls() -> None:
    params = StdioServerParameters(command=sys.executable, args=[*FIXTURE], env={"PYTHONPATH": SRC})
    async with (
        stdio_client(params) as streams,
        ClientSession(*streams) as session,
        anyio.create_task_group() as group,
    ):
        await session.initialize()
        await session.list_tools()
        mcp = source(group, {"fx": stdio()})
        await mcp.start()
        echo = next(tool for tool in mcp.tools() if tool.tool.name == "echo").tool
        value = {"v": {"id": 7, "name": "x" * 50, "tags": ["a", "b"]}}

        async def sdk_progress(*_: Any) -> None:
            pass

        async def raw() -> Any:
            return await session.call_tool("echo", value)

        async def raw_progress() -> Any:
            return await session.call_tool("echo", value, progress_callback=sdk_progress)

        async def ours() -> Any:
            return await echo.execute(value, CONTEXT)

        for _ in range(50):
            await raw()
            await ours()
        # Interleaved twice, so that a change of the machine's load meets both.
        base, tool = [], []
        for _ in range(2):
            base += await timed(raw)
            tool += await timed(ours)
        sdk = line("SDK call_tool", base)
        line("SDK call_tool with progress", await timed(raw_progress))
        mine = line("toolcell tool.execute", tool)
        print(f"{'added by toolcell':34} {mine - sdk:+.3f} ms   (limit +1 ms)")
        sleep = next(tool for tool in mcp.tools() if tool.tool.name == "sleep").tool
        for name, body in (
            ("100 parallel echo", lambda: echo.execute(value, CONTEXT)),
            ("100 parallel sleep of 100 ms", lambda: sleep.execute({"seconds": 0.1}, CONTEXT)),
        ):
            began = time.perf_counter()
            async with anyio.create_task_group() as many:
                for _ in range(100):
                    many.start_soon(body)
            print(f"{name:34} {(time.perf_counter() - began) * 1000:8.1f} ms")
        await mcp.aclose()


async def nested() -> None:
    """A cell's call, policy, validation and recording included, against the SDK's own call.

    Blocks alternate, so that the machine's load meets both; the best blocks are what a loaded
    machine leaves of a quiet one.
    """
    params = StdioServerParameters(command=sys.executable, args=[*FIXTURE], env={"PYTHONPATH": SRC})
    server = {"command": sys.executable, "args": [*FIXTURE], "env": {"PYTHONPATH": SRC}}
    config = {"tools": {"codeMode": {"maxPendingToolCalls": 128}}}
    async with (
        stdio_client(params) as streams,
        ClientSession(*streams) as session,
        CodeMode(mcp_servers={"fx": server}, config=config, executor="quickjs") as cm,
    ):
        await session.initialize()
        await session.list_tools()

        async def raw() -> None:
            for _ in range(BLOCK):
                await session.call_tool("echo", {"v": "x"})

        async def cell(code: str) -> None:
            outcome = await cm.exec(code)
            if outcome.status != "completed":
                raise SystemExit(f"a cell failed: {outcome}")

        loop = f"for (let i = 0; i < {BLOCK}; i++) await MCP.fx.echo({{v: 'x'}}); return 1"
        took: dict[str, list[float]] = {"sdk": [], "empty": [], "nested": []}
        for _ in range(BLOCKS):
            for name, work in (("sdk", raw), ("empty", "return 1"), ("nested", loop)):
                began = time.perf_counter()
                await (cell(work) if isinstance(work, str) else work())
                took[name].append((time.perf_counter() - began) * 1000 / BLOCK)
        sdk = line("SDK call, blocks of 20", took["sdk"])
        own = [n - e for n, e in zip(took["nested"], took["empty"], strict=True)]
        mine = line("nested call, blocks of 20", own)
        best = {name: min(times) for name, times in took.items()}
        low = best["nested"] - best["empty"] - best["sdk"]
        print(f"{'added by a cell':34} {mine - sdk:+.3f} ms, best blocks {low:+.3f} (limit +1 ms)")
        for name, call in (("echo", "echo({v: 'x'})"), ("sleep", "sleep({seconds: 0.1})")):
            began = time.perf_counter()
            await cell(f"await Promise.all(Array.from({{length: 100}}, () => MCP.fx.{call}))")
            print(
                f"{f'100 parallel {name} in a cell':34} {(time.perf_counter() - began) * 1000:8.1f} ms"
            )


async def starts(count: int, extra: int) -> None:
    async with anyio.create_task_group() as group:
        # Twenty tools of its own, as every fixture has 23: `include` publishes twenty.
        servers = {
            f"s{n}": McpServerSettings(
                command=sys.executable,
                args=(*FIXTURE, "--extra", str(extra)),
                env={"PYTHONPATH": SRC},
                include=("extra_*",),
            )
            for n in range(count)
        }
        mcp = source(group, servers)
        began = time.perf_counter()
        await mcp.start()
        took = time.perf_counter() - began
        title = f"{count} servers x {extra} tools, start"
        print(f"{title:34} {took:8.2f} s  {len(mcp.tools())} tools")
        began = time.perf_counter()
        await mcp.aclose()
        print(f"{'close':34} {time.perf_counter() - began:8.2f} s")


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    anyio.run(calls)
    anyio.run(nested)
    anyio.run(starts, 1, 1000)
    anyio.run(starts, 50, 20)


if __name__ == "__main__":
    main()
