"""`/api`: runs, sessions, events, tools, health, metrics, the OpenAPI document."""

import json

import anyio
import httpx
import pytest

from tests.gateway.kit import QUICKJS, SELECT_FILE, TOKEN, config, gateway, tool, until
from toolcell.errors import ProviderError
from toolcell.gateway.operations import OPERATIONS
from toolcell.providers.scripted import tool_call
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio
CODE = {"codeMode": QUICKJS}


async def over(g, run_id):
    return (await g.get(f"/api/runs/{run_id}", params={"wait": 10})).json()


async def test_a_run_in_the_background_is_started_waited_for_and_shown(tmp_path):
    async with gateway(config(tmp_path), ["hello", "again"]) as g:
        started = await g.post("/api/runs", {"prompt": "hi", "session": "s1", "sender": "ann"})
        run = await over(g, started.json()["id"])
        await g.post("/api/runs", {"prompt": "and?", "session": "s1"})
        unknown = await g.get("/api/runs/run_nope")
        session = (await g.get("/api/sessions/s1")).json()
        listed = (await g.get("/api/sessions")).json()["sessions"]
    assert started.status_code == 202
    assert started.headers["location"] == f"/api/runs/{run['id']}"
    assert (run["status"], run["text"], run["turns"]) == ("completed", "hello", 1)
    assert run["sessionId"] == "s1"
    assert unknown.status_code == 404
    assert session["session"]["agentId"] == "main"
    assert [each["sessionId"] for each in listed] == ["s1"]


async def test_a_run_is_cancelled_once(tmp_path):
    """RS-01: its cells, calls and slots go with it."""
    started, cancelled = anyio.Event(), anyio.Event()

    async def hold(_arguments, _context):
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    steps = [tool_call("exec", {"code": "await hold({})"})]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("hold", hold)]) as g:
        run = (await g.post("/api/runs", {"prompt": "go"})).json()
        with anyio.fail_after(10):
            await started.wait()
        first = await g.post(f"/api/runs/{run['id']}/cancel")
        second = await g.post(f"/api/runs/{run['id']}/cancel")
        state = (await g.get("/api/health")).json()
    assert cancelled.is_set()
    assert first.json()["status"] == "cancelled"
    assert (second.status_code, second.json()["error"]["code"]) == (409, "run_over")
    assert state["statistics"]["continuations"] == {"parked": 0, "claimed": 0, "slots": 0}


async def test_aborting_parked_runs_gives_their_slots_back(tmp_path):
    """RS-01, rule 3.8: 64 runs with parked cells are cancelled; the 65th can be parked."""
    park = tool_call("exec", {"code": "await yield_control('hold'); return 'done'"})

    async def model_waits(_arguments, _context):
        await anyio.sleep_forever()

    def next_step(request):
        return park if request.messages[-1].role == "user" else tool_call("hold", {})

    def resume(request):
        waiting = [m.text for m in request.messages if '"waiting"' in m.text]
        return tool_call("wait", {"runId": json.loads(waiting[-1])["runId"]})

    hold = tool("hold", model_waits, catalog_mode="direct-only")
    async with gateway(config(tmp_path, tools=CODE), [next_step] * 128, tools=[hold]) as g:
        ids = [(await g.post("/api/runs", {"prompt": "go"})).json()["id"] for _ in range(64)]

        async def parked():
            return (await g.get("/api/health")).json()["statistics"]["continuations"]["parked"]

        await until(parked, lambda count: count == 64, seconds=30)
        for run_id in ids:
            await g.post(f"/api/runs/{run_id}/cancel")
        assert await parked() == 0
        g.model._steps = iter([park, resume, lambda request: request.messages[-1].text])
        answer = await g.chat()
    assert '"value":"done"' in answer.choices[0].message.content


async def test_events_are_streamed_and_a_follower_can_come_back(tmp_path):
    """rule 8.3: nested calls name their parent; nothing is missed or told twice."""
    steps = [tool_call("exec", {"code": "await echo({v: 1}); return 1"}, id="c1"), "done"]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("echo")]) as g:
        run = (await g.post("/api/runs", {"prompt": "go", "session": "s1"})).json()
        whole = await followed(g, {"run": run["id"]})
        middle = whole[4]["seq"]
        resumed = await followed(g, {"run": run["id"]}, {"last-event-id": str(middle)})
        bad = await g.get("/api/events", params={"session": "s1"}, headers={"last-event-id": "x"})
        neither = await g.get("/api/events")
    assert [each["seq"] for each in whole] == sorted({each["seq"] for each in whole})
    types = [each["type"] for each in whole]
    assert (types[0], types[-1]) == ("run_started", "run_ended")
    assert resumed == whole[5:]
    nested = [e for e in whole if e["type"] == "call_started" and e["parentToolCallId"] == "c1"]
    assert [each["data"]["tool_id"] for each in nested] == ["openclaw:core:echo"]
    assert (bad.status_code, neither.status_code) == (400, 400)


async def followed(g, query, headers=None):
    async with g.http.stream("GET", "/api/events", params=query, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in stream.aiter_lines()]
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def test_events_of_a_session_are_live_and_end_with_the_gateway(tmp_path):
    seen = []
    async with gateway(config(tmp_path), ["one"]) as g, anyio.create_task_group() as tasks:

        async def follow():
            seen.extend(await followed(g, {"session": "s1"}))

        tasks.start_soon(follow)
        await g.post("/api/runs", {"prompt": "go", "session": "s1"})

        async def recorded():
            return [record.type for record in await g.events("s1")]

        await until(recorded, lambda types: "run_ended" in types)
        await anyio.sleep(0.1)
        g.service.begin_drain()
    assert [each["type"] for each in seen][-1] == "run_ended"


async def test_tools_are_those_of_the_agent_after_policy(tmp_path):
    """PO-01: a denied tool is nowhere."""
    settings = config(tmp_path, tools={**CODE, "deny": ["secret_*"]})
    tools = [tool("echo"), tool("secret_tool"), tool("screenshot", catalog_mode="direct-only")]
    async with gateway(settings, [], tools=tools) as g:
        got = await g.get("/api/tools")
        unknown = await g.get("/api/tools", params={"agent": "nobody"})
    document = got.json()
    assert document["mode"] == "code"
    assert document["visible"] == ["exec", "screenshot", "wait"]
    assert [each["id"] for each in document["tools"]] == ["openclaw:core:echo"]
    assert "secret" not in got.text
    assert unknown.status_code == 404


async def test_metrics_count_and_name_nothing_that_others_choose(tmp_path):
    steps = [tool_call("exec", {"code": "return await echo({})"}), "a", ProviderError("x")]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("echo")]) as g:
        await g.chat(extra_headers={"x-toolcell-session": "s-canary"})
        await g.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "b"}]})
        await g.get("/canary-path")
        text = (await g.get("/metrics")).text
        denied = await g.http.get("/metrics", headers={"authorization": "no"})
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['toolcell_runs_ended_total{status="completed"}'] == "1"
    assert lines['toolcell_runs_ended_total{status="failed"}'] == "1"
    assert lines['toolcell_calls_total{status="completed",made="nested"}'] == "1"
    assert lines['toolcell_cells_ended_total{code="completed"}'] == "1"
    ok = '{route="chat_completions",method="POST",status="200"}'
    assert lines[f"toolcell_http_requests_total{ok}"] == "1"
    assert 'toolcell_event_loop_lag_seconds_bucket{le="+Inf"}' in lines
    assert "canary" not in text
    assert denied.status_code == 401


async def test_the_document_describes_every_route_and_the_answers_fit_it(tmp_path):
    steps = ["a"]
    async with gateway(config(tmp_path), steps) as g:
        document = (await g.get("/api/openapi.json")).json()
        operations = [(path, method) for path, item in document["paths"].items() for method in item]
        assert len(operations) == len(OPERATIONS)
        for path, method in operations:
            if "{" in path or method == "post" or path == "/api/events":
                continue
            got = await g.get(path)
            told = document["paths"][path][method]["responses"][str(got.status_code)]
            assert got.headers["content-type"].partition(";")[0] in told["content"]
        known = document["components"]["schemas"]
    for name in ("ChatRequest", "ResponsesRequest", "RunBody", "ApprovalBody", "Error"):
        assert known[name]["type"] == "object"
    assert document["paths"]["/health"]["get"]["security"] == []


async def test_a_client_run_waits_in_the_list_of_runs(tmp_path):
    async with gateway(config(tmp_path), [tool_call("select_file", {}), "x"]) as g:
        (call,) = (await g.chat(tools=[SELECT_FILE])).choices[0].message.tool_calls
        (run,) = (await g.get("/api/runs")).json()["runs"]
        state = (await g.get("/api/health")).json()
        await g.post(f"/api/runs/{run['id']}/cancel")
    assert (run["status"], run["waitsForClient"]) == ("running", [call.id])
    assert state["runs"]["waiting_for_client"] == 1


async def test_an_unexpected_error_says_nothing_of_its_cause(tmp_path):
    async def broken(*_arguments, **_options):
        raise ValueError("/home/someone/private CANARY")

    told = []

    class Told:
        def emit(self, event):
            told.append(event)

    async with gateway(config(tmp_path), [], sinks=[Told()]) as g:
        g.service.sessions.list_sessions = broken
        got = await g.get("/api/sessions")
    assert got.status_code == 500
    assert "CANARY" not in got.text
    assert any("CANARY" in getattr(event, "message", "") for event in told)


async def test_a_token_is_made_and_kept_when_none_is_configured(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    settings = config(tmp_path, gateway={"port": 0, "token": None})
    async with gateway(settings, []) as g:
        kept = (tmp_path / "home" / "gateway-token").read_text().strip()
        assert g.service.token == kept
        async with httpx.AsyncClient(base_url=g.url) as http:
            for token, status in ((TOKEN, 401), (kept, 200)):
                headers = {"authorization": f"Bearer {token}"}
                assert (await http.get("/v1/models", headers=headers)).status_code == status
    assert ((tmp_path / "home" / "gateway-token").stat().st_mode & 0o777) == 0o600
    async with gateway(settings, []) as g:
        assert g.service.token == kept


async def test_progress_is_among_the_events(tmp_path):
    """rule 8.1: streaming updates of nested calls."""

    async def slow(_arguments, context):
        context.update({"done": 50})
        return ToolResult(details={})

    steps = [tool_call("exec", {"code": "return await slow({})"}), "done"]
    async with gateway(config(tmp_path, tools=CODE), steps, tools=[tool("slow", slow)]) as g:
        run = (await g.post("/api/runs", {"prompt": "go"})).json()
        seen = await followed(g, {"run": run["id"]})
    updates = [e for e in seen if e["type"] == "call_updated" and e["parentToolCallId"]]
    assert [each["data"]["update"] for each in updates] == [{"done": 50}]
