"""`DELETE /api/sessions/{id}`: the record, the child agents, and what they came to (rule 11.1)."""

import anyio
import pytest

from tests.gateway.kit import config, gateway, tool, until
from toolcell.protocol.hooks import Ask, Hooks, Proceed
from toolcell.providers.scripted import tool_call
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio
SWARM = {"swarm": {"enabled": True}}


async def over(g, **body):
    run = (await g.post("/api/runs", {"prompt": "go", "session": "s1", **body})).json()
    done = (await g.get(f"/api/runs/{run['id']}", params={"wait": 20})).json()
    assert done["status"] == "completed", done
    return done


async def delete(g, session="s1"):
    return await g.http.delete(f"/api/sessions/{session}")


def steps_for(holding):
    """A parent that starts one child and goes on; the child calls a tool that may hold it up."""

    def answer(request):
        last, prompts = request.messages[-1], [m.text for m in request.messages if m.role == "user"]
        if prompts[-1] == "go" and last.role == "user":
            return tool_call("sessions_spawn", {"task": "child"})
        if prompts[-1] == "child" and last.role == "user" and holding:
            return tool_call("hold", {})
        return "done"

    return [answer] * 20


async def test_a_deleted_session_takes_its_children_and_their_results_along(tmp_path):
    async with gateway(config(tmp_path, tools=SWARM), steps_for(holding=False)) as g:
        await over(g)
        swarm = g.service.runtime.swarming.swarm

        async def standing():
            return swarm.statistics()

        await until(standing, lambda found: found["over"] == 1)
        listed = [e["sessionId"] for e in (await g.get("/api/sessions")).json()["sessions"]]
        got = await delete(g)
        left = (await g.get("/api/sessions")).json()["sessions"]
        again = await delete(g)
        unreadable = await g.get("/api/sessions/s1")
        assert swarm.statistics() == {"groups": 0, "running": 0, "queued": 0, "over": 0}
        await over(g)
        assert len((await g.get("/api/sessions/s1/messages")).json()["messages"]) == 4
    assert got.status_code == 200
    assert got.json()["id"] == "s1"
    assert sorted(got.json()["deleted"]) == sorted(listed)
    assert len(listed) == 2
    assert left == []
    assert (again.status_code, unreadable.status_code) == (404, 404)


async def test_children_that_still_work_are_ended(tmp_path):
    """REPORTS SW-07: nobody is left to collect them."""
    held, ended = anyio.Event(), anyio.Event()

    async def hold(_arguments, _context):
        held.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ToolResult()

    tools = [tool("hold", hold)]
    async with gateway(config(tmp_path, tools=SWARM), steps_for(holding=True), tools=tools) as g:
        await over(g)
        with anyio.fail_after(10):
            await held.wait()
        (child,) = [
            each["sessionId"]
            for each in (await g.get("/api/sessions")).json()["sessions"]
            if each["sessionId"] != "s1"
        ]
        own = await delete(g, child)
        got = await delete(g)
        left = (await g.get("/api/sessions")).json()["sessions"]
    assert (own.status_code, own.json()["error"]["code"]) == (409, "session_busy")
    assert got.json()["deleted"] == ["s1", child]
    assert ended.is_set()
    assert left == []


async def test_a_session_with_a_run_is_not_deleted(tmp_path):
    go, held = anyio.Event(), anyio.Event()

    async def hold(_arguments, _context):
        held.set()
        await go.wait()
        return ToolResult(details={})

    steps = [tool_call("hold", {}), "done"]
    async with gateway(config(tmp_path), steps, tools=[tool("hold", hold)]) as g:
        run = (await g.post("/api/runs", {"prompt": "go", "session": "s1"})).json()
        with anyio.fail_after(10):
            await held.wait()
        busy = await delete(g)
        go.set()
        await g.get(f"/api/runs/{run['id']}", params={"wait": 10})
        kept = (await g.get("/api/sessions/s1/messages")).json()["messages"]
        wrong = await delete(g, "no such id!")
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "session_busy")
    assert [each["role"] for each in kept] == ["user", "assistant", "tool", "assistant"]
    assert wrong.status_code == 400


async def test_another_agent_may_have_the_name_of_a_deleted_session(tmp_path):
    """rule 2.5: nothing of it is left that belongs to the first one."""
    settings = config(tmp_path, agents={"entries": {"other": {}}})
    async with gateway(settings, ["a", "b"]) as g:
        await over(g)
        taken = await g.post("/api/runs", {"prompt": "go", "session": "s1", "agent": "other"})
        await delete(g)
        await over(g, agent="other")
    assert taken.status_code == 409


async def test_nothing_of_a_deleted_session_is_left_in_the_gateway(tmp_path):
    """REPORTS SW-07: a session of the same name starts with nothing: no yes, no answer, no line."""
    ran = []

    async def danger(_arguments, _context):
        ran.append(1)
        return ToolResult()

    async def ask(call):
        return Ask(reason="sure?") if call.tool_name == "danger" else Proceed()

    def step(request):
        return tool_call("danger", {}) if request.messages[-1].role == "user" else "done"

    given = {"tools": [tool("danger", danger)], "hooks": Hooks(before=(ask,))}
    async with gateway(config(tmp_path), [step] * 20, **given) as g:
        started = (await g.post("/api/runs", {"prompt": "go", "session": "s1"})).json()
        question = (await g.approvals())[0]
        yes = {"decision": "approve", "reach": "session"}
        await g.post(f"/api/approvals/{question['id']}", yes)
        await g.get(f"/api/runs/{started['id']}", params={"wait": 20})
        body = {"model": "main", "input": "go", "conversation": "s1"}
        response = (await g.post("/v1/responses", body)).json()
        assert len(ran) == 2, "the yes holds for the session"
        assert (await delete(g)).status_code == 200
        run = await g.get(f"/api/runs/{started['id']}")
        onward = {"model": "main", "input": "go", "previous_response_id": response["id"]}
        goes_on = await g.post("/v1/responses", onward)
        await g.post("/api/runs", {"prompt": "go", "session": "s1"})
        assert len(await g.approvals()) == 1, "the new session asks anew"
    assert run.status_code == 404
    assert goes_on.status_code == 400
    assert goes_on.json()["error"]["code"] == "previous_response_not_found"
    assert len(ran) == 2
