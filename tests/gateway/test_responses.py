"""The Responses API through the official client, over a real socket."""

import json

import openai
import pytest

from tests.gateway.kit import QUICKJS, config, gateway, tool
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelReply, Usage
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio
CODE = {"codeMode": QUICKJS}
SELECT = {
    "type": "function",
    "name": "select_file",
    "description": "Ask the user for a file.",
    "parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
}


def last(request):
    return request.messages[-1].text


async def finished(stream):
    """Return the types of a stream's events, its text, and the last response."""
    types, text, response = [], "", None
    async for event in stream:
        types.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
        response = getattr(event, "response", response)
    return types, text, response


async def test_the_official_client_gets_a_response(tmp_path):
    reply = ModelReply(
        message=Message(role="assistant", text="hello"),
        finish="stop",
        usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=5),
    )
    async with gateway(config(tmp_path), [reply]) as g:
        got = await g.openai.responses.create(
            model="main", input="hi", instructions="Be brief.", max_output_tokens=9
        )
    assert got.output_text == "hello"
    assert (got.status, got.usage.total_tokens) == ("completed", 10)
    assert got.usage.input_tokens_details.cached_tokens == 5
    sent = g.sent()
    assert [m["content"] for m in sent["messages"]] == ["Be brief.", "hi"]


async def test_the_official_client_streams_a_response(tmp_path):
    async with gateway(config(tmp_path), ["hello there"]) as g:
        stream = await g.openai.responses.create(model="main", input="hi", stream=True)
        types, text, response = await finished(stream)
    assert text == response.output_text == "hello there"
    assert types[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert types[-1] == "response.completed"


async def test_a_response_goes_on_from_the_one_before(tmp_path):
    async with gateway(config(tmp_path), ["one", "two"]) as g:
        create = g.openai.responses.create
        first = await create(model="main", input="a")
        second = await create(model="main", input="b", previous_response_id=first.id)
        with pytest.raises(openai.BadRequestError) as branched:
            await create(model="main", input="c", previous_response_id=first.id)
        with pytest.raises(openai.BadRequestError) as unknown:
            await create(model="main", input="c", previous_response_id="resp_nope")
    assert [m["content"] for m in g.sent()["messages"]] == ["a", "one", "b"]
    assert second.conversation.id == first.conversation.id
    assert branched.value.code == "previous_response_not_latest"
    assert unknown.value.code == "previous_response_not_found"


async def test_a_conversation_is_a_session(tmp_path):
    async with gateway(config(tmp_path), ["one", "two"]) as g:
        for text in ("a", "b"):
            await g.openai.responses.create(model="main", input=text, conversation="s1")
    assert [m["content"] for m in g.sent()["messages"]] == ["a", "one", "b"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stateless", [False, True])
async def test_a_client_tool_comes_back_as_a_function_call(tmp_path, stream, stateless):
    cell = "const f = await select_file({title: '?'}); return {got: f.path}"
    steps = [tool_call("exec", {"code": cell}), last]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("echo")]) as g:
        create = g.openai.responses.create
        asked = [{"role": "user", "content": "go"}]
        first = await create(model="main", input=asked, tools=[SELECT], stream=stream)
        if stream:
            _, _, first = await finished(first)
        (call,) = first.output
        assert (call.type, call.name) == ("function_call", "select_file")
        assert json.loads(call.arguments) == {"title": "?"}
        output = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": '{"path": "a"}',
        }
        more = (
            {"input": [*asked, call.model_dump(), output]}
            if stateless
            else {"input": [output], "previous_response_id": first.id}
        )
        second = await create(model="main", tools=[SELECT], stream=stream, **more)
        if stream:
            _, _, second = await finished(second)
    assert '"got":"a"' in second.output_text
    assert len(g.model.bodies) == 2


async def test_a_conversation_may_be_sent_whole(tmp_path):
    given = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "y", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x", "output": "1"},
        {"type": "function_call_output", "call_id": "y", "output": "2"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "b"}],
        },
        {"role": "user", "content": "c"},
    ]
    async with gateway(config(tmp_path), ["ok"]) as g:
        await g.openai.responses.create(model="main", input=given)
    sent = g.sent()["messages"]
    assert [m["role"] for m in sent] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["x", "y"]


async def test_a_run_that_fails_in_mid_stream_ends_in_a_failed_response(tmp_path):
    first = ModelReply(
        message=Message(role="assistant", text="So", tool_calls=(tool_call("echo", {}),)),
        finish="tool_calls",
    )
    steps = [first, ProviderError("gone")]
    async with gateway(config(tmp_path), steps, tools=[tool("echo")]) as g:
        stream = await g.openai.responses.create(model="main", input="x", stream=True)
        types, text, response = await finished(stream)
    assert (types[-1], text) == ("response.failed", "So")
    assert response.error.message == "gone"


async def test_an_answer_that_was_cut_says_so(tmp_path):
    reply = ModelReply(message=Message(role="assistant", text="hel"), finish="length")
    async with gateway(config(tmp_path), [reply, reply]) as g:
        whole = await g.openai.responses.create(model="main", input="x")
        chat = await g.chat()
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert chat.choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "messages"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "tools": [{"type": "web_search", "name": "x"}]}, "tools[0].type"),
        ({"input": "x", "tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"input": "x", "conversation": "a", "previous_response_id": "b"}, "previous_response_id"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
    ],
)
async def test_what_is_not_supported_is_refused_by_name(tmp_path, body, param):
    async with gateway(config(tmp_path), ["no"]) as g:
        got = await g.post("/v1/responses", body)
    assert (got.status_code, got.json()["error"]["param"]) == (400, param)
    assert g.model.bodies == []


async def test_structured_output_and_effort_reach_the_model(tmp_path):
    form = {"type": "json_schema", "name": "f", "schema": {"type": "object"}, "strict": True}
    async with gateway(config(tmp_path), ["{}"]) as g:
        await g.openai.responses.create(
            model="main", input="x", text={"format": form}, reasoning={"effort": "low"}
        )
    sent = json.dumps(g.sent())
    assert '"reasoning_effort": "low"' in sent
    assert g.sent()["response_format"]["json_schema"]["name"] == "f"
