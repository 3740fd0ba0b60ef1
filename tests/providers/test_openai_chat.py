"""The OpenAI Chat Completions wire, with the official client over real sockets."""

import json
import sys

import anyio
import pytest

from toolcell.errors import PayloadViolationError, ProviderError
from toolcell.protocol.messages import Message, ModelRequest, ToolCall, ToolDefinition
from toolcell.providers.openai_chat import OpenAIChatProvider
from toolcell.providers.wire import WireSettings
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, RawBody, RawStream, Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

EXEC = ToolDefinition(
    name="exec",
    description="Run code.",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}},
)
ASK = ModelRequest(
    model="m1",
    messages=(Message(role="system", text="Be brief."), Message(role="user", text="Hé 你好")),
    tools=(EXEC,),
    options={"temperature": 0},
)


def provider_for(server, **settings):
    return OpenAIChatProvider(
        WireSettings(base_url=server.base_url, api_key="sk-canary-123", **settings)
    )


async def complete(steps, request=ASK, *, check_payload=None, on_text=None, **settings):
    async with openai_server(ScriptedModel(steps)) as server:
        provider = provider_for(server, **settings)
        try:
            reply = await provider.complete(request, check_payload=check_payload, on_text=on_text)
        finally:
            await provider.aclose()
    return reply, server


@pytest.mark.parametrize("stream", [False, True])
async def test_text_arrives_whole_with_usage_and_finish(stream):
    reply, server = await complete([Answer(text="Hello, 世界.", usage=(12, 3))], stream=stream)
    assert reply.message == Message(role="assistant", text="Hello, 世界.")
    assert (reply.finish, reply.usage.input_tokens, reply.usage.output_tokens) == ("stop", 12, 3)
    body = server.model.bodies[0]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hé 你好"},
    ]
    assert body["temperature"] == 0
    assert body["tools"][0]["function"]["name"] == "exec"
    assert body.get("stream", False) is stream
    assert server.headers[0]["authorization"] == "Bearer sk-canary-123"


@pytest.mark.parametrize("stream", [False, True])
async def test_request_bytes_is_the_length_of_the_body_the_server_received(stream):
    reply, server = await complete(["ok"], stream=stream)
    assert reply.request_bytes == len(server.raw[0]) > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_several_tool_calls_keep_order_ids_and_argument_text(stream):
    calls = (
        ToolCall("call_a", "exec", '{"code": "return 1"}'),
        ToolCall("call_b", "wait", '{"runId":"cell_1"}'),
        ToolCall("call_c", "exec", '{"code": "not json'),
    )
    reply, _ = await complete([Answer(text="Working", calls=calls)], stream=stream)
    assert reply.message.tool_calls == calls
    assert reply.message.text == "Working"
    assert reply.finish == "tool_calls"


async def test_on_text_gets_pieces_as_they_arrive():
    pieces: list[str] = []
    reply, _ = await complete([Answer(text="abcdefghij", piece=4)], on_text=pieces.append)
    assert pieces == ["abcd", "efgh", "ij"]
    assert reply.message.text == "abcdefghij"


def chunk(delta=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def call_part(index, *, call_id=None, name=None, arguments=None):
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    part = {"function": function}
    if index is not None:
        part["index"] = index
    if call_id is not None:
        part["id"] = call_id
    return {"tool_calls": [part]}


async def test_odd_chunks_are_put_together():
    """Interleaved calls, null deltas, empty choices, repeated names, empty ids."""
    lines = (
        ": a comment\n\n",
        {"choices": []},
        chunk(None),
        chunk({"role": "assistant", "content": None}),
        chunk(call_part(0, call_id="c0", name="exec", arguments="")),
        chunk(call_part(1, call_id="c1", name="wait", arguments='{"run')),
        chunk(call_part(0, call_id="", name="exec", arguments='{"co')),
        chunk({"tool_calls": None}),
        chunk(call_part(1, arguments='Id":"x"}')),
        chunk(call_part(0, arguments='de":"1"}')),
        chunk({}, "tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": "many"}},
        "data: [DONE]\n\n",
    )
    reply, _ = await complete([RawStream(lines=lines)], stream=True)
    assert reply.message.tool_calls == (
        ToolCall("c0", "exec", '{"code":"1"}'),
        ToolCall("c1", "wait", '{"runId":"x"}'),
    )
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 0)


async def test_calls_that_share_an_index_are_told_apart_by_their_ids():
    lines = (
        chunk(call_part(0, call_id="c0", name="exec", arguments="{}")),
        chunk(call_part(0, call_id="c1", name="wait", arguments="{}")),
        chunk({}, "stop"),
        "data: [DONE]\n\n",
    )
    reply, _ = await complete([RawStream(lines=lines)], stream=True)
    assert [call.name for call in reply.message.tool_calls] == ["exec", "wait"]
    assert reply.finish == "tool_calls"


async def test_missing_call_ids_are_made_up_and_object_arguments_become_text():
    message = {"tool_calls": [{"function": {"name": "exec", "arguments": {"code": "1"}}}]}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    reply, _ = await complete([RawBody(body=body)])
    (call,) = reply.message.tool_calls
    assert call.id.startswith("call_")
    assert call.arguments == '{"code":"1"}'


@pytest.mark.parametrize("cut", [False, True])
async def test_a_stream_that_ends_early_is_an_error_that_may_be_retried(cut):
    with pytest.raises(ProviderError) as caught:
        await complete([RawStream(lines=(chunk({"content": "Hal"}),), cut=cut)], stream=True)
    assert caught.value.retryable


async def test_an_error_event_in_a_stream_is_reported_in_the_endpoints_words():
    lines = ({"error": {"message": "model overloaded"}},)
    with pytest.raises(ProviderError, match="model overloaded") as caught:
        await complete([RawStream(lines=lines)], stream=True)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (RawBody(body="<html>hi</html>", content_type="text/html"), "no chat completion"),
        (RawBody(body="{nope"), "not JSON"),
        (RawBody(body="[1, 2]"), "no chat completion"),
        (RawBody(body='{"choices": {"a": 1}}'), "no chat completion"),
        (RawBody(body='{"choices": [null]}'), "no chat completion"),
    ],
)
async def test_an_answer_that_is_no_completion_says_so_and_what_to_check(raw, match):
    with pytest.raises(ProviderError, match=match):
        await complete([raw])


async def test_garbage_in_a_stream_is_an_error():
    with pytest.raises(ProviderError, match="not JSON"):
        await complete([RawStream(lines=("data: {oops\n\n",))], stream=True)


async def test_rate_limits_and_server_errors_are_tried_again():
    again = {"retry-after-ms": "1"}
    refusals = [Refusal(status=429, headers=again), Refusal(status=503, headers=again)]
    reply, server = await complete([*refusals, "third time"])
    assert reply.message.text == "third time"
    assert len(server.raw) == 3
    assert server.raw[0] == server.raw[2]


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "bad thing"), (401, "apiKey"), (404, "model name 'm1'")],
)
async def test_refusals_are_not_retried_and_name_the_remedy(status, remedy):
    said = f'{{"error": {{"message": "bad thing with sk-canary-123 {"x" * 5000}"}}}}'
    model = ScriptedModel([Refusal(status=status, body=said), "never"])
    async with openai_server(model) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError, match=remedy) as caught:
            await provider.complete(ASK)
        await provider.aclose()
    assert len(server.raw) == 1
    assert caught.value.status == status
    assert not caught.value.retryable
    assert "canary" not in caught.value.message
    assert len(caught.value.message) < 1000


async def test_retries_give_up_with_the_last_answer():
    refusal = Refusal(status=500, headers={"retry-after-ms": "1"})
    with pytest.raises(ProviderError, match="answered 500") as caught:
        await complete([refusal] * 3)
    assert caught.value.retryable


async def test_an_endpoint_that_is_not_there_is_named():
    settings = WireSettings(base_url="http://127.0.0.1:9/v1", max_retries=0)
    provider = OpenAIChatProvider(settings)
    with pytest.raises(ProviderError, match=r"http://127\.0\.0\.1:9/v1.*baseUrl") as caught:
        await provider.complete(ASK)
    await provider.aclose()
    assert caught.value.retryable


async def test_the_check_sees_the_body_as_it_is_sent():
    """rule 2.6: enforcement reads what really goes on the wire, streaming keys included."""
    seen = []
    reply, server = await complete(["ok"], check_payload=seen.append, stream=True)
    assert seen == [json.loads(server.raw[0])]
    assert seen[0]["stream"] is True
    assert reply.message.text == "ok"


async def test_a_body_changed_below_the_sdk_is_still_checked():
    """rule 2.6: the check reads the HTTP request, not what the SDK was given."""

    def refuse(body):
        if any(tool["function"]["name"] != "exec" for tool in body["tools"]):
            raise PayloadViolationError("no")

    async with openai_server(ScriptedModel(["never"])) as server:
        provider = provider_for(server)

        async def smuggle(request):
            body = json.loads(request.content)
            body["tools"].append({"type": "function", "function": {"name": "shell"}})
            request._content = json.dumps(body).encode()

        provider._wire._client._client.event_hooks["request"].insert(0, smuggle)
        with pytest.raises(PayloadViolationError):
            await provider.complete(ASK, check_payload=refuse)
        await provider.aclose()
        assert server.raw == []


async def test_a_refused_body_is_not_sent_and_not_retried():
    """rule 2.6: the run fails closed."""
    attempts = []

    def refuse(body):
        attempts.append(body)
        raise PayloadViolationError("no")

    async with openai_server(ScriptedModel(["never"])) as server:
        provider = provider_for(server)
        with pytest.raises(PayloadViolationError):
            await provider.complete(ASK, check_payload=refuse)
        await provider.aclose()
    assert server.raw == []
    assert len(attempts) == 1


async def test_cancelling_in_mid_stream_closes_the_connection():
    script = RawStream(lines=(chunk({"content": "Hal"}),), hold=True)
    pieces: list[str] = []
    async with openai_server(ScriptedModel([script, "after"])) as server:
        provider = provider_for(server)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def ask():
                    await provider.complete(ASK, on_text=pieces.append)

                tasks.start_soon(ask)
                await server.streaming.wait()
                tasks.cancel_scope.cancel()
            await server.disconnected.wait()
            reply = await provider.complete(ASK)
        await provider.aclose()
    assert reply.message.text == "after"


async def test_parallel_requests_do_not_mix_their_checks_and_sizes():
    async with openai_server(ScriptedModel(["same"], repeat_last=True)) as server:
        provider = provider_for(server)
        sizes = {}

        async def ask(count):
            text = "x" * count
            bodies = []
            request = ModelRequest(model="m", messages=(Message(role="user", text=text),))
            reply = await provider.complete(request, check_payload=bodies.append)
            assert [body["messages"][0]["content"] for body in bodies] == [text]
            sizes[count] = reply.request_bytes

        async with anyio.create_task_group() as tasks:
            for count in range(8):
                tasks.start_soon(ask, count)
        await provider.aclose()
    assert [sizes[n] - sizes[0] for n in range(8)] == list(range(8))


async def test_lone_surrogates_in_the_history_do_not_break_the_request():
    request = ModelRequest(model="m", messages=(Message(role="user", text="a\ud800b"),))
    _, server = await complete(["ok"], request)
    assert server.model.bodies[0]["messages"][0]["content"] == "a\ufffdb"


async def test_history_goes_back_with_calls_and_their_answers():
    """CN-08: a name no endpoint takes back is made safe; arguments stay as the model wrote them."""
    messages = (
        Message(role="user", text="go"),
        Message(
            role="assistant",
            tool_calls=(ToolCall("c1", " exec ", "{bad"), ToolCall("c2", "", "{}")),
        ),
        Message(role="tool", tool_call_id="c1", text='{"status":"failed"}', is_error=True),
        Message(role="tool", tool_call_id="c2", text="unknown tool ''", is_error=True),
    )
    _, server = await complete(["ok"], ModelRequest(model="m", messages=messages))
    sent = server.model.bodies[0]["messages"]
    assert [call["function"] for call in sent[1]["tool_calls"]] == [
        {"name": "exec", "arguments": "{bad"},
        {"name": "unnamed", "arguments": "{}"},
    ]
    assert sent[1]["content"] is None
    assert sent[2] == {"role": "tool", "tool_call_id": "c1", "content": '{"status":"failed"}'}


async def test_options_cannot_replace_the_request_itself():
    request = ModelRequest(model="m", messages=(), options={"tools": []})
    with pytest.raises(ProviderError, match="'tools' cannot be set"):
        await complete(["never"], request)


async def test_a_missing_key_for_openai_itself_names_the_setting():
    with pytest.raises(ProviderError, match=r"models\.providers\.openai\.apiKey"):
        OpenAIChatProvider(WireSettings())


async def test_a_missing_sdk_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ProviderError, match=r'pip install "toolcell\[openai\]"'):
        OpenAIChatProvider(WireSettings(base_url="http://localhost/v1"))
