"""Tool Search as tools of a FastMCP server, and a client that uses them in the same process."""

import anyio
from fastmcp import Client, FastMCP

from toolcell import ToolSearch, tool
from toolcell.adapters.fastmcp import add_to_fastmcp


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    async with ToolSearch(tools=[price], mode="tools") as session:
        server = FastMCP("shop")
        add_to_fastmcp(server, session)
        async with Client(server) as client:
            found = await client.call_tool("tool_search", {"query": "what does it cost"})
            print(found.content[0].text)
            bought = await client.call_tool("tool_call", {"id": "price", "args": {"item": "pear"}})
            print(bought.content[0].text)


anyio.run(main)
