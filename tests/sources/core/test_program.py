"""Tools about sessions, agents and this process (issue part 4; rule 7.4, rule 8.1)."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from tests.sources.core.conftest import call, context
from toolcell.app.conversation import with_children
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import CallError
from toolcell.protocol.events import MessageAdded
from toolcell.protocol.messages import Message, ToolCall
from toolcell.protocol.scope import RunScope
from toolcell.sessions.memory import MemorySessions
from toolcell.sources.core.ports import SENT_CHANNEL, CorePorts, SentTurn
from toolcell.sources.core.session_reading import TEXT_CHARS
from toolcell.sources.core.toolset import program_tools

pytestmark = pytest.mark.anyio


def scope(session: str, agent: str = "main", **more) -> RunScope:
    return RunScope(
        agent_id=agent, session_id=session, session_key=f"k:{session}", run_id="r1", **more
    )


def using(session: str = "s1", agent: str = "main", **more):
    return replace(context(), scope=scope(session, agent, **more))


@pytest.fixture
def sessions():
    record = MemorySessions()
    said = [
        ("s1", "main", "user", "Where is the Tide table?"),
        ("s1", "main", "assistant", "In tides.csv"),
        ("s2", "main", "user", "Plot the TIDE please " + "x" * (TEXT_CHARS + 5)),
        ("s3", "other", "user", "tide secrets of another agent"),
    ]
    for at, (session, agent, role, text) in enumerate(said):
        calls = (ToolCall("c1", "read", "{}"),) if role == "assistant" else ()
        message = Message(role=role, text=text, tool_calls=calls)
        record.emit(MessageAdded(scope=scope(session, agent), at=float(at), message=message))
    return record


@pytest.fixture
def tools(sessions):
    return {each.name: each for each in program_tools(CorePorts(sessions=sessions))}


async def test_an_agent_lists_its_own_sessions_the_last_used_first(tools):
    got = await call(tools["sessions_list"], using=using())
    assert got["sessions"] == [
        {
            "sessionId": session,
            "createdAt": created,
            "updatedAt": updated,
            "messages": messages,
            "runs": 1,
            "current": session == "s1",
        }
        for session, created, updated, messages in (("s2", 2.0, 2.0, 1), ("s1", 0.0, 1.0, 2))
    ]
    assert not got["truncated"]
    got = await call(tools["sessions_list"], using=using(), limit=1)
    assert (len(got["sessions"]), got["truncated"]) == (1, True)


async def test_history_comes_from_the_end_in_parts(tools):
    got = await call(tools["sessions_history"], using=using(), limit=1)
    assert got == {
        "sessionId": "s1",
        "messages": [
            {
                "index": 1,
                "role": "assistant",
                "text": "In tides.csv",
                "cut": False,
                "toolCalls": ["read"],
            }
        ],
        "total": 2,
        "before": 1,
    }
    got = await call(tools["sessions_history"], using=using(), before=got["before"])
    assert (got["messages"][0]["text"], got["before"]) == ("Where is the Tide table?", None)
    got = await call(tools["sessions_history"], using=using(), sessionId="s2")
    assert got["messages"][0]["cut"]
    assert len(got["messages"][0]["text"]) == TEXT_CHARS
    result = await tools["sessions_history"].execute({}, using())
    assert result.untrusted


async def test_search_finds_messages_with_all_words_in_the_agents_own_sessions(tools):
    got = await call(tools["sessions_search"], using=using(), query="tide TABLE")
    assert [(hit["sessionId"], hit["index"]) for hit in got["hits"]] == [("s1", 0)]
    got = await call(tools["sessions_search"], using=using(), query="tide")
    assert [hit["sessionId"] for hit in got["hits"]] == ["s2", "s1", "s1"]
    assert (got["sessionsSearched"], got["truncated"]) == (2, False)
    got = await call(tools["sessions_search"], using=using(), query="tide", limit=1)
    assert (len(got["hits"]), got["truncated"]) == (1, True)
    with pytest.raises(CallError, match="no words"):
        await call(tools["sessions_search"], using=using(), query="   ")


async def test_status_tells_of_this_session_also_before_it_is_on_record(tools):
    got = await call(tools["session_status"], using=using("new", channel="cli"))
    assert got == {
        "sessionId": "new",
        "agentId": "main",
        "current": True,
        "runId": "r1",
        "channel": "cli",
        "sandboxed": False,
        "createdAt": None,
        "updatedAt": None,
        "messages": 0,
        "runs": 0,
    }
    got = await call(tools["session_status"], using=using(), sessionId="s2")
    assert (got["current"], got["runId"], got["messages"]) == (False, None, 1)


@pytest.mark.parametrize("name", ["sessions_history", "session_status"])
@pytest.mark.parametrize(
    ("more", "session"), [({}, "s3"), ({}, "none"), ({"sandboxed": True}, "s2")]
)
async def test_a_session_of_somebody_else_is_told_like_one_that_does_not_exist(
    tools, name, more, session
):
    """rule 8.1: a session is one agent's; a sandboxed run sees only its own."""
    with pytest.raises(CallError, match=f"There is no session '{session}'") as caught:
        await call(tools[name], using=using(**more), sessionId=session)
    assert caught.value.effect == "none"


async def test_a_sandboxed_run_lists_and_searches_only_its_own_session(tools):
    inside = using(sandboxed=True)
    got = await call(tools["sessions_list"], using=inside)
    assert [each["sessionId"] for each in got["sessions"]] == ["s1"]
    got = await call(tools["sessions_search"], using=inside, query="tide")
    assert {hit["sessionId"] for hit in got["hits"]} == {"s1"}


class Sender:
    """Begins a run that ends as told."""

    def __init__(self, *, reply: str = "", error: str | None = None, ends: bool = True) -> None:
        self.turn = SentTurn(run_id="r9", reply=reply, error=error)
        if ends:
            self.turn.done.set()
        self.sent: list[tuple[str, str, str]] = []

    async def start(self, sender: RunScope, session_id: str, message: str) -> SentTurn:
        self.sent.append((sender.session_id, session_id, message))
        return self.turn


async def test_a_message_to_another_session_gives_its_reply_or_how_it_stands(sessions):
    place = {"sessionId": "s2", "runId": "r9"}
    for sender, expected in (
        (Sender(reply="done"), {"status": "replied", **place, "reply": "done"}),
        (Sender(error="no model"), {"status": "failed", **place, "error": "no model"}),
        (Sender(ends=False), {"status": "running", **place}),
    ):
        tools = {t.name: t for t in program_tools(CorePorts(sessions=sessions, sender=sender))}
        send = tools["sessions_send"]
        with anyio.fail_after(5):
            got = await call(send, using=using(), sessionId="s2", message="hi", waitMs=20)
        assert got == expected
        assert sender.sent == [("s1", "s2", "hi")]


@pytest.mark.parametrize(
    ("to", "more", "why"),
    [
        ("s1", {}, "to itself"),
        ("s3", {}, "no session"),
        ("s2", {"sandboxed": True}, "no session"),
        ("s2", {"channel": SENT_CHANNEL}, "cannot send one"),
    ],
)
async def test_who_may_not_send_does_not(sessions, to, more, why):
    """rule 8.1: no loops between sessions, none across agents, none out of the sandbox."""
    sender = Sender()
    tools = {t.name: t for t in program_tools(CorePorts(sessions=sessions, sender=sender))}
    with pytest.raises(CallError, match=why):
        await call(tools["sessions_send"], using=using(**more), sessionId=to, message="hi")
    assert sender.sent == []


async def test_where_no_run_can_be_begun_sending_says_so(tools):
    with pytest.raises(CallError, match="No run can be begun") as caught:
        await call(tools["sessions_send"], using=using(), sessionId="s2", message="hi")
    assert caught.value.code == "unavailable"


@pytest.fixture
def runtime(root):
    config = parse_config(
        {
            "agents": {
                "defaults": {"model": "p/m"},
                "entries": {"boxed": {"sandboxed": True, "model": "p/small"}},
            },
            "models": {"providers": {"p": {"baseUrl": "http://x", "apiKey": "sk-not-for-models"}}},
            "mcp": {"servers": {"s": {"command": "true", "env": {"KEY": "env-not-for-models"}}}},
            "channels": {"c": {"url": "http://c/sk-not-for-models", "secret": "channel-secret-16"}},
            "gateway": {"token": "gateway-token-0123456789"},
        }
    )
    return Runtime(config, Parts(workspace=root, load_plugins=False), Host())


def core(runtime, name):
    return next(each.tool for each in runtime.tools() if each.id == f"openclaw:core:{name}")


async def test_agents_list_shows_every_agent_and_which_one_this_is(runtime):
    main, boxed = {"id": "main", "model": "p/m"}, {"id": "boxed", "model": "p/small"}
    assert await call(core(runtime, "agents_list"), using=using(agent="boxed")) == {
        "agents": [
            {**main, "sandboxed": False, "current": False, "spawnable": False},
            {**boxed, "sandboxed": True, "current": True, "spawnable": False},
        ]
    }


async def test_agents_list_says_whom_a_child_may_run_as(root):
    """BEHAVIOURS 378, docs/swarm.md: the same agents that sessions_spawn takes, and no others."""
    entries = {
        "helper": {},
        "boss": {"subagents": {"allowAgents": ["helper"]}},
        "off": {"tools": {"swarm": {"enabled": False}}},
    }
    config = parse_config({"agents": {"entries": entries}, "tools": {"swarm": {"enabled": True}}})
    made = Runtime(config, Parts(workspace=root, load_plugins=False), Host())
    assert spawnable(await call(core(made, "agents_list"), using=using())) == []
    with_children(made)
    for agent, allowed in (("boss", ["helper", "boss"]), ("main", ["main"]), ("off", [])):
        told = await call(core(made, "agents_list"), using=using(agent=agent))
        assert spawnable(told) == allowed
        if allowed:
            assert allowed == list(made.swarming.swarm.rules(agent).allowed)


def spawnable(told):
    return [each["id"] for each in told["agents"] if each["spawnable"]]


async def test_openclaw_tells_its_owner_how_it_stands(runtime):
    got = await call(core(runtime, "openclaw"), using=using())
    assert (got["kind"], got["agents"]) == ("status", ["main", "boxed"])
    assert got["tools"] == len(runtime.tools())
    assert [each["name"] for each in got["servers"]] == ["s"]
    assert any(each["name"].startswith("gate.") for each in got["counts"])


async def test_openclaw_shows_the_config_with_every_secret_masked(runtime):
    tool = core(runtime, "openclaw")
    got = await call(tool, using=using(), action="config")
    for secret in ("not-for-models", "channel-secret", "gateway-token"):
        assert secret not in got["json"]
    assert json.loads(got["json"])["models"]["providers"]["p"]["apiKey"] == "[redacted]"
    got = await call(tool, using=using(), action="config", path="agents.entries.boxed.sandboxed")
    assert got["json"] == "true"
    with pytest.raises(CallError, match=r"There is: .*boxed"):
        await call(tool, using=using(), action="config", path="agents.entries.nobody")


@pytest.mark.parametrize(
    "more", [{"sandboxed": True}, {"sender": "somebody"}, {"channel": SENT_CHANNEL}]
)
async def test_openclaw_is_for_its_owner_only(runtime, more):
    with pytest.raises(CallError, match="for the owner") as caught:
        await call(core(runtime, "openclaw"), using=using(**more), action="config")
    assert (caught.value.code, caught.value.effect) == ("blocked", "none")
