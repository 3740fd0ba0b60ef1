"""The loops over vendors' SDKs, against a scripted model over real HTTP."""

import json

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from toolcell import CodeMode, ToolcellError, ToolSearch, tool
from toolcell.adapters.anthropic_loop import run_anthropic
from toolcell.adapters.langchain import langchain_tools
from toolcell.adapters.missing import needs
from toolcell.adapters.openai_loop import run_openai
from toolcell.protocol.messages import ToolCall
from toolcell.providers.scripted import tool_call
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio
ASK = [{"role": "user", "content": "go"}]


@tool
async def price(item: str) -> float:
    """Look up the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


def openai(server):
    return AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)


async def test_the_openai_sdk_runs_code_mode():
    """rule 2.2: the tools of the session are what is sent; results come back as tool messages."""
    code = "return (await price({item: 'apple'})) + (await price({item: 'pear'}))"
    script = ScriptedModel([[tool_call("exec", {"code": code})], "1.25 in all"])
    async with (
        openai_server(script) as server,
        openai(server) as client,
        CodeMode(tools=[price], executor="quickjs") as session,
    ):
        talk = await run_openai(client, session, model="m", messages=ASK)
        assert talk[-1]["content"] == "1.25 in all"
        assert [each["role"] for each in talk] == ["user", "assistant", "tool", "assistant"]
        assert "1.25" in talk[2]["content"]
        assert script.bodies[0]["tools"] == session.definitions("openai")


async def test_calls_of_one_reply_are_answered_in_order_and_bad_ones_are_told():
    """rule 10.3, CN-08."""
    calls = [
        tool_call("tool_search", {"query": "price"}),
        ToolCall("c2", "tool_call", "not json"),
        tool_call("nothing", {}),
    ]
    script = ScriptedModel([calls, "done"])
    async with (
        openai_server(script) as server,
        openai(server) as client,
        ToolSearch(tools=[price], mode="tools") as session,
    ):
        talk = await run_openai(client, session, model="m", messages=ASK)
        answers = [each["content"] for each in talk if each["role"] == "tool"]
        assert json.loads(answers[0])[0]["id"] == "openclaw:core:price"
        assert "are not JSON" in answers[1]
        assert "unknown tool 'nothing'" in answers[2]


async def test_the_directory_goes_in_front_of_the_conversation():
    """rule 10.4."""
    script = ScriptedModel(["done"])
    async with (
        openai_server(script) as server,
        openai(server) as client,
        ToolSearch(tools=[price], mode="directory") as session,
    ):
        talk = await run_openai(client, session, model="m", messages=ASK)
        assert script.bodies[0]["messages"][0] == {"role": "system", "content": session.prompt}
        assert "- price (core): Look up the price" in session.prompt
        assert [each["role"] for each in talk] == ["user", "assistant"]


async def test_a_model_that_never_ends_is_stopped():
    """A bound on turns, with what to do."""
    script = ScriptedModel([[tool_call("tool_search", {"query": "x"})]], repeat_last=True)
    async with (
        openai_server(script) as server,
        openai(server) as client,
        ToolSearch(tools=[price], mode="tools") as session,
    ):
        with pytest.raises(ToolcellError, match="raise max_turns"):
            await run_openai(client, session, model="m", messages=ASK, max_turns=2)
        assert len(script.bodies) == 2


async def test_the_anthropic_sdk_runs_tool_search():
    """rule 10.3, rule 10.5."""
    script = ScriptedModel(
        [
            [tool_call("tool_search", {"query": "price"})],
            [tool_call("tool_call", {"id": "price", "args": {"item": "pear"}})],
            [tool_call("tool_call", {"id": "price", "args": {"thing": 1}})],
            "0.75",
        ]
    )
    async with (
        openai_server(script) as server,
        AsyncAnthropic(base_url=server.root_url, api_key="k", max_retries=0) as client,
        ToolSearch(tools=[price], mode="tools") as session,
    ):
        talk = await run_anthropic(
            client, session, model="m", max_tokens=100, system="Be brief.", messages=ASK
        )
        assert talk[-1]["content"][0]["text"] == "0.75"
        assert "0.75" in talk[4]["content"][0]["content"]
        assert talk[6]["content"][0]["is_error"] is True
        assert script.bodies[0]["tools"] == session.definitions("anthropic")
        assert script.bodies[0]["system"] == "Be brief."


def test_a_missing_package_is_named():
    """The error says what to install."""
    with pytest.raises(ToolcellError, match="pip install langchain-core"), needs("langchain-core"):
        import not_a_package_of_anyone  # noqa: F401, PLC0415 - it is not there
    assert callable(langchain_tools)
