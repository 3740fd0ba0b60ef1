"""Code Mode in a pydantic-ai agent. Needs OPENAI_API_KEY."""

import anyio
from pydantic_ai import Agent

from toolcell import CodeMode, tool
from toolcell.adapters.pydantic_ai import pydantic_ai_toolset


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    async with CodeMode(tools=[price], executor="quickjs") as session:
        agent = Agent("openai-chat:gpt-5", toolsets=[pydantic_ai_toolset(session)])
        result = await agent.run("What do an apple and a pear cost together?")
        print(result.output)


anyio.run(main)
