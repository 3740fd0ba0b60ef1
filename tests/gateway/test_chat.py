"""Chat Completions through the official client, over a real socket."""

import json

import anyio
import httpx
import openai
import pytest

from tests.gateway.kit import ANY, QUICKJS, SELECT_FILE, TOKEN, config, gateway, tool, until
from toolcell.errors import ProviderError
from toolcell.gateway import live
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.messages import Message, ModelReply, Usage
from toolcell.providers.scripted import tool_call
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio
CODE = {"codeMode": QUICKJS}


def answers(calls, value):
    return [{"role": "tool", "tool_call_id": call.id, "content": value(call)} for call in calls]


async def streamed(stream):
    text, calls, finish, usage = "", {}, None, None
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                calls[call.index] = call
    return text, [calls[index] for index in sorted(calls)], finish, usage


async def test_the_official_client_gets_an_answer(tmp_path):
    reply = ModelReply(
        message=Message(role="assistant", text="hello"),
        finish="stop",
        usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=5),
    )
    async with gateway(config(tmp_path), [reply]) as g:
        got = await g.chat("hi")
    assert got.choices[0].message.content == "hello"
    assert got.choices[0].finish_reason == "stop"
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (7, 3)
    assert got.usage.prompt_tokens_details.cached_tokens == 5
    assert got.object == "chat.completion"


async def test_the_official_client_streams(tmp_path):
    async with gateway(config(tmp_path), ["hello there"]) as g:
        stream = await g.chat("hi", stream=True, stream_options={"include_usage": True})
        text, calls, finish, usage = await streamed(stream)
    assert (text, calls, finish) == ("hello there", [], "stop")
    assert usage.total_tokens == 0


async def test_text_of_several_turns_is_the_same_streamed_or_not(tmp_path):
    first = ModelReply(
        message=Message(
            role="assistant", text="Looking.", tool_calls=(tool_call("echo", {"v": 1}),)
        ),
        finish="tool_calls",
    )
    seen = []
    for stream in (False, True):
        async with gateway(config(tmp_path), [first, "Done."], tools=[tool("echo")]) as g:
            got = await g.chat("hi", stream=stream)
            seen.append((await streamed(got))[0] if stream else got.choices[0].message.content)
    assert seen == ["Looking.\n\nDone."] * 2


async def test_earlier_messages_system_text_and_options_reach_the_model(tmp_path):
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    agents = {"defaults": {"model": "scripted/m", "systemPrompt": "You are X."}}
    async with gateway(config(tmp_path, agents=agents), ["ok"]) as g:
        await g.chat(messages=messages, temperature=0.5, seed=3)
    sent = g.sent()
    assert [(m["role"], m["content"]) for m in sent["messages"]] == [
        ("system", "You are X.\n\nBe brief."),
        ("user", "one"),
        ("assistant", "two"),
        ("user", "three"),
    ]
    assert (sent["temperature"], sent["seed"]) == (0.5, 3)


async def test_model_names_the_agent(tmp_path):
    agents = {
        "defaults": {"model": "scripted/m"},
        "entries": {"ops": {"systemPrompt": "You are ops."}},
    }
    async with gateway(config(tmp_path, agents=agents), ["a", "b", "c"]) as g:
        for model in ("agent:ops", "ops", "agent:main"):
            await g.chat(model=model)
        with pytest.raises(openai.NotFoundError) as refused:
            await g.chat(model="gpt-4o")
        listed = [model.id async for model in g.openai.models.list()]
        one = await g.openai.models.retrieve("agent:ops")
    heads = [body["messages"][0]["content"] for body in g.model.bodies]
    assert heads == ["You are ops.", "You are ops.", "go"]
    assert refused.value.code == "model_not_found"
    assert "agent:ops" in str(refused.value)
    assert listed == ["agent:main", "agent:ops"]
    assert one.id == "agent:ops"


async def test_a_named_session_goes_on(tmp_path):
    async with gateway(config(tmp_path), ["one", "two"]) as g:
        headers = {"x-toolcell-session": "s1"}
        raw = await g.openai.chat.completions.with_raw_response.create(
            model="main", messages=[{"role": "user", "content": "a"}], extra_headers=headers
        )
        await g.chat("b", extra_headers=headers)
        messages = (await g.get("/api/sessions/s1/messages")).json()["messages"]
    assert raw.headers["x-toolcell-session"] == "s1"
    assert [m["content"] for m in g.sent()["messages"]] == ["a", "one", "b"]
    assert [m["text"] for m in messages] == ["a", "one", "b", "two"]


async def test_a_session_of_another_agent_is_closed(tmp_path):
    """rule 2.5: nothing leaks from another agent, after a restart too."""
    agents = {"defaults": {"model": "scripted/m"}, "entries": {"ops": {}}}
    headers = {"x-toolcell-session": "s1"}
    settings = config(tmp_path, agents=agents)
    async with gateway(settings, ["one"]) as g:
        await g.chat("secret plan", extra_headers=headers)
    async with gateway(settings, ["two"]) as g:
        with pytest.raises(openai.ConflictError) as refused:
            await g.chat("and?", model="ops", extra_headers=headers)
    assert refused.value.code == "session_of_other_agent"
    assert g.model.bodies == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_tool_called_in_a_cell_comes_back_as_a_tool_call(tmp_path, stream):
    """BEHAVIOURS 41, rule 4.1: `client:*` joins the catalog, and the result continues the cell."""
    cell = "const f = await select_file({title: 'Which?'}); return {got: f.path, n: 1}"
    steps = [tool_call("exec", {"code": cell}), lambda request: request.messages[-1].text]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("echo")]) as g:
        asked = [{"role": "user", "content": "go"}]
        first = await g.chat(messages=asked, tools=[SELECT_FILE], stream=stream)
        if stream:
            text, calls, finish, _ = await streamed(first)
        else:
            choice = first.choices[0]
            text, calls, finish = choice.message.content, choice.message.tool_calls, "tool_calls"
            assert choice.finish_reason == finish
        assert (text or "", finish) == ("", "tool_calls")
        (call,) = calls
        assert call.function.name == "select_file"
        assert json.loads(call.function.arguments) == {"title": "Which?"}
        said = {"role": "assistant", "tool_calls": [call.model_dump(exclude={"index"})]}
        back = answers(calls, lambda _: '{"path": "/tmp/a.txt"}')
        second = await g.chat(messages=[*asked, said, *back], tools=[SELECT_FILE], stream=stream)
        text = (await streamed(second))[0] if stream else second.choices[0].message.content
    assert g.shown() == ["exec", "wait"]
    assert '"status":"completed"' in text
    assert '"got":"/tmp/a.txt"' in text
    assert len(g.model.bodies) == 2


async def test_calls_made_together_come_together_and_all_results_are_wanted(tmp_path, monkeypatch):
    """BEHAVIOURS 345: in the order the program made them, however long their checks take."""

    async def checked(event):
        await anyio.sleep(0.02 if event.arguments.get("title") == "2" else 0)

    monkeypatch.setattr(live, "GATHER_SECONDS", 0.5)

    cell = """
        const found = await Promise.all([1, 2, 3].map((n) => select_file({title: String(n)})));
        return found.join()"""
    steps = [tool_call("exec", {"code": cell}), lambda request: request.messages[-1].text]
    hooks = Hooks(before=(checked,))
    async with gateway(config(tmp_path, tools=CODE), steps, hooks=hooks) as g:
        first = await g.chat(tools=[SELECT_FILE])
        calls = first.choices[0].message.tool_calls
        titles = [json.loads(call.function.arguments)["title"] for call in calls]
        back = answers(calls, lambda c: "f" + json.loads(c.function.arguments)["title"])
        with pytest.raises(openai.BadRequestError) as refused:
            await g.chat(messages=back[:2], tools=[SELECT_FILE])
        second = await g.chat(messages=back, tools=[SELECT_FILE])
    assert titles == ["1", "2", "3"]
    assert refused.value.code == "missing_tool_results"
    assert calls[2].id in str(refused.value)
    assert "f1,f2,f3" in second.choices[0].message.content


async def test_a_client_tool_is_an_ordinary_tool_call_without_code_mode(tmp_path):
    steps = [tool_call("select_file", {"title": "?"}, id="m1"), "thanks"]
    async with gateway(config(tmp_path), steps, tools=[tool("echo")]) as g:
        first = await g.chat(tools=[SELECT_FILE])
        (call,) = first.choices[0].message.tool_calls
        second = await g.chat(messages=answers([call], lambda _: "a.txt"), tools=[SELECT_FILE])
    assert g.shown(0) == ["echo", "select_file"]
    assert second.choices[0].message.content == "thanks"
    last = g.sent()["messages"][-1]
    assert (last["tool_call_id"], "a.txt" in last["content"]) == ("m1", True)
    assert "EXTERNAL_UNTRUSTED_CONTENT" in last["content"]
    assert call.id != "m1"


async def test_a_model_is_not_asked_while_the_client_owes_a_result(tmp_path):
    """rule 3.5: the reply deadline passes, the client answers later, `wait` finishes the cell."""
    tools = {"codeMode": {**QUICKJS, "timeoutMs": 200}}

    def wait(request):
        return tool_call("wait", {"runId": json.loads(request.messages[-1].text)["runId"]})

    cell = "return await select_file({})"
    steps = [tool_call("exec", {"code": cell}), wait, lambda r: r.messages[-1].text]
    async with gateway(config(tmp_path, tools=tools), steps) as g:
        (call,) = (await g.chat(tools=[SELECT_FILE])).choices[0].message.tool_calls
        run = (await g.get("/api/runs")).json()["runs"][0]

        async def types():
            return [record.type for record in await g.events(run["sessionId"])]

        await until(types, lambda seen: "cell_parked" in seen)
        await anyio.sleep(0.3)
        assert len(g.model.bodies) == 1
        second = await g.chat(messages=answers([call], lambda _: "late"))
    assert '"late"' in second.choices[0].message.content
    assert len(g.model.bodies) == 3


async def test_names_of_client_tools_that_cannot_be_kept_apart_are_refused(tmp_path):
    """CN-07: HTTP 400 before the run, naming the tool; in code mode the client's wins the name."""
    mine = {"type": "function", "function": {"name": "web_search", "parameters": ANY}}
    async with gateway(config(tmp_path), ["no"], tools=[tool("web_search")]) as g:
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as refused:
                await g.chat(tools=[mine], stream=stream)
            assert refused.value.type == "invalid_request_error"
            assert "'web_search'" in str(refused.value)
        with pytest.raises(openai.BadRequestError) as refused:
            await g.chat(tools=[SELECT_FILE, SELECT_FILE])
        assert "'select_file'" in str(refused.value)
        assert g.model.bodies == []
    cell = "return await web_search({q: 1})"
    ran = []

    async def core(arguments, _context):
        ran.append(arguments)
        return ToolResult(details={})

    steps = [tool_call("exec", {"code": cell}), "ok"]
    settings = config(tmp_path, tools=CODE)
    async with gateway(settings, steps, tools=[tool("web_search", core)]) as g:
        first = await g.chat(tools=[mine])
        with pytest.raises(openai.BadRequestError):
            await g.chat(tools=[mine, mine])
        (call,) = first.choices[0].message.tool_calls
    assert call.function.name == "web_search"
    assert ran == []


async def test_results_for_unknown_calls_are_refused(tmp_path):
    async with gateway(config(tmp_path), ["no"]) as g:
        with pytest.raises(openai.BadRequestError) as refused:
            await g.chat(
                messages=[{"role": "tool", "tool_call_id": "call_guessed", "content": "x"}]
            )
    assert refused.value.code == "unknown_tool_call"


async def test_one_run_at_a_time_in_a_session(tmp_path):
    started, go = anyio.Event(), anyio.Event()

    async def hold(_arguments, _context):
        started.set()
        await go.wait()
        return ToolResult(details={})

    headers = {"x-toolcell-session": "s1"}
    steps = [tool_call("hold", {}), "done", "next"]
    async with gateway(config(tmp_path), steps, tools=[tool("hold", hold)]) as g:
        async with anyio.create_task_group() as tasks:

            async def first():
                got.append(await g.chat("a", extra_headers=headers))

            got = []
            tasks.start_soon(first)
            await started.wait()
            with pytest.raises(openai.ConflictError) as refused:
                await g.chat("b", extra_headers=headers)
            go.set()
        after = await g.chat("b", extra_headers=headers)
    assert refused.value.code == "session_busy"
    assert got[0].choices[0].message.content == "done"
    assert after.choices[0].message.content == "next"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_ends_its_run(tmp_path, stream):
    started, cancelled = anyio.Event(), anyio.Event()

    async def hold(_arguments, _context):
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with gateway(config(tmp_path), [tool_call("hold", {})], tools=[tool("hold", hold)]) as g:
        async with anyio.create_task_group() as tasks:

            async def ask():
                got = await g.chat(stream=stream)
                if stream:
                    await streamed(got)

            tasks.start_soon(ask)
            await started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await cancelled.wait()
        runs = await until(
            lambda: g.get("/api/runs"), lambda r: r.json()["runs"][0]["status"] != "running"
        )
        (run,) = runs.json()["runs"]
        records = await g.events(run["sessionId"])
    assert run["status"] == "cancelled"
    assert records[-1].data()["status"] == "aborted"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_fails_is_an_error_that_is_not_tried_again(tmp_path, stream):
    """The tools of a failed run may have had effects: official clients obey x-should-retry."""
    failure = ProviderError("the endpoint is down", retryable=True)
    async with gateway(config(tmp_path), [failure, "never"]) as g:
        eager = g.openai.with_options(max_retries=3)
        with pytest.raises(openai.APIStatusError) as refused:
            await eager.chat.completions.create(
                model="main", messages=[{"role": "user", "content": "x"}], stream=stream
            )
    assert refused.value.status_code == 502
    assert "the endpoint is down" in str(refused.value)
    assert len(g.model.bodies) == 1


async def test_a_failure_in_mid_stream_is_told_in_the_stream(tmp_path):
    first = ModelReply(
        message=Message(role="assistant", text="So", tool_calls=(tool_call("echo", {}),)),
        finish="tool_calls",
    )
    steps = [first, ProviderError("gone")]
    async with gateway(config(tmp_path), steps, tools=[tool("echo")]) as g:
        with pytest.raises(openai.APIError, match="gone"):
            await streamed(await g.chat(stream=True))


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "messages"),
        ({"messages": []}, 400, "messages"),
        ({"messages": "x"}, 400, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, None),
        ({"n": 2}, 400, "n"),
        ({"tool_choice": "required"}, 400, "tool_choice"),
        ({"functions": [{}]}, 400, "functions"),
        ({"tools": [{"type": "web_search"}]}, 400, "tools[0].type"),
        ({"metadata": {"session": "../x"}}, 400, "metadata"),
        ([], 400, None),
    ],
)
async def test_bad_requests_name_the_field(tmp_path, body, status, param):
    async with gateway(config(tmp_path), ["no"]) as g:
        if isinstance(body, dict) and body and "messages" not in body:
            body = {"messages": [{"role": "user", "content": "x"}], **body}
        got = await g.post("/v1/chat/completions", body)
    error = got.json()["error"]
    assert (got.status_code, error["type"]) == (status, "invalid_request_error")
    if param is not None:
        assert error["param"] == param
    assert g.model.bodies == []


async def test_tool_choice_none_leaves_the_model_without_tools(tmp_path):
    """rule 2.3, BEHAVIOURS 25: no tools, no code mode, nothing enforced."""
    async with gateway(config(tmp_path, tools=CODE), ["ok"], tools=[tool("echo")]) as g:
        await g.chat(tool_choice="none")
    assert g.shown() == []


async def test_whatever_is_not_json_is_refused(tmp_path):
    async with gateway(config(tmp_path), ["no"]) as g:
        kinds = {
            (b"{", "application/json"): 400,
            (b"[" * 100_000, "application/json"): 400,
            (b"{}", "text/plain"): 415,
        }
        for (content, kind), status in kinds.items():
            got = await g.http.post(
                "/v1/chat/completions", content=content, headers={"content-type": kind}
            )
            assert got.status_code == status, got.text
            assert got.json()["error"]["message"]


async def test_the_token_is_wanted_everywhere_but_for_liveness(tmp_path):
    async with gateway(config(tmp_path), ["no"]) as g, httpx.AsyncClient(base_url=g.url) as http:
        for path in ("/v1/models", "/api/runs", "/api/openapi.json", "/metrics", "/nowhere"):
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
                got = await http.get(path, headers=headers)
                assert got.status_code == 401, path
                assert got.json()["error"]["code"] == "invalid_api_key"
        assert (await http.get("/health")).json() == {"status": "ok"}
        assert (await http.get("/v1/models", headers={"x-api-key": TOKEN})).status_code == 200


async def test_large_and_frequent_requests_are_refused(tmp_path):
    limits = {"maxRequestBytes": 2000, "requestsPerMinute": 5}
    settings = config(tmp_path, gateway={"port": 0, "token": TOKEN, "limits": limits})
    async with gateway(settings, ["no"]) as g:
        long = {"messages": [{"role": "user", "content": "x" * 3000}]}
        assert (await g.post("/v1/chat/completions", long)).status_code == 413

        async def pieces():
            for _ in range(30):
                yield b"x" * 100

        kind = {"content-type": "application/json"}
        got = await g.http.post("/v1/chat/completions", content=pieces(), headers=kind)
        assert got.status_code == 413
        statuses = [(await g.get("/v1/models")).status_code for _ in range(6)]
        last = await g.get("/v1/models")
    assert statuses[0] == 200
    assert last.status_code == 429
    assert last.json()["error"]["type"] == "rate_limit_error"
    assert int(last.headers["retry-after"]) >= 1


async def test_more_runs_than_allowed_are_refused(tmp_path):
    hold = tool_call("select_file", {})
    limits = {"maxRuns": 1}
    settings = config(tmp_path, gateway={"port": 0, "token": TOKEN, "limits": limits})
    async with gateway(settings, [hold, "x"]) as g:
        await g.chat(tools=[SELECT_FILE])
        with pytest.raises(openai.RateLimitError) as refused:
            await g.chat()
    assert refused.value.code == "too_many_runs"


async def test_unknown_paths_and_methods_are_told_in_the_same_shape(tmp_path):
    async with gateway(config(tmp_path), ["no"]) as g:
        assert (await g.get("/nope")).json()["error"]["code"] == "not_found"
        # A client of OpenAI's API whose base URL lacks the end.
        for path in ("/chat/completions", "/responses", "/models"):
            assert "end the client's base URL with /v1" in (await g.get(path)).text
        assert (await g.http.delete("/v1/models")).json()["error"]["code"] == "method_not_allowed"


async def test_the_same_client_tools_share_one_catalog(tmp_path):
    async with gateway(config(tmp_path, tools=CODE), ["a", "b"]) as g:
        await g.chat(tools=[SELECT_FILE])
        await g.chat(tools=[SELECT_FILE])
        sources = g.service.clients._sources
    assert len(sources) == 1


async def test_a_client_that_brings_no_result_in_time_fails_the_call_alone(tmp_path):
    cell = "try { await select_file({}) } catch (e) { return e.message }"
    steps = [tool_call("exec", {"code": cell}), lambda r: r.messages[-1].text]
    limits = {"clientToolTtlSeconds": 1}
    settings = config(tmp_path, tools=CODE, gateway={"port": 0, "token": TOKEN, "limits": limits})
    async with gateway(settings, steps) as g:
        (call,) = (await g.chat(tools=[SELECT_FILE])).choices[0].message.tool_calls
        run = (await g.get("/api/runs")).json()["runs"][0]
        over = await g.get(f"/api/runs/{run['id']}", params={"wait": 10})
        late = await g.chat(messages=answers([call], lambda _: "x"))
        with pytest.raises(openai.ConflictError) as refused:
            await g.chat(messages=answers([call], lambda _: "x"))
    assert over.json()["status"] == "completed"
    assert "it took too long" in late.choices[0].message.content
    assert refused.value.code == "run_over"
