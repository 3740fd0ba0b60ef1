"""Code Mode in a loop over the OpenAI SDK. Needs OPENAI_API_KEY; reads OPENAI_BASE_URL."""

import anyio
from openai import AsyncOpenAI

from toolcell import CodeMode, tool
from toolcell.adapters.openai_loop import run_openai


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    async with CodeMode(tools=[price], executor="quickjs") as session:
        talk = await run_openai(
            AsyncOpenAI(),
            session,
            model="gpt-5",
            messages=[{"role": "user", "content": "What do an apple and a pear cost together?"}],
        )
        print(talk[-1]["content"])


anyio.run(main)
