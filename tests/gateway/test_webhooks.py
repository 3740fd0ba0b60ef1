"""Conversations over signed webhooks, both ways, and the methods `conversations.*` (rule 7.5)."""

import hashlib
import hmac
import json
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.gateway.kit import TOKEN, config, gateway, tool, until
from tests.sources.core.web import page, serving
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import ConfigError, ProviderError
from toolcell.gateway.inbound import MAX_BYTES, session_of
from toolcell.gateway.service import ServiceParts, opened_service
from toolcell.protocol.hooks import Hooks
from toolcell.providers.scripted import tool_call
from toolcell.sources.core.conversations import LIST_OUTPUT, SEND_OUTPUT, TURN_OUTPUT
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio

SECRET = "signs what goes out"
INWARD = "signs what comes in"


def hexmac(secret, *parts):
    """The signature as docs/gateway.md tells a sender to make it."""
    data = b".".join(part if isinstance(part, bytes) else part.encode() for part in parts)
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


def signed(body, *, secret=INWARD, at=None):
    at = str(int(SYSTEM_CLOCK.wall() if at is None else at))
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    header = f"t={at},v1={hexmac(secret, at, b'in', data)}"
    headers = {"content-type": "application/json", "x-toolcell-signature": header}
    return {"content": data, "headers": headers}


def message(text="hello", **more):
    return {"id": "d1", "conversation": "bot", "sender": "ann", "text": text, **more}


def channels(url, **receive):
    ops = {
        "url": f"{url}/hook",
        "secret": SECRET,
        "conversations": {"bot": "Build bot", "team": "Team"},
        "receive": {"secret": INWARD, "replyDelayMs": 10, **receive},
    }
    deaf = {"url": f"{url}/deaf", "secret": SECRET, "conversations": {"x": "X"}}
    return {"ops": ops, "deaf": deaf}


@asynccontextmanager
async def both(tmp_path, steps, *, receive=None, branches=None, **parts):
    """A gateway and the receiver of its channel, each on a real socket."""
    async with serving() as web:
        web.answers["/hook"] = page("", "")
        settings = config(tmp_path, channels=channels(web.url, **(receive or {})), **branches or {})
        async with (
            gateway(settings, steps, **parts) as g,
            # A channel's program has no token of the gateway.
            httpx.AsyncClient(base_url=g.url, timeout=30) as stranger,
        ):

            async def send(body, path="/webhooks/ops", **how):
                return await stranger.post(path, **signed(body, **how))

            yield g, web, send, stranger


def sent(web, kind=None):
    found = [json.loads(asked.body) for asked in web.asked]
    return [each for each in found if kind is None or each["type"] == kind]


async def replies(web, count=1):
    async def read():
        return sent(web, "reply")

    return await until(read, lambda found: len(found) >= count)


async def test_a_message_is_answered_by_a_run_and_its_reply_is_signed(tmp_path):
    """rule 8.1: the run acts for the sender, in the session of the conversation."""
    async with both(tmp_path, ["hi ann", "again"]) as (g, web, send, _):
        got = await send(message())
        first = (await replies(web))[0]
        await send(message("and?", id="d2"))
        second = (await replies(web, 2))[1]
        run = (await g.get(f"/api/runs/{got.json()['runId']}")).json()
        history = (await g.get(f"/api/sessions/{run['sessionId']}/messages")).json()["messages"]
        asked = web.asked[0]
    assert got.status_code == 202
    assert got.json() == {
        "id": "d1",
        "status": "started",
        "runId": run["id"],
        "sessionId": "webhook:main:ops:bot",
        "duplicate": False,
    }
    assert first == {
        "id": first["id"],
        "type": "reply",
        "conversation": "bot",
        "text": "hi ann",
        "agentId": "main",
        "replyTo": "d1",
        "status": "completed",
        "runId": run["id"],
    }
    at = asked.headers["x-toolcell-signature"].split(",")[0][2:]
    assert asked.headers["x-toolcell-signature"] == f"t={at},v1={hexmac(SECRET, at, asked.body)}"
    assert (second["text"], second["replyTo"]) == ("again", "d2")
    assert [each["text"] for each in history] == ["hello", "hi ann", "and?", "again"]


async def test_hooks_and_tools_know_the_sender_and_the_channel(tmp_path):
    """rule 8.1: agent, session, sender and channel reach hooks and the tool's context."""
    seen = []

    async def watched(event):
        seen.append((event.scope.agent_id, event.scope.channel, event.scope.sender))

    async def echo(_arguments, context):
        seen.append((context.scope.session_id, context.scope.channel, context.scope.sender))
        return ToolResult(details={"ok": True})

    hooks = Hooks(before=(watched,))
    steps = [tool_call("echo", {}), "done"]
    branches = {"agents": {"entries": {"helper": {}}}}
    made = both(
        tmp_path,
        steps,
        receive={"agent": "helper"},
        branches=branches,
        tools=[tool("echo", echo)],
        hooks=hooks,
    )
    async with made as (_, web, send, _stranger):
        await send(message())
        await replies(web)
    assert seen == [
        ("helper", "webhook:ops", "ann"),
        ("webhook:helper:ops:bot", "webhook:ops", "ann"),
    ]


async def test_a_message_is_taken_once_however_often_it_comes(tmp_path):
    """A replay gets the first answer, also of a gateway that was started anew; no second run."""
    branches = {"agents": {"defaults": {"model": "scripted/m"}}}
    async with both(tmp_path, ["one", "two"], branches=branches) as (g, web, send, stranger):
        request = signed(message())
        first = await stranger.post("/webhooks/ops", **request)
        await replies(web)
        replayed = await stranger.post("/webhooks/ops", **request)
        resigned = await send(message(), at=SYSTEM_CLOCK.wall() + 5)
        other = await send(message("something else"))
        at_once = [None] * 8

        async def again(n):
            at_once[n] = (await send(message("many", id="d9"))).json()

        async with anyio.create_task_group() as tasks:
            for n in range(8):
                tasks.start_soon(again, n)
        await replies(web, 2)
        runs = (await g.get("/api/runs")).json()["runs"]
    async with both(tmp_path, ["never"]) as (g, web, send, _):
        later = await send(message())
        assert (await g.get("/api/runs")).json()["runs"] == []
    for again in (replayed, resigned, later):
        assert again.status_code == 202
        assert again.json() == {**first.json(), "duplicate": True}
    assert (other.status_code, other.json()["error"]["code"]) == (409, "delivery_id_reused")
    assert len(runs) == 2
    assert len({each["runId"] for each in at_once}) == 1
    assert [each["duplicate"] for each in at_once].count(False) == 1


def spoilt():
    """Requests that nobody with the secret made."""
    good = signed(message())
    now = str(int(SYSTEM_CLOCK.wall()))
    data = json.dumps(message()).encode()

    def with_header(value):
        return {**good, "headers": {**good["headers"], "x-toolcell-signature": value}}

    right = hexmac(INWARD, now, b"in", data)
    return {
        "no signature": {**good, "headers": {"content-type": "application/json"}},
        "another form": with_header("sha256=" + right),
        "one digit wrong": with_header(
            f"t={now},v1={right[:-1]}{'0' if right[-1] != '0' else '1'}"
        ),
        "half of it": with_header(f"t={now},v1={right[:32]}"),
        "another time": with_header(f"t={int(now) - 1},v1={right}"),
        "digits that are none": with_header(f"t=١٢٣,v1={right}".encode()),
        "two headers' worth": with_header(f"t={now},v1={right},v1={right}"),
        "another body": {**good, "content": data.replace(b"hello", b"h3llo")},
        "the secret of the other way": signed(message(), secret=SECRET),
        "a message out, sent back": with_header(f"t={now},v1={hexmac(INWARD, now, data)}"),
        "the answer to a turn, sent back": with_header(
            f"t={now},v1={hexmac(INWARD, now, b'msg_1', data)}"
        ),
        "an empty secret": signed(message(), secret=""),
    }


@pytest.mark.parametrize("name", list(spoilt()))
async def test_what_is_not_signed_for_this_channel_gets_one_answer(tmp_path, name):
    """Nothing is told apart: not an unknown channel, nor one that takes none, nor a near miss."""
    async with both(tmp_path, []) as (g, _, send, stranger):
        got = await stranger.post("/webhooks/ops", **spoilt()[name])
        unknown = await send(message(), "/webhooks/nowhere")
        deaf = await send(message(), "/webhooks/deaf", secret=SECRET)
        runs = (await g.get("/api/runs")).json()["runs"]
    assert (got.status_code, got.json()["error"]["code"]) == (401, "invalid_signature")
    assert got.content == unknown.content == deaf.content
    assert runs == []


@pytest.mark.parametrize("apart", [-301, 301, -86_400, 10**11])
async def test_a_signature_of_another_time_is_refused(tmp_path, apart):
    """A captured message is of no use later than the tolerance, whatever its id."""
    async with both(tmp_path, ["x"]) as (_, _web, send, _stranger):
        got = await send(message(), at=SYSTEM_CLOCK.wall() + apart)
        near = await send(message(), at=SYSTEM_CLOCK.wall() + (290 if apart > 0 else -290))
    assert (got.status_code, got.json()["error"]["code"]) == (401, "stale_signature")
    assert near.status_code == 202


WRONG = {
    "no JSON": (b"{", 400, "invalid_json"),
    "not text": (b"\xff\xfe", 400, "invalid_json"),
    "deep": (b"[" * 100_000, 400, "invalid_json"),
    "a key twice": (
        b'{"id":"d1","conversation":"bot","sender":"ann","sender":"root","text":"x"}',
        400,
        "invalid_json",
    ),
    "NaN": (b'{"id":NaN}', 400, "invalid_json"),
    "a list": ([], 400, "invalid_value"),
    "a field more": (message(admin=True), 400, "invalid_value"),
    "no sender": ({k: v for k, v in message().items() if k != "sender"}, 400, "invalid_value"),
    "a sender of two lines": (message(sender="ann\nroot"), 400, "invalid_value"),
    "an id with spaces": (message(id="a b"), 400, "invalid_value"),
    "a number for text": (message(text=5), 400, "invalid_value"),
    "half a character": (message("\ud800"), 400, "invalid_value"),
    "no text": (message(""), 400, "invalid_value"),
    "long text": (message("x" * 32_001), 400, "invalid_value"),
    "another conversation": (message(conversation="ops/../x"), 404, "conversation_not_found"),
}


@pytest.mark.parametrize("name", list(WRONG))
async def test_a_signed_message_that_says_nothing_usable_is_refused(tmp_path, name):
    body, status, code = WRONG[name]
    async with both(tmp_path, ["ok"]) as (g, web, send, _):
        got = await send(body)
        # It was not taken: the id is still free.
        after = await send(message())
        await replies(web)
        runs = (await g.get("/api/runs")).json()["runs"]
    assert (got.status_code, got.json()["error"]["code"]) == (status, code)
    assert set(got.json()["error"]) == {"message", "type", "param", "code"}
    assert after.json()["duplicate"] is False
    assert len(runs) == 1


async def test_size_type_and_method_are_checked_before_anything_else(tmp_path):
    async with both(tmp_path, []) as (_, _web, send, stranger):
        huge = await send(message("x" * MAX_BYTES))
        request = signed(message())
        request["headers"]["content-type"] = "text/plain"
        plain = await stranger.post("/webhooks/ops", **request)
        got = await stranger.get("/webhooks/ops")
        elsewhere = await stranger.get("/webhooks/../api/sessions")
    assert (huge.status_code, huge.json()["error"]["code"]) == (413, "request_too_large")
    assert plain.status_code == 415
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert elsewhere.status_code == 401


async def test_a_channel_has_a_rate_of_its_own_that_strangers_cannot_use_up(tmp_path):
    receive = {"messagesPerMinute": 2}
    async with both(tmp_path, ["a", "b"], receive=receive) as (_, web, send, _stranger):
        for _ in range(5):
            await send(message(), secret="the secret of somebody")
        codes = [(await send(message(id=f"d{n}"))).status_code for n in range(3)]
        last = await send(message(id="d7"))
        await replies(web, 2)
    assert codes == [202, 202, 429]
    assert last.json()["error"]["code"] == "rate_limit_exceeded"
    assert int(last.headers["retry-after"]) >= 1


async def test_messages_of_a_conversation_are_answered_one_after_another(tmp_path):
    """One run at a time in a session; the line is bounded, and the id of a refused one is free."""
    hold, entered = anyio.Event(), anyio.Event()

    async def wait(_arguments, _context):
        entered.set()
        await hold.wait()
        return ToolResult(details={})

    steps = [tool_call("wait_here", {}), "first", *(f"reply {n}" for n in range(17))]
    async with both(tmp_path, steps, tools=[tool("wait_here", wait)]) as (g, web, send, _):
        await send(message("m0", id="m0"))
        with anyio.fail_after(10):
            await entered.wait()
        waiting = [await send(message(f"m{n}", id=f"m{n}")) for n in range(1, 17)]
        over = await send(message("m17", id="m17"))
        assert [each.status_code for each in waiting] == [202] * 16
        cancelled = waiting[4].json()["runId"]
        stopped = (await g.post(f"/api/runs/{cancelled}/cancel")).json()
        listed = (await g.get(f"/api/runs/{waiting[0].json()['runId']}")).json()
        hold.set()
        told = await replies(web, 17)
        again = await send(message("m17", id="m17"))
        await replies(web, 18)
    assert (over.status_code, over.json()["error"]["code"]) == (429, "too_many_waiting")
    assert (again.status_code, again.json()["duplicate"]) == (202, False)
    assert listed["status"] == "running"
    assert stopped["status"] == "cancelled"
    done = [each["replyTo"] for each in told if each["status"] == "completed"]
    assert done == [f"m{n}" for n in range(17) if n != 5]
    assert [e["text"] for e in told if e["replyTo"] == "m5"] == [""]


async def test_a_reply_is_sent_again_until_it_is_taken_with_the_same_id(tmp_path):
    answers = iter(["503 No", "429 Slow", "500 Oops", "200 OK"])
    async with both(tmp_path, ["hi"]) as (_, web, send, _stranger):
        web.answers["/hook"] = lambda _asked: page("", "", next(answers))
        await send(message())
        told = await replies(web, 4)
        await anyio.sleep(0.2)
        assert len(sent(web)) == 4
        times = {asked.headers["x-toolcell-signature"] for asked in web.asked}
    assert len({each["id"] for each in told}) == 1
    assert times


@pytest.mark.parametrize(
    ("status", "attempts"), [("500 Oops", 3), ("400 No", 1), ("302 Away", 1), (None, 3)]
)
async def test_a_reply_that_nobody_takes_is_given_up_and_told(tmp_path, status, attempts):
    told = []

    class Told:
        def emit(self, event):
            told.append(event)

    receive = {"replyAttempts": 3}
    async with both(tmp_path, ["hi"], receive=receive, sinks=[Told()]) as (g, web, send, _):
        web.answers["/hook"] = b"nonsense" if status is None else page("", "", status)
        await send(message())

        async def open_replies():
            return g.service.messages.replies.open

        await until(open_replies, lambda count: count == 0)
        assert len(sent(web)) == attempts
    (problem,) = [e for e in told if getattr(e, "subject", "") == "channel ops"]
    assert problem.level == "error"
    assert "was not taken" in problem.message


async def test_why_a_run_failed_is_not_told_in_the_channel(tmp_path):
    step = ProviderError("CANARY of the upstream")
    async with both(tmp_path, [step]) as (_, web, send, _stranger):
        await send(message())
        (told,) = await replies(web)
    assert (told["status"], told["text"]) == ("failed", "")
    assert b"CANARY" not in web.asked[0].body


async def test_secrets_are_masked_in_what_is_sent(tmp_path):
    """SE-08: also the secrets of the channel itself."""
    async with both(tmp_path, [f"{INWARD} {SECRET} {TOKEN}"]) as (_, web, send, _stranger):
        await send(message())
        (told,) = await replies(web)
    for secret in (INWARD, SECRET, TOKEN):
        assert secret not in told["text"]


async def test_the_methods_answer_with_the_schemas_of_the_tools(tmp_path):
    """rule 7.5: conversations.list, conversations.send and conversations.turn share them."""
    async with both(tmp_path, []) as (g, web, _, stranger):
        listed = await g.get("/api/conversations", params={"query": "BUILD bot"})
        ref = listed.json()["conversations"][0]["conversationRef"]
        out = await g.post("/api/conversations/send", {"conversationRef": ref, "message": "hé"})
        web.answers["/hook"] = answering({"reply": "sî"})
        turn = {"conversationRef": ref, "message": "?"}
        turned = await g.post("/api/conversations/turn", turn)
        web.answers["/hook"] = answering({"reply": None})
        silent = await g.post("/api/conversations/turn", turn)
        document = (await g.get("/api/openapi.json")).json()["paths"]
        denied = await stranger.get("/api/conversations")
    for got, schema in ((listed, LIST_OUTPUT), (out, SEND_OUTPUT), (turned, TURN_OUTPUT)):
        assert got.status_code == 200, got.text
        Draft202012Validator(schema).validate(got.json())
    assert (turned.json()["status"], turned.json()["reply"]) == ("replied", "sî")
    assert silent.json()["status"] == "no_reply"
    assert sent(web)[0] == {
        "id": out.json()["messageId"],
        "type": "send",
        "conversation": "bot",
        "text": "hé",
        "agentId": "main",
    }
    for path, method, schema in (
        ("/api/conversations", "get", LIST_OUTPUT),
        ("/api/conversations/send", "post", SEND_OUTPUT),
        ("/api/conversations/turn", "post", TURN_OUTPUT),
    ):
        told = document[path][method]["responses"]["200"]["content"]["application/json"]
        assert told["schema"] == schema
    assert denied.status_code == 401


def answering(value):
    """Answer a turn in the answer to its request."""

    def answer(asked):
        body, at = json.dumps(value), str(int(SYSTEM_CLOCK.wall()))
        made = hexmac(SECRET, at, json.loads(asked.body)["id"], body)
        return page(body, "application/json", X_Toolcell_Signature=f"t={at},v1={made}")

    return answer


async def test_a_method_says_what_was_wrong(tmp_path):
    async with both(tmp_path, []) as (g, web, _, _stranger):
        web.answers["/hook"] = page("", "", "500 Oops")
        known = {"conversationRef": "webhook:ops/bot", "message": "x"}
        cases = [
            ({**known, "conversationRef": "webhook:ops/nobody"}, 404, "conversation_not_found"),
            ({**known, "message": ""}, 400, "invalid_value"),
            ({**known, "waitMs": 5}, 400, "invalid_value"),
            ({**known, "agent": "nobody"}, 404, "model_not_found"),
            (known, 502, "not_delivered"),
        ]
        for body, status, code in cases:
            got = await g.post("/api/conversations/turn", body)
            assert (got.status_code, got.json()["error"]["code"]) == (status, code), got.text
        assert got.headers["x-should-retry"] == "false"
        assert len(web.asked) == 1
        long = await g.get("/api/conversations", params={"query": "x" * 201})
        assert long.status_code == 400


async def test_a_message_that_comes_in_answers_the_turn_that_waits_for_it(tmp_path):
    """`conversations_turn` of an agent: the reply is the next message, or the one that names it."""
    ask = {"conversationRef": "webhook:ops/bot", "message": "deploy?", "waitMs": 20_000}
    steps = [tool_call("conversations_turn", ask), lambda r: r.messages[-1].text]
    async with both(tmp_path, steps, core=True) as (g, web, send, _):
        run = (await g.post("/api/runs", {"prompt": "go"})).json()

        async def asked():
            return sent(web, "turn")

        (turn,) = await until(asked, lambda found: found)
        elsewhere = {**ask, "conversationRef": "webhook:ops/team"}
        got = {}

        async def by_http(name, body):
            got[name] = (await g.post("/api/conversations/turn", body)).json()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(by_http, "team", elsewhere)
            tasks.start_soon(by_http, "second", {**ask, "message": "again?"})
            turns = await until(asked, lambda found: len(found) == 3)
            second = next(each for each in turns if each["text"] == "again?")
            named = await send(message("named", id="a1", replyTo=second["id"]))
            other = await send(message("for the team", id="a2", conversation="team"))
            next_one = await send(message("yes", id="a3"))
            dup = await send(message("yes", id="a3"))
        done = (await g.get(f"/api/runs/{run['id']}", params={"wait": 20})).json()
        runs = (await g.get("/api/runs")).json()["runs"]
    assert next_one.json() == {
        "id": "a3",
        "status": "replied",
        "messageId": turn["id"],
        "duplicate": False,
    }
    assert dup.json() == {**next_one.json(), "duplicate": True}
    assert "yes" in done["text"]
    assert got["second"] == {
        "status": "replied",
        "conversationRef": "webhook:ops/bot",
        "messageId": second["id"],
        "reply": "named",
    }
    assert named.json()["messageId"] == second["id"]
    assert (got["team"]["reply"], other.json()["status"]) == ("for the team", "replied")
    assert len(runs) == 1


async def test_a_turn_that_nobody_answers_ends_and_the_next_message_is_a_run(tmp_path):
    body = {"conversationRef": "webhook:ops/bot", "message": "?", "waitMs": 200}
    async with both(tmp_path, ["late"]) as (g, web, send, _):
        turned = (await g.post("/api/conversations/turn", body)).json()
        late = await send(message("here", replyTo=turned["messageId"]))
        await replies(web)
        started = SYSTEM_CLOCK.monotonic()
        slow = {**body, "waitMs": 60_000}
        async with anyio.create_task_group() as tasks:

            async def turn():
                turned.update((await g.post("/api/conversations/turn", slow)).json())

            tasks.start_soon(turn)

            async def asked():
                return sent(web, "turn")

            await until(asked, lambda found: len(found) == 2)
            await anyio.sleep(0.05)
            g.service.messages.expected.shut()  # what a shutdown does
    assert turned["status"] == "no_reply"
    assert late.json()["status"] == "started"
    assert SYSTEM_CLOCK.monotonic() - started < 10


async def test_conversations_have_sessions_of_their_own():
    """No two channels, conversations or agents meet in one session, whatever their names."""
    names = ["bot", "b/ot", "b:ot", "x" * 200, "ü", "~", "", "bot ", "main:ops"]
    found = {session_of(a, c, n) for a in ("main", "m:x") for c in ("ops", "op") for n in names}
    assert len(found) == 2 * 2 * len(names)
    from toolcell.gateway.bodies import session_id  # noqa: PLC0415

    assert all(session_id(each, param="x") for each in found)


async def test_any_conversation_may_be_answered_when_the_config_says_so(tmp_path):
    async with both(tmp_path, ["a", "b"], receive={"unlisted": True}) as (_, web, send, _s):
        one = await send(message(conversation="C/é", id="u1"))
        two = await send(message(conversation="C/è", id="u2"))
        await replies(web, 2)
    assert one.json()["sessionId"] != two.json()["sessionId"]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"receive": {"agent": "nobody"}}, "channels.ops.receive.agent"),
        ({"receive": {"secret": "short"}}, "channels.ops.receive.secret"),
        ({"secret": "short", "receive": {}}, "channels.ops.secret"),
    ],
)
async def test_a_channel_that_cannot_receive_is_told_at_start(tmp_path, wrong, path):
    ops = {"url": "http://127.0.0.1:1", "secret": SECRET, **wrong}
    with pytest.raises(ConfigError) as caught:
        async with opened_service(config(tmp_path, channels={"ops": ops}), ServiceParts()):
            pass
    assert caught.value.path == path


async def test_a_channel_that_receives_has_a_plain_name(tmp_path):
    ops = {"url": "http://127.0.0.1:1", "secret": SECRET, "receive": {}}
    with pytest.raises(ConfigError, match="letters"):
        async with opened_service(config(tmp_path, channels={"a b": ops}), ServiceParts()):
            pass
