"""`POST /api/sessions/{id}/compact`: a summary by hand over HTTP; the record stays (SE-08)."""

import anyio
import pytest

from tests.gateway.kit import QUICKJS, config, gateway, tool, until
from toolcell.errors import ProviderError
from toolcell.providers.scripted import ScriptedProvider, tool_call

pytestmark = pytest.mark.anyio

SMALL = {"defaults": {"model": "scripted/m", "compaction": {"keepRecentTokens": 400}}}
PATH = "/api/sessions/s1/compact"


def settings(tmp_path, **more):
    return config(tmp_path, agents=more.pop("agents", SMALL), **more)


async def talked(g, turns=8, size=1000):
    for n in range(turns):
        await g.chat(f"question {n} " + "q" * size, extra_headers={"x-toolcell-session": "s1"})


class Held:
    """A model whose summary waits until it is let go."""

    def __init__(self):
        self.inner = ScriptedProvider(["fine"] * 8 + ["NOTES", "after"])
        self.asked, self.go = anyio.Event(), anyio.Event()
        self.cancelled = anyio.Event()

    async def complete(self, request, **options):
        if len(self.inner.requests) == 8:
            self.asked.set()
            try:
                await self.go.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
        return await self.inner.complete(request, **options)

    async def aclose(self):
        await self.inner.aclose()


async def test_a_session_is_compacted_and_shown_whole(tmp_path):
    steps = ["fine"] * 8 + ["NOTES: eight questions.", "and on"]
    async with gateway(settings(tmp_path), steps) as g:
        await talked(g)
        got = await g.post(PATH)
        assert got.status_code == 200, got.text
        said = got.json()
        assert said["id"] == "s1"
        done = said["compacted"]
        assert (done["trigger"], done["model"], done["messages"]) == ("manual", "m", 14)
        assert done["summary"] == "NOTES: eight questions."
        assert done["tokensBefore"] > done["tokensAfter"]
        # There is nothing older now; no model is asked.
        again = await g.post(PATH, {})
        assert (again.status_code, again.json()) == (200, {"id": "s1", "compacted": None})
        assert len(g.model.bodies) == 9
        # The next run begins with the summary; people still see all of it.
        await g.chat("more", extra_headers={"x-toolcell-session": "s1"})
        assert "NOTES: eight questions." in g.sent()["messages"][0]["content"]
        assert "question 0" not in str(g.sent())
        assert "question 7" in str(g.sent())
        kept = (await g.get("/api/sessions/s1/messages")).json()["messages"]
        assert len(kept) == 18
        metrics = (await g.get("/metrics")).text
    assert 'toolcell_compactions_total{trigger="manual"} 1' in metrics
    assert "tools" not in g.sent(8)


async def test_it_is_on_disk_when_it_is_told_and_secrets_are_masked(tmp_path):
    settings_ = settings(tmp_path)
    token = settings_.gateway.token
    async with gateway(settings_, ["fine"] * 8 + [f"NOTES {token}"]) as g:
        await talked(g)
        done = (await g.post(PATH)).json()["compacted"]
        assert done["summary"] == "NOTES [redacted]"
    async with gateway(settings_, ["on"]) as g:
        await g.chat("more", extra_headers={"x-toolcell-session": "s1"})
        assert "NOTES [redacted]" in g.sent()["messages"][0]["content"]


async def test_another_model_may_write_the_summary(tmp_path):
    async with gateway(settings(tmp_path), ["fine"] * 8) as g:
        other = ScriptedProvider(["OTHER"])
        g.service.runtime.providers.add("other", other)
        await talked(g)
        done = (await g.post(PATH, {"model": "other/big"})).json()["compacted"]
    assert (done["model"], done["summary"]) == ("big", "OTHER")
    assert len(other.bodies) == 1


@pytest.mark.parametrize(
    ("path", "send", "status", "code", "says"),
    [
        ("/api/sessions/nobody/compact", {}, 404, "not_found", "no such session"),
        ("/api/sessions/a%20b/compact", {}, 400, "invalid_value", "a session id has"),
        (PATH, {"json": {"model": "nowhere/m"}}, 400, "invalid_value", "nowhere"),
        (PATH, {"json": {"model": "m"}}, 400, "invalid_value", "m"),
        (PATH, {"json": {"model": ""}}, 400, "invalid_value", "at least 1"),
        (PATH, {"json": {"modell": "x/y"}}, 400, "invalid_value", "Extra inputs"),
        (PATH, {"json": []}, 400, "invalid_value", "the body"),
        (PATH, {"content": b"{", "headers": {"content-type": "application/json"}}, 400, None, ""),
        (PATH, {"content": b"{}"}, 415, "unsupported_media_type", "content-type"),
        (PATH, {"headers": {"authorization": "Bearer nonsense"}}, 401, None, ""),
        (PATH, {"json": {"model": "x" * 3000}}, 413, "request_too_large", "over 2000 bytes"),
    ],
)
async def test_what_is_wrong_is_told_and_changes_nothing(tmp_path, path, send, status, code, says):
    few = {"limits": {"maxRequestBytes": 2000}}
    async with gateway(settings(tmp_path, gateway=few), ["fine"] * 8) as g:
        await talked(g)
        got = await g.http.post(path, **send)
        error = got.json()["error"]
        assert got.status_code == status, got.text
        assert code in (None, error["code"])
        assert says in error["message"]
        assert len(g.model.bodies) == 8
        assert [r for r in await g.events("s1") if r.type == "compacted"] == []


async def test_only_post_is_taken(tmp_path):
    async with gateway(settings(tmp_path), []) as g:
        got = await g.get(PATH)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")


async def test_an_agent_without_a_model_is_the_operators_to_mend(tmp_path):
    where = settings(tmp_path)
    async with gateway(where, ["fine"] * 8) as g:
        await talked(g)
    without = config(tmp_path, agents={"defaults": {"compaction": {"keepRecentTokens": 400}}})
    async with gateway(without, []) as g:
        got = await g.post(PATH)
    assert got.status_code == 500
    assert "no model is named; set agents.defaults.model" in got.json()["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProviderError("the endpoint is down"), 502),
        (ProviderError("slow down", status=429), 429),
    ],
)
async def test_a_model_that_writes_none_changes_nothing(tmp_path, error, status):
    async with gateway(settings(tmp_path), ["fine"] * 8 + [error]) as g:
        await talked(g)
        got = await g.post(PATH)
        assert (got.status_code, got.json()["error"]["message"]) == (status, error.message)
        assert [r for r in await g.events("s1") if r.type == "compacted"] == []


async def test_not_while_a_run_goes_on_in_it(tmp_path):
    going, go = anyio.Event(), anyio.Event()

    async def slow(_arguments, _context):
        going.set()
        await go.wait()

    steps = ["fine"] * 8 + [tool_call("look", {}), "done", "NOTES"]
    async with gateway(settings(tmp_path), steps, tools=[tool("look", slow)]) as g:
        await talked(g)
        run = (await g.post("/api/runs", {"prompt": "go", "session": "s1"})).json()
        await going.wait()
        got = await g.post(PATH)
        assert (got.status_code, got.json()["error"]["code"]) == (409, "session_busy")
        assert run["id"] in got.json()["error"]["message"]
        await g.post(f"/api/runs/{run['id']}/cancel")
        assert (await g.post(PATH)).status_code == 200


async def test_no_run_begins_in_it_meanwhile_and_it_takes_a_runs_place(tmp_path):
    model = Held()
    one = {"limits": {"maxRuns": 1}}
    async with gateway(settings(tmp_path, gateway=one), []) as g:
        g.service.runtime.providers.add("scripted", model)
        await talked(g)
        answers = []

        async def ask():
            answers.append(await g.post(PATH))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await model.asked.wait()
            full = await g.post("/api/runs", {"prompt": "go", "session": "s2"})
            assert (full.status_code, full.json()["error"]["code"]) == (429, "too_many_runs")
            gone = await g.http.delete("/api/sessions/s1")
            assert (gone.status_code, gone.json()["error"]["code"]) == (409, "session_busy")
            assert "is being compacted" in gone.json()["error"]["message"]
            model.go.set()
        assert answers[0].json()["compacted"]["summary"] == "NOTES"
        await g.chat("more", extra_headers={"x-toolcell-session": "s1"})


async def test_a_client_that_goes_away_ends_it(tmp_path):
    model = Held()
    async with gateway(settings(tmp_path), []) as g:
        g.service.runtime.providers.add("scripted", model)
        await talked(g)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(g.post, PATH)
            await model.asked.wait()
            tasks.cancel_scope.cancel()

        async def free():
            return await g.get("/api/sessions/s1")

        with anyio.fail_after(10):
            await model.cancelled.wait()
        await until(free, lambda got: got.status_code == 200)
        assert [r for r in await g.events("s1") if r.type == "compacted"] == []
        model.go.set()
        assert (await g.post(PATH)).status_code == 200


async def test_a_cell_that_nobody_can_go_on_with_is_summarised_like_the_rest(tmp_path):
    """rule 3.7, BEHAVIOURS 358: a cell is resumed within its own run, and that run is over."""
    parks = tool_call("exec", {"code": "await yield_control('hold'); return 1"})
    steps = [parks, "it waits"] + ["fine"] * 8 + ["NOTES", "on"]
    where = settings(tmp_path, tools={"codeMode": QUICKJS})
    async with gateway(where, steps, tools=[tool("look")]) as g:
        await g.chat("park it", extra_headers={"x-toolcell-session": "s1"})
        assert '"status":"waiting"' in g.sent()["messages"][-1]["content"]
        await talked(g)
        assert "cm_" in str(g.sent()["messages"])
        assert (await g.post(PATH)).json()["compacted"]["messages"] == 18
        await g.chat("more", extra_headers={"x-toolcell-session": "s1"})
        assert "cm_" not in str(g.sent()["messages"])
