"""Code Mode in the OpenAI Agents SDK. Needs OPENAI_API_KEY."""

import anyio
from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled

from toolcell import CodeMode, tool
from toolcell.adapters.openai_agents import openai_agents_tools


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    async with CodeMode(tools=[price], executor="quickjs") as session:
        agent = Agent(name="Shop", model="gpt-5", tools=openai_agents_tools(session))
        result = await Runner.run(agent, "What do an apple and a pear cost together?")
        print(result.final_output)


anyio.run(main)
