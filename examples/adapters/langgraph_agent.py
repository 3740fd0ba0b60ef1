"""Tool Search in a LangChain agent, which is a LangGraph graph. Needs OPENAI_API_KEY."""

import anyio
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from toolcell import ToolSearch, tool
from toolcell.adapters.langchain import langchain_tools


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def main() -> None:
    async with ToolSearch(tools=[price], mode="tools") as session:
        agent = create_agent(ChatOpenAI(model="gpt-5"), langchain_tools(session))
        state = await agent.ainvoke(
            {"messages": [{"role": "user", "content": "What does a pear cost?"}]}
        )
        print(state["messages"][-1].text)


anyio.run(main)
