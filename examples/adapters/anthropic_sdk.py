"""Tool Search in a loop over the Anthropic SDK. Needs ANTHROPIC_API_KEY."""

import anyio
from anthropic import AsyncAnthropic

from toolcell import ToolSearch, tool
from toolcell.adapters.anthropic_loop import run_anthropic


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    async with ToolSearch(tools=[price], mode="tools") as session:
        talk = await run_anthropic(
            AsyncAnthropic(),
            session,
            model="claude-sonnet-5",
            max_tokens=1000,
            messages=[{"role": "user", "content": "What does a pear cost?"}],
        )
        print(talk[-1]["content"][0]["text"])


anyio.run(main)
