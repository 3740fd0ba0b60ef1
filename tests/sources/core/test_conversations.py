"""`conversations_*` over a signed webhook; the seed's one-cell example (rule 7.4, rule 7.5)."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from tests.sources.core.conftest import call, context
from tests.sources.core.web import Asked, page, redirect, serving
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.codemode.results import Completed
from toolcell.config.parse import parse_config
from toolcell.errors import CallError
from toolcell.sources.core.conversations import LIST_OUTPUT, SEND_OUTPUT, TURN_OUTPUT
from toolcell.testing.clock import FakeClock

pytestmark = pytest.mark.anyio

SECRET = "a secret of the channel"
NOW = 1_700_000_000


def hexmac(*parts: str) -> str:
    """The signature as docs/core-tools.md tells a receiver to make it."""
    return hmac.new(SECRET.encode(), ".".join(parts).encode(), hashlib.sha256).hexdigest()


def replying(value, *, secret_parts=None, at=NOW):
    """Answer a turn, signed for its own message unless told otherwise."""

    def answer(asked: Asked) -> bytes:
        body = json.dumps(value)
        message = json.loads(asked.body)["id"]
        parts = secret_parts or (str(at), message, body)
        signed = f"t={at},v1={hexmac(*parts)}"
        return page(body, "application/json", X_Toolcell_Signature=signed)

    return answer


def runtime(root, url: str) -> Runtime:
    config = parse_config(
        {
            "tools": {"codeMode": {"enabled": True, "executor": "quickjs", "guestApi": "tools"}},
            "channels": {
                "ops": {
                    "url": f"{url}/hook?token=url-token-of-ops",
                    "secret": SECRET,
                    "conversations": {"bot": "Build bot", "team": "Team"},
                }
            },
        }
    )
    parts = Parts(workspace=root, load_plugins=False)
    return Runtime(config, parts, Host(clock=FakeClock(wall=float(NOW))))


def tool(made: Runtime, name: str):
    return next(each.tool for each in made.tools() if each.id == f"openclaw:core:{name}")


SEED_EXAMPLE = """
const listed = await tools.conversations_list({ query: "build bot" });
const target = listed.conversations.find((item) => item.label === "Build bot");
if (!target) throw new Error("not found");
return await tools.conversations_send({
  conversationRef: target.conversationRef,
  message: "Build done.",
});
"""


async def test_the_seeds_example_finds_a_conversation_and_sends_in_one_cell(root):
    """Rule 7.5: discovery and delivery in one cell."""
    async with serving() as web:
        web.answers["/hook"] = page("", "")
        made = runtime(root, web.url)
        await made.start()
        try:
            run = made.run(made.scope())
            outcome = await run.exec({"code": SEED_EXAMPLE})
            while getattr(outcome, "status", "") == "waiting":
                outcome = await run.wait({"runId": outcome.run_id})
        finally:
            await made.aclose()
    assert isinstance(outcome, Completed), outcome
    assert outcome.value["status"] == "sent"
    assert outcome.value["conversationRef"] == "webhook:ops/bot"
    (asked,) = web.asked
    sent = json.loads(asked.body)
    assert sent == {
        "id": outcome.value["messageId"],
        "type": "send",
        "conversation": "bot",
        "text": "Build done.",
        "agentId": "main",
    }
    signed = f"t={NOW},v1={hexmac(str(NOW), asked.body.decode())}"
    assert asked.headers["x-toolcell-signature"] == signed


async def test_conversations_are_found_by_the_words_of_their_labels(root):
    listed = tool(runtime(root, "http://x"), "conversations_list")
    assert [c["label"] for c in (await call(listed))["conversations"]] == ["Build bot", "Team"]
    assert (await call(listed, query="ops TEAM"))["conversations"] == [
        {"conversationRef": "webhook:ops/team", "label": "Team", "channel": "ops"}
    ]
    assert (await call(listed, limit=1))["truncated"]


async def test_a_turn_brings_the_signed_reply_back(root):
    async with serving() as web:
        turn = tool(runtime(root, web.url), "conversations_turn")
        arguments = {"conversationRef": "webhook:ops/bot", "message": "hé?"}
        web.answers["/hook"] = replying({"reply": "sî"})
        got = await call(turn, **arguments)
        assert (got["status"], got["reply"]) == ("replied", "sî")
        assert json.loads(web.asked[0].body)["type"] == "turn"
        result = await turn.execute(arguments, context())
        assert result.untrusted
        for silent in (replying({"reply": None}), page("", "")):
            web.answers["/hook"] = silent
            assert (await call(turn, **arguments))["status"] == "no_reply"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page('{"reply": "forged"}', "application/json"), "not signed"),
        (replying({"reply": "x"}, secret_parts=("1", "x")), "wrong signature"),
        (replying({"reply": "x"}, at=NOW - 3600), "another time"),
        (replying({"reply": 5}), "is not"),
        (replying([1]), "is not"),
        (page("no", status="500 Oops"), "status 500"),
        (redirect("http://127.0.0.1:1/"), "status 302"),
        (b"nonsense\r\n\r\n", "channel 'ops' cannot be reached"),
    ],
)
async def test_a_reply_that_is_not_the_receivers_is_never_used(root, answer, why):
    async with serving() as web:
        web.answers["/hook"] = answer
        turn = tool(runtime(root, web.url), "conversations_turn")
        with pytest.raises(CallError, match=why) as caught:
            await call(turn, conversationRef="webhook:ops/bot", message="hi")
        assert len(web.asked) == 1  # a second try could say it twice
    assert "url-token" not in caught.value.message


async def test_a_reply_signed_for_another_message_is_not_used(root):
    async with serving() as web:
        web.answers["/hook"] = replying(
            {"reply": "old"}, secret_parts=(str(NOW), "msg-other", '{"reply": "old"}')
        )
        turn = tool(runtime(root, web.url), "conversations_turn")
        with pytest.raises(CallError, match="wrong signature"):
            await call(turn, conversationRef="webhook:ops/bot", message="hi")


async def test_an_unknown_conversation_is_refused_before_anything_is_sent(root):
    for name in ("conversations_send", "conversations_turn"):
        with pytest.raises(CallError, match="no conversation") as caught:
            await call(
                tool(runtime(root, "http://x"), name), conversationRef="webhook:x/y", message="hi"
            )
        assert caught.value.effect == "none"


def test_the_schemas_are_values_a_gateway_method_can_share(root):
    """Rule 7.5: the tools share the schemas of `conversations.list/send/turn`."""
    made = runtime(root, "http://x")
    for name, schema in (("list", LIST_OUTPUT), ("send", SEND_OUTPUT), ("turn", TURN_OUTPUT)):
        assert tool(made, f"conversations_{name}").output_schema == schema
