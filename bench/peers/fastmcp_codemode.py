"""FastMCP's CodeMode over 100 tools, through its own in-memory client."""

import asyncio

from fastmcp import Client, FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from measure import report, timed

server = FastMCP("bench", transforms=[CodeMode(max_tool_calls=None)])


def noop_tool(number):
    async def noop(i: int = 0) -> dict:
        return {"ok": True}

    noop.__name__ = f"tool_{number}"
    noop.__doc__ = f"Do nothing, number {number}."
    return noop


for count in range(100):
    server.tool(noop_tool(count))

SEQUENTIAL = "for i in range(100):\n    await call_tool('tool_0', {'i': i})\nreturn 100"
PARALLEL = (
    "import asyncio\n"
    "return len(await asyncio.gather(*[call_tool('tool_0', {'i': i}) for i in range(100)]))"
)


async def main():
    async with Client(server) as client:
        tools = await client.list_tools()
        name = next(tool.name for tool in tools if "execute" in tool.name)

        def cell(code):
            return client.call_tool(name, {"code": code})

        await cell("return 1 + 2")
        report(
            peer="fastmcp CodeMode",
            cell_ms=await timed(lambda: cell("return 1 + 2"), 30),
            sequential_100_ms=await timed(lambda: cell(SEQUENTIAL), 5),
            parallel_100_ms=await timed(lambda: cell(PARALLEL), 5),
        )


asyncio.run(main())
