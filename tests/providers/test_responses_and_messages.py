"""What is particular to the OpenAI Responses and the Anthropic Messages wire."""

import json

import pytest

from tests.providers.wires import ANTHROPIC, ASK, KEY, RESPONSES, complete
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelRequest, Reasoning, ToolCall
from toolcell.testing.scripted_model import RawBody, RawStream

pytestmark = pytest.mark.anyio

TALK = (
    Message(role="system", text="Be brief."),
    Message(role="user", text="go"),
    Message(role="assistant", text="Two.", tool_calls=(ToolCall("c1", "exec", '{"code":"1"}'),)),
    Message(role="tool", tool_call_id="c1", text="boom", is_error=True),
    Message(role="user", text="and?"),
)


async def test_responses_get_items_and_keep_nothing_at_the_endpoint():
    _, server = await complete(RESPONSES, ["ok"], ModelRequest(model="m", messages=TALK))
    body = server.model.bodies[0]
    assert body["store"] is False
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Two."},
        {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": '{"code":"1"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "boom"},
        {"role": "user", "content": "and?"},
    ]


async def test_responses_tools_are_not_strict():
    _, server = await complete(RESPONSES, ["ok"])
    (tool,) = server.model.bodies[0]["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "exec", False)


async def test_messages_alternate_and_answers_of_tools_are_blocks_of_the_user():
    _, server = await complete(ANTHROPIC, ["ok"], ModelRequest(model="m", messages=TALK))
    body = server.model.bodies[0]
    assert body["system"] == "Be brief."
    assert body["max_tokens"] > 0
    use = {"type": "tool_use", "id": "c1", "name": "exec", "input": {"code": "1"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "boom", "is_error": True}
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Two."}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
    ]


async def test_the_bound_of_a_reply_may_be_set():
    request = ModelRequest(model="m", messages=TALK, options={"max_tokens": 99})
    _, server = await complete(ANTHROPIC, ["ok"], request)
    assert server.model.bodies[0]["max_tokens"] == 99


@pytest.mark.parametrize("stream", [False, True])
async def test_signed_thinking_goes_back_unchanged_and_only_to_its_own_wire(stream):
    thought = {"type": "thinking", "thinking": "hm, hm", "signature": "sig=="}
    use = {"type": "tool_use", "id": "t1", "name": "exec", "input": {"code": "1"}}
    whole = {"content": [thought, use], "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    events = (
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        block(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, {"type": "thinking_delta", "thinking": "hm, "}),
        delta(0, {"type": "thinking_delta", "thinking": "hm"}),
        delta(0, {"type": "signature_delta", "signature": "sig=="}),
        block(1, {**use, "input": {}}),
        delta(1, {"type": "input_json_delta", "partial_json": '{"code":"1"}'}),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    )
    step = RawStream(lines=events) if stream else RawBody(body=json.dumps(whole))
    reply, _ = await complete(ANTHROPIC, [step], stream=stream)
    assert reply.message.reasoning == Reasoning("anthropic", (thought,))
    assert reply.message.tool_calls == (ToolCall("t1", "exec", '{"code":"1"}'),)
    assert reply.usage.input_tokens == 3
    answer = Message(role="tool", tool_call_id="t1", text="1")
    talk = ModelRequest(model="m", messages=(*ASK.messages, reply.message, answer))
    _, server = await complete(ANTHROPIC, ["ok"], talk)
    assert server.model.bodies[0]["messages"][1]["content"] == [thought, use]
    _, server = await complete(RESPONSES, ["ok"], talk)
    assert "sig==" not in json.dumps(server.model.bodies[0])


async def test_encrypted_reasoning_goes_back_to_responses():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
    call = {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": "{}"}
    plain = {"type": "reasoning", "id": "rs_2", "summary": []}
    body = {"status": "completed", "output": [item, plain, call]}
    reply, _ = await complete(RESPONSES, [RawBody(body=json.dumps(body))])
    assert reply.message.reasoning == Reasoning("openai-responses", (item,))
    talk = ModelRequest(model="m", messages=(*ASK.messages, reply.message))
    _, server = await complete(RESPONSES, ["ok"], talk)
    assert server.model.bodies[0]["input"][1:] == [item, call]


async def test_a_response_without_its_output_at_the_end_is_put_together():
    events = (
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hal"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "lo"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "c", "name": "exec", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    reply, _ = await complete(RESPONSES, [RawStream(lines=events)], stream=True)
    assert reply.message.text == "Hallo"
    assert reply.message.tool_calls == (ToolCall("c", "exec", "{}"),)


@pytest.mark.parametrize(("code", "retryable"), [("server_error", True), ("invalid_prompt", False)])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_response_says_why_without_the_key(code, retryable, stream):
    error = {"code": code, "message": f"no luck with {KEY}"}
    failed = {"status": "failed", "error": error, "output": []}
    if stream:
        step = RawStream(lines=({"type": "response.failed", "response": failed},))
    else:
        step = RawBody(body=json.dumps(failed))
    with pytest.raises(ProviderError, match="no luck") as caught:
        await complete(RESPONSES, [step], stream=stream)
    assert caught.value.retryable is retryable
    assert KEY not in caught.value.message


@pytest.mark.parametrize(
    ("kind", "retryable"), [("overloaded_error", True), ("invalid_request_error", False)]
)
async def test_an_error_event_in_a_message_stream_is_told(kind, retryable):
    event = {"type": "error", "error": {"type": kind, "message": "Overloaded"}}
    with pytest.raises(ProviderError, match="broke off: Overloaded") as caught:
        await complete(ANTHROPIC, [RawStream(lines=(event,))], stream=True)
    assert caught.value.retryable is retryable


async def test_cache_reads_count_as_input():
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
    }
    body = {"content": [], "stop_reason": "end_turn", "usage": usage}
    reply, _ = await complete(ANTHROPIC, [RawBody(body=json.dumps(body))])
    told = reply.usage
    assert (told.input_tokens, told.cached_tokens, told.output_tokens) == (125, 100, 7)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("refusal", "filtered"), ("max_tokens", "length"), ("pause_turn", "other")],
)
async def test_stop_reasons_are_normalised(reason, finish):
    body = {"content": [{"type": "text", "text": "x"}], "stop_reason": reason}
    reply, _ = await complete(ANTHROPIC, [RawBody(body=json.dumps(body))])
    assert reply.finish == finish


def block(index, start):
    return {"type": "content_block_start", "index": index, "content_block": start}


def delta(index, piece):
    return {"type": "content_block_delta", "index": index, "delta": piece}
