"""Approvals from the gate to a person and back, over the API."""

import json

import anyio
import pytest

from tests.gateway.kit import QUICKJS, TOKEN, config, gateway, tool, until
from toolcell.cli.main import run
from toolcell.providers.scripted import tool_call
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio

ASK = {"rules": [{"tool": "pay", "decision": "ask", "reason": "it costs money"}]}
CELL = "const a = await echo({v: 1}); const b = await pay({amt: 5}); return [a, b]"


class Till:
    """Tools that count."""

    def __init__(self):
        self.paid = []
        self.echoed = 0

    async def pay(self, arguments, _context):
        self.paid.append(arguments)
        return ToolResult(details={"paid": arguments["amt"]})

    async def echo(self, arguments, _context):
        self.echoed += 1
        return ToolResult(details=dict(arguments))

    @property
    def tools(self):
        return [tool("pay", self.pay), tool("echo", self.echo)]


def settings(tmp_path, *, timeout_ms=5000, rules=ASK, **limits):
    gateway_branch = {"port": 0, "token": TOKEN, "limits": limits}
    tools = {"codeMode": {**QUICKJS, "timeoutMs": timeout_ms}, "approvals": rules}
    return config(tmp_path, tools=tools, gateway=gateway_branch)


def last(request):
    return request.messages[-1].text


async def asked(g, answer, text="go", **more):
    """Ask the agent, and answer the approval it comes to."""
    got = []

    async def ask():
        got.append(await g.chat(text, **more))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        (question,) = await g.approvals()
        reply = await answer(question)
        assert reply is None or reply.status_code == 200, reply.text
    return got[0].choices[0].message.content, question


async def test_a_call_waits_for_a_yes_over_the_api(tmp_path):
    """PO-07: one request with tool and arguments; the cell completes; nothing runs twice."""
    till = Till()
    steps = [tool_call("exec", {"code": CELL}, id="c1"), last]
    async with gateway(settings(tmp_path), steps, tools=till.tools) as g:

        async def approve(question):
            assert till.paid == []
            return await g.post(f"/api/approvals/{question['id']}", {"decision": "approve"})

        text, question = await asked(g, approve)
        records = await g.events(question["sessionId"])
        left = (await g.get("/api/approvals")).json()["approvals"]
    assert '"value":[{"v":1},{"paid":5}]' in text
    assert (till.paid, till.echoed) == ([{"amt": 5}], 1)
    assert question["toolId"] == "openclaw:core:pay"
    assert question["arguments"] == {"amt": 5}
    assert (question["reason"], question["parentToolCallId"]) == ("it costs money", "c1")
    audit = [r for r in records if r.type.startswith("approval")]
    assert [r.type for r in audit] == ["approval_requested", "approval_answered"]
    assert audit[1].data()["approved"] is True
    assert left == []


async def test_a_no_is_a_failure_that_the_program_can_catch(tmp_path):
    """PO-07: the tool does not run, and the reason reaches the caller."""
    till = Till()
    cell = "try { await pay({amt: 1}) } catch (e) { return e.code + ': ' + e.message }"
    steps = [tool_call("exec", {"code": cell}), last]
    async with gateway(settings(tmp_path), steps, tools=till.tools) as g:

        async def deny(question):
            body = {"decision": "deny", "reason": "too much"}
            return await g.post(f"/api/approvals/{question['id']}", body)

        text, _ = await asked(g, deny)
    assert "blocked" in text
    assert "too much" in text
    assert till.paid == []


async def test_the_reply_deadline_passes_while_a_person_thinks(tmp_path):
    """rule 3.5, BEHAVIOURS 27: `exec` says waiting, the budget stands still, `wait` finishes."""
    till = Till()

    def wait(request):
        return tool_call("wait", {"runId": json.loads(request.messages[-1].text)["runId"]})

    steps = [tool_call("exec", {"code": CELL}), wait, last]
    async with gateway(settings(tmp_path, timeout_ms=300), steps, tools=till.tools) as g:

        async def approve_late(question):
            async def types():
                return [r.type for r in await g.events(question["sessionId"])]

            await until(types, lambda seen: "cell_parked" in seen)
            return await g.post(f"/api/approvals/{question['id']}", {"decision": "approve"})

        text, _ = await asked(g, approve_late)
    assert '"status":"completed"' in text
    assert (till.paid, till.echoed) == ([{"amt": 5}], 1)


async def test_an_answer_is_given_once(tmp_path):
    till = Till()
    steps = [tool_call("exec", {"code": CELL}), last]
    async with gateway(settings(tmp_path), steps, tools=till.tools) as g:
        seconds = []

        async def twice(question):
            path = f"/api/approvals/{question['id']}"
            both = [await g.post(path, {"decision": each}) for each in ("approve", "deny")]
            seconds.append(both[1])
            return both[0]

        _, question = await asked(g, twice)
        seconds.append(await g.post(f"/api/approvals/{question['id']}", {"decision": "deny"}))
        seconds.append(await g.get(f"/api/approvals/{question['id']}"))
        guessed = await g.post("/api/approvals/approval_1", {"decision": "approve"})
        bad = await g.post(f"/api/approvals/{question['id']}", {"decision": "maybe"})
    assert [each.status_code for each in seconds] == [409, 409, 409]
    assert seconds[0].json()["error"]["code"] == "approval_closed"
    assert (guessed.status_code, bad.status_code) == (404, 400)
    assert till.paid == [{"amt": 5}]
    assert len(question["id"]) > 36


async def test_a_yes_for_the_session_is_not_asked_again_in_it(tmp_path):
    """It holds for this tool in this session alone; each use is on record."""
    till = Till()
    pay = tool_call("exec", {"code": "return await pay({amt: 1})"})
    async with gateway(settings(tmp_path), [pay, "a", pay, "b", pay, "c"], tools=till.tools) as g:
        mine = {"extra_headers": {"x-toolcell-session": "s1"}}

        async def for_session(question):
            body = {"decision": "approve", "reach": "session"}
            return await g.post(f"/api/approvals/{question['id']}", body)

        await asked(g, for_session, **mine)
        await g.chat(**mine)
        audit = [r for r in await g.events("s1") if r.type == "approval_answered"]

        async def deny(question):
            return await g.post(f"/api/approvals/{question['id']}", {"decision": "deny"})

        await asked(g, deny, extra_headers={"x-toolcell-session": "s2"})
    assert till.paid == [{"amt": 1}] * 2
    assert [r.data()["reason"] for r in audit] == ["approved", "approved before, for the session"]


async def test_nobody_answering_is_a_no(tmp_path):
    till = Till()
    cell = "try { await pay({amt: 1}) } catch (e) { return e.message }"
    steps = [tool_call("exec", {"code": cell}), last]
    where = settings(tmp_path, approvalTtlSeconds=1)
    async with gateway(where, steps, tools=till.tools) as g:
        answer = await g.chat()
        (run,) = (await g.get("/api/runs")).json()["runs"]
        audit = [r for r in await g.events(run["sessionId"]) if r.type == "approval_answered"]
    assert "nobody answered within 1 seconds" in answer.choices[0].message.content
    assert [r.data()["approved"] for r in audit] == [False]
    assert till.paid == []


async def test_a_gateway_that_shuts_down_answers_no_and_the_run_ends_well(tmp_path):
    till = Till()
    cell = "try { await pay({amt: 1}) } catch (e) { return e.message }"
    steps = [tool_call("exec", {"code": cell}), last]
    got = []
    async with gateway(settings(tmp_path), steps, tools=till.tools) as g:

        async def ask():
            got.append(await g.chat())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            (question,) = await g.approvals()
            g.service.begin_drain()
        refused = await g.get("/api/approvals")
        await g.service.sessions.flush()
        audit = [r for r in await g.events(question["sessionId"]) if "approval" in r.type]
    assert "shutting down" in got[0].choices[0].message.content
    assert refused.status_code == 503
    assert audit[-1].data()["approved"] is False
    assert till.paid == []


async def test_a_run_that_is_cancelled_closes_its_question(tmp_path):
    till = Till()
    async with gateway(
        settings(tmp_path), [tool_call("exec", {"code": CELL})], tools=till.tools
    ) as g:
        run_id = (await g.post("/api/runs", {"prompt": "go"})).json()["id"]
        (question,) = await g.approvals()
        cancelled = await g.post(f"/api/runs/{run_id}/cancel")
        late = await g.post(f"/api/approvals/{question['id']}", {"decision": "approve"})
        audit = [r for r in await g.events(question["sessionId"]) if r.type == "approval_answered"]
    assert cancelled.json()["status"] == "cancelled"
    assert late.status_code == 409
    assert audit[0].data()["approved"] is False
    assert till.paid == []


@pytest.mark.parametrize(
    ("rule", "asks"),
    [
        ({"tool": "pay", "agent": "main", "decision": "ask"}, True),
        ({"tool": "pay", "agent": "ops-*", "decision": "ask"}, False),
        ({"tool": "pay", "arguments": {"amt": "^[5-9]$"}, "decision": "ask"}, True),
        ({"tool": "pay", "arguments": {"amt": "^[1-4]$"}, "decision": "ask"}, False),
        ({"tool": "p*", "decision": "ask"}, True),
    ],
)
async def test_rules_go_by_tool_agent_and_argument(tmp_path, rule, asks):
    till = Till()
    steps = [tool_call("exec", {"code": CELL}), "ok"]
    where = settings(tmp_path, rules={"rules": [rule]})
    async with gateway(where, steps, tools=till.tools) as g:

        async def approve(question):
            return await g.post(f"/api/approvals/{question['id']}", {"decision": "approve"})

        if asks:
            await asked(g, approve)
        else:
            await g.chat()
    assert till.paid == [{"amt": 5}]


async def test_the_command_line_lists_and_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    (tmp_path / "toolcell.json").write_text(json.dumps({"gateway": {"token": TOKEN}}))
    till = Till()
    steps = [tool_call("exec", {"code": CELL}), "ok"]

    def command(*words):
        code = run(["approvals", *words])
        return code, capsys.readouterr()

    async with gateway(settings(tmp_path), steps, tools=till.tools) as g:

        async def by_hand(question):
            code, told = await anyio.to_thread.run_sync(command, "list", "--url", g.url)
            assert code == 0
            assert "it costs money" in told.out
            words = ("approve", question["id"], "--url", g.url, "--json")
            code, told = await anyio.to_thread.run_sync(command, *words)
            assert (code, json.loads(told.out)["approved"]) == (0, True)
            code, told = await anyio.to_thread.run_sync(command, "deny", *words[1:])
            assert (code, "already" in told.err) == (1, True)

        await asked(g, by_hand)
        gone = g.url
    code, told = command("list", "--url", gone)
    assert (code, "is `toolcell gateway` running?" in told.err) == (1, True)
    assert till.paid == [{"amt": 5}]
