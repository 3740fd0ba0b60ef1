"""The scripted provider, tool shapes, and the way from a model's name to its provider."""

import json

import pytest

from toolcell.errors import ConfigError, PayloadViolationError, ProviderError
from toolcell.protocol.messages import Message, ModelReply, ModelRequest, ToolDefinition
from toolcell.providers.openai_chat import OpenAIChatProvider
from toolcell.providers.registry import Endpoint, ModelRef, ProviderRegistry
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.providers.tool_shapes import render_tool

pytestmark = pytest.mark.anyio

ASK = ModelRequest(model="m", messages=(Message(role="user", text="hi"),))


async def test_steps_are_played_in_order_and_requests_recorded():
    call = tool_call("exec", {"code": "return 1"}, id="c1")
    provider = ScriptedProvider(
        [call, [call, tool_call("wait", "{raw", id="c2")], lambda request: request.model, "done"]
    )
    replies = [await provider.complete(ASK) for _ in range(4)]
    assert replies[0].message.tool_calls == (call,)
    assert [c.arguments for c in replies[1].message.tool_calls] == ['{"code":"return 1"}', "{raw"]
    assert [reply.message.text for reply in replies[2:]] == ["m", "done"]
    assert [reply.finish for reply in replies] == ["tool_calls", "tool_calls", "stop", "stop"]
    assert provider.requests == [ASK] * 4


async def test_request_bytes_measures_the_openai_body():
    provider = ScriptedProvider(["a", ModelReply(message=Message(role="assistant"), finish="stop")])
    for _ in range(2):
        reply = await provider.complete(ASK)
        body = json.dumps(provider.bodies[0], separators=(",", ":"))
        assert reply.request_bytes == len(body)


async def test_a_refused_payload_uses_no_step():
    """rule 2.6"""

    def refuse(body):
        raise PayloadViolationError(str(sorted(body)))

    provider = ScriptedProvider(["only"])
    with pytest.raises(PayloadViolationError, match="messages"):
        await provider.complete(ASK, check_payload=refuse)
    assert (await provider.complete(ASK)).message.text == "only"


async def test_a_script_that_is_over_and_a_step_that_fails_raise():
    provider = ScriptedProvider([ProviderError("down", retryable=True)])
    with pytest.raises(ProviderError, match="down"):
        await provider.complete(ASK)
    with pytest.raises(ProviderError, match="no step for model call 2"):
        await provider.complete(ASK)


def test_model_names_split_at_the_first_slash():
    assert ModelRef.parse("router/meta/llama-4") == ModelRef("router", "meta/llama-4")
    assert str(ModelRef.parse("openai/gpt-5")) == "openai/gpt-5"
    for bad in ("gpt-5", "/gpt-5", "openai/", ""):
        with pytest.raises(ConfigError, match="provider/model"):
            ModelRef.parse(bad)


async def test_the_registry_opens_each_endpoint_once_and_closes_it():
    registry = ProviderRegistry({"local": Endpoint(base_url="http://127.0.0.1:9/v1")})
    first, ref = registry.resolve("local/qwen/3")
    again, _ = registry.resolve("local/other")
    assert isinstance(first, OpenAIChatProvider)
    assert first is again
    assert ref.model == "qwen/3"
    scripted = ScriptedProvider([])
    registry.add("demo", scripted)
    assert registry.resolve("demo/any")[0] is scripted
    await registry.aclose()


def test_an_unknown_provider_is_named_with_those_that_are_known():
    registry = ProviderRegistry({"local": Endpoint()})
    with pytest.raises(ConfigError, match=r"models\.providers\.nope: .*configured: local"):
        registry.resolve("nope/m")


def test_each_wire_has_its_own_tool_shape():
    schema = {"type": "object", "properties": {}}
    tool = ToolDefinition(name="exec", description="Run.", parameters=schema)
    assert render_tool(tool, "openai") == {
        "type": "function",
        "function": {"name": "exec", "description": "Run.", "parameters": schema},
    }
    assert render_tool(tool, "openai-responses")["strict"] is False
    assert render_tool(tool, "anthropic") == {
        "name": "exec",
        "description": "Run.",
        "input_schema": schema,
    }
    assert render_tool(tool, "mcp")["inputSchema"] == schema
    with pytest.raises(ValueError, match="unknown tool shape 'gemini'"):
        render_tool(tool, "gemini")
