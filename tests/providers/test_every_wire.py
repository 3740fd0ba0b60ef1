"""What holds on every wire, with the vendors' own clients over real sockets."""

import json
import sys

import anyio
import pytest

from tests.providers.wires import ASK, EXEC, KEY, WIRES, complete
from tests.surface.tools import CONTROLS
from toolcell.errors import PayloadViolationError, ProviderError
from toolcell.protocol.messages import Message, ModelRequest, ToolCall
from toolcell.providers.wire import WireSettings
from toolcell.surface.enforcement import check_payload as enforced
from toolcell.surface.plan import SurfacePlan, plan_code_mode, plan_direct
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, RawBody, RawStream, Refusal, ScriptedModel
from toolcell.tools.tool import Tool, core_tool

pytestmark = pytest.mark.anyio
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@every_wire
@streamed
async def test_text_arrives_whole_with_usage_and_finish(wire, stream):
    steps = [Answer(text="Hello, 世界.", usage=(12, 3))]
    reply, server = await complete(wire, steps, stream=stream)
    assert reply.message == Message(role="assistant", text="Hello, 世界.")
    assert (reply.finish, reply.usage.input_tokens, reply.usage.output_tokens) == ("stop", 12, 3)
    assert reply.request_bytes == len(server.raw[0]) > 0
    body = server.model.bodies[0]
    assert body["model"] == "m1"
    assert body["temperature"] == 0
    assert body.get("stream", False) is stream
    assert "Be brief." in json.dumps(body)
    assert "Hé 你好" in json.dumps(body, ensure_ascii=False)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@every_wire
@streamed
async def test_several_tool_calls_keep_order_ids_and_arguments(wire, stream):
    calls = (
        ToolCall("call_a", "exec", '{"code":"return 1"}'),
        ToolCall("call_b", "wait", '{"runId":"cell_1"}'),
        ToolCall("call_c", "exec", "{}"),
    )
    reply, _ = await complete(wire, [Answer(text="Working", calls=calls)], stream=stream)
    assert reply.message.tool_calls == calls
    assert reply.message.text == "Working"
    assert reply.finish == "tool_calls"


@every_wire
@streamed
async def test_a_reply_that_was_cut_says_so(wire, stream):
    reply, _ = await complete(wire, [Answer(text="Half a", finish="length")], stream=stream)
    assert reply.finish == "length"


@every_wire
async def test_on_text_gets_pieces_as_they_arrive(wire):
    pieces: list[str] = []
    reply, _ = await complete(wire, [Answer(text="abcdefghij", piece=4)], on_text=pieces.append)
    assert pieces == ["abcd", "efgh", "ij"]
    assert reply.message.text == "abcdefghij"


@every_wire
async def test_rate_limits_and_server_errors_are_tried_again(wire):
    again = {"retry-after-ms": "1"}
    refusals = [Refusal(status=429, headers=again), Refusal(status=529, headers=again)]
    reply, server = await complete(wire, [*refusals, "third time"])
    assert reply.message.text == "third time"
    assert server.raw[0] == server.raw[2]


@every_wire
@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "bad thing"), (401, r"models\.providers\.vendor\.apiKey"), (404, "model name 'm1'")],
)
async def test_refusals_are_not_retried_and_name_the_remedy(wire, status, remedy):
    said = json.dumps({"error": {"type": "x", "message": f"bad thing with {KEY} {'x' * 5000}"}})
    with pytest.raises(ProviderError, match=remedy) as caught:
        await complete(wire, [Refusal(status=status, body=said), "never"])
    assert caught.value.status == status
    assert not caught.value.retryable
    assert "canary" not in caught.value.message
    assert len(caught.value.message) < 1000


@every_wire
@pytest.mark.parametrize("cut", [False, True])
async def test_a_stream_that_ends_early_is_an_error_that_may_be_retried(wire, cut):
    with pytest.raises(ProviderError) as caught:
        await complete(wire, [RawStream(lines=(": hm\n\n",), cut=cut)], stream=True)
    assert caught.value.retryable


@every_wire
@pytest.mark.parametrize(
    "raw",
    [
        RawBody(body="<html>hi</html>", content_type="text/html"),
        RawBody(body="[1, 2]"),
        RawBody(body='{"choices": {"a": 1}, "output": 1, "content": {"b": 2}}'),
    ],
)
async def test_an_answer_that_makes_no_sense_says_what_to_check(wire, raw):
    with pytest.raises(ProviderError, match="baseUrl"):
        await complete(wire, [raw])


@every_wire
async def test_garbage_is_an_error(wire):
    with pytest.raises(ProviderError, match="not JSON"):
        await complete(wire, [RawBody(body="{nope")])
    with pytest.raises(ProviderError, match="not JSON"):
        await complete(wire, [RawStream(lines=("event: x\ndata: {oops\n\n",))], stream=True)


@every_wire
@streamed
async def test_the_check_sees_the_body_as_it_is_sent(wire, stream):
    """rule 2.6: enforcement reads what really goes on the wire, streaming keys included."""
    seen = []
    _, server = await complete(wire, ["ok"], check_payload=seen.append, stream=stream)
    assert seen == [json.loads(server.raw[0])]


@every_wire
async def test_a_tool_added_below_the_sdk_stops_the_request(wire):
    """rule 2.6: the check reads the HTTP request, not what the SDK was given; BEHAVIOURS 37."""

    plan = plan_code_mode([], CONTROLS)
    request = ModelRequest(model="m", messages=ASK.messages, tools=plan.definitions)
    async with openai_server(ScriptedModel(["fine", "never"])) as server:
        provider = wire.open(server)
        check = enforced(plan)
        assert (await provider.complete(request, check_payload=check)).message.text == "fine"

        async def smuggle(sent):
            body = json.loads(sent.content)
            tool = json.loads(json.dumps(body["tools"][0]).replace('"exec"', '"shell"'))
            body["tools"].append(tool)
            sent._content = json.dumps(body).encode()

        provider._wire._client._client.event_hooks["request"].insert(0, smuggle)
        with pytest.raises(PayloadViolationError, match="got exec,shell,wait"):
            await provider.complete(request, check_payload=check)
        await provider.aclose()
        assert len(server.raw) == 1


@every_wire
async def test_a_refused_body_is_checked_once_and_never_sent(wire):
    """rule 2.6: the run fails closed; no SDK may take the refusal for a broken connection."""
    attempts = []

    def refuse(body):
        attempts.append(body)
        raise PayloadViolationError("no")

    async with openai_server(ScriptedModel(["never", "after"])) as server:
        provider = wire.open(server)
        with pytest.raises(PayloadViolationError):
            await provider.complete(ASK, check_payload=refuse)
        assert server.raw == []
        assert (await provider.complete(ASK)).message.text == "never"
        await provider.aclose()
    assert len(attempts) == 1


@every_wire
async def test_a_hosted_tool_slipped_in_by_an_option_stops_the_request(wire):
    """rule 2.6, BEHAVIOURS 39: no endpoint runs tools of its own unless that was authorised."""
    plan = SurfacePlan(visible=(), mode="code")
    options = {"web_search_options": {}} if wire.name == "openai-chat" else {}
    request = ModelRequest(model="m", messages=ASK.messages, tools=(), options=options)
    with pytest.raises(PayloadViolationError):
        await complete(wire, ["never"], request, check_payload=enforced(plan))


@every_wire
async def test_cancelling_in_mid_stream_closes_the_connection(wire):
    script = RawStream(lines=(": begun\n\n",), hold=True)
    async with openai_server(ScriptedModel([script, "after"])) as server:
        provider = wire.open(server, stream=True)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(provider.complete, ASK)
                await server.streaming.wait()
                tasks.cancel_scope.cancel()
            await server.disconnected.wait()
            reply = await provider.complete(ASK)
        await provider.aclose()
    assert reply.message.text == "after"


@every_wire
async def test_history_of_another_wire_is_accepted_back(wire):
    """CN-08: odd names, ids and arguments a model once wrote do not make a request refusable."""
    messages = (
        Message(role="user", text="go"),
        Message(
            role="assistant",
            tool_calls=(ToolCall("c:1", " exec ", "{bad"), ToolCall("c2", "", "{}")),
        ),
        Message(role="tool", tool_call_id="c:1", text='{"status":"failed"}', is_error=True),
        Message(role="tool", tool_call_id="c2", text="unknown tool ''", is_error=True),
        Message(role="assistant", text=" "),
        Message(role="user", text="lone \ud800 surrogate"),
    )
    _, server = await complete(wire, ["ok"], ModelRequest(model="m", messages=messages))
    text = json.dumps(server.model.bodies[0])
    assert '"exec"' in text
    assert '"unnamed"' in text
    assert "{bad" in text
    assert "\\ufffd" in text


@every_wire
@pytest.mark.parametrize("key", ["model", "tools", "stream"])
async def test_options_cannot_replace_the_request_itself(wire, key):
    request = ModelRequest(model="m", messages=(), options={key: []})
    with pytest.raises(ProviderError, match=f"'{key}' cannot be set"):
        await complete(wire, ["never"], request)


@every_wire
async def test_root_combinators_are_merged_and_the_original_is_left_alone(wire):
    """PP-03: the sent schema is an object without combinators at its root."""
    one = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "c": {}},
        "required": ["a", "c"],
    }
    two = {
        "type": "object",
        "properties": {"b": {"type": "number"}, "c": {}},
        "required": ["b", "c"],
    }
    schema = {"oneOf": [one, two]}
    request = ModelRequest(model="m", messages=ASK.messages, tools=direct(t=schema))
    _, server = await complete(wire, ["ok"], request)
    sent = sent_schema(server.model.bodies[0])
    assert sent["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & set(sent)
    assert set(sent["properties"]) == {"a", "b", "c"}
    assert sent["required"] == ["c"]
    assert schema == {"oneOf": [one, two]}


@every_wire
async def test_missing_properties_and_items_are_added_and_nothing_else(wire):
    """PP-05: endpoints refuse an object without properties and an array without items."""
    listed = {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "object"}}}
    tools = direct(bare={"type": "object"}, listed=listed, whole=EXEC.parameters)
    request = ModelRequest(model="m", messages=ASK.messages, tools=tools)
    _, server = await complete(wire, ["ok"], request)
    body = server.model.bodies[0]
    assert sent_schema(body, 0) == {"type": "object", "properties": {}}
    assert sent_schema(body, 1) == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {}}, "b": {"type": "object"}},
    }
    assert sent_schema(body, 2) == EXEC.parameters


@every_wire
async def test_a_missing_key_for_the_vendor_itself_names_the_setting(wire):
    with pytest.raises(ProviderError, match=r"models\.providers\.mine\.apiKey"):
        wire.make(WireSettings(provider_id="mine"))


@every_wire
async def test_a_missing_sdk_names_the_extra_to_install(wire, monkeypatch):
    name = "anthropic" if wire.name == "anthropic" else "openai"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ProviderError, match=rf'pip install "toolcell\[{name}\]"'):
        wire.make(WireSettings(base_url="http://localhost/v1"))


@every_wire
async def test_an_endpoint_that_is_not_there_is_named(wire):
    provider = wire.make(WireSettings(base_url="http://127.0.0.1:9/v1", max_retries=0))
    with pytest.raises(ProviderError, match=r"http://127\.0\.0\.1:9/v1.*baseUrl") as caught:
        await provider.complete(ASK)
    await provider.aclose()
    assert caught.value.retryable


def direct(**schemas):
    """What the model is shown of tools with these schemas, in direct mode."""
    tools = [
        core_tool(Tool(name=name, description="", parameters=schema, execute=None))
        for name, schema in schemas.items()
    ]
    return plan_direct(tools).definitions


def sent_schema(body, index=0):
    tool = body["tools"][index]
    tool = tool.get("function", tool)
    return tool.get("parameters") or tool.get("input_schema")
