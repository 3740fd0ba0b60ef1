"""What the session's record answers about tools."""

import json

import anyio
import pytest

from tests.toolsearch.kit import Fixed, Told, client, core, mcp, plugin, schema
from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.cli.main import run as toolcell
from toolcell.config.parse import parse_config
from toolcell.providers.scripted import tool_call
from toolcell.sessions.store import SessionStore
from toolcell.sessions.tool_use import tool_use
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


async def session(path, steps, mode, *, told, instructions=None):
    """Run one turn with these steps of the model; returns the trace and the model's requests."""
    tools = [
        core(told, "alpha", "The first letter", schema(x="integer")),
        plugin(told, "fake_create_ticket", "Create a ticket", owner="fake"),
        mcp(told, "far", "Something far away"),
        *(core(told, f"filler_{i}") for i in range(20)),
    ]
    if mode != "directory":
        tools.append(client(told, "mine", "Something of the client"))
    async with openai_server(ScriptedModel(steps)) as server, SessionStore(path) as store:
        config = parse_config(
            {
                "models": {"providers": {"a": {"baseUrl": server.base_url}}},
                "agents": {"defaults": {"model": "a/m", "systemPrompt": "Be brief."}},
                "tools": {"toolSearch": False if mode is None else {"mode": mode}},
            }
        )
        parts = Parts(sources=(Fixed(tools),), sinks=(store,), load_plugins=False)
        runtime = Runtime(config, parts, Host())
        await runtime.start()
        try:
            scope = runtime.scope(session_id="s1")
            turn = Turn(scope=scope, prompt="go on", instructions=instructions)
            with anyio.fail_after(30):
                result = await converse(runtime, store, turn)
            assert result.status == "completed", result.error
        finally:
            await runtime.aclose()
        await store.flush()
        return await store.trace("s1"), server.model.bodies


STRUCTURED = [
    [
        tool_call("tool_search", {"queries": [{"query": "ticket"}, {"query": "far away"}]}),
        tool_call("tool_describe", {"id": "mcp:fx:far"}),
    ],
    [
        tool_call("tool_call", {"id": "openclaw:fake:fake_create_ticket", "args": {"a": 1}}),
        tool_call("tool_call", {"id": "mcp:fx:far", "args": {}}),
    ],
    [tool_call("tool_call", {"id": "client:app:mine", "args": {}})],
    "done",
]


async def test_the_record_answers_the_four_questions(tmp_path):
    """rule 10.7: schemas up front, searches and describes, the final tools, their sources."""
    told = Told()
    trace, bodies = await session(tmp_path / "s.db", STRUCTURED, "tools", told=told)
    (run,) = tool_use(trace)["runs"]
    assert run["mode"] == "tools"
    assert run["toolsUpFront"] == len(bodies[0]["tools"]) == 3
    assert (run["searches"], run["describes"]) == (2, 1)
    assert run["calls"] == [
        {
            "tool": "openclaw:fake:fake_create_ticket",
            "source": "openclaw",
            "status": "completed",
            "through": "tool_call",
        },
        {
            "tool": "mcp:fx:far",
            "source": "mcp",
            "status": "completed",
            "through": "tool_call",
        },
        {
            "tool": "client:app:mine",
            "source": "client",
            "status": "completed",
            "through": "tool_call",
        },
    ]
    assert run["catalogSize"] == 24
    assert run["sources"] == {"openclaw": 22, "mcp": 1, "client": 1}
    assert run["requestBytes"] > 0
    assert run["toolBytes"] > 0
    assert run["promptBytes"] == len("Be brief.")


async def test_a_body_in_code_mode_answers_them_too(tmp_path):
    """rule 10.7, rule 10.2."""
    code = """
      const [hit] = await openclaw.tools.search("ticket");
      await openclaw.tools.describe(hit.id);
      return await openclaw.tools.call(hit.id, {a: 1});
    """
    steps = [[tool_call("tool_search_code", {"code": code})], "done"]
    told = Told()
    trace, bodies = await session(tmp_path / "s.db", steps, "code", told=told)
    (run,) = tool_use(trace)["runs"]
    assert (run["mode"], run["toolsUpFront"], run["searches"], run["describes"]) == (
        "code",
        1,
        1,
        1,
    )
    assert [(c["tool"], c["through"]) for c in run["calls"]] == [
        ("openclaw:fake:fake_create_ticket", "tool_search_code")
    ]
    assert '"a":1' in bodies[1]["messages"][-1]["content"]


async def test_the_directory_stands_in_the_system_prompt_behind_the_agents_own(tmp_path):
    """rule 10.4, PP-07: equal in every request of the run; a hidden name is called directly."""
    steps = [[tool_call("alpha", {"x": 1})], "done"]
    told = Told()
    trace, bodies = await session(
        tmp_path / "s.db", steps, "directory", told=told, instructions="And kind."
    )
    systems = [body["messages"][0]["content"] for body in bodies]
    assert systems[0].startswith("Be brief.\n\nAnd kind.\n\nAvailable deferred-schema tools:\n")
    assert systems[0] == systems[1]
    assert bodies[0]["tools"] == bodies[1]["tools"]
    assert told.calls == [("alpha", {"x": 1})]
    (run,) = tool_use(trace)["runs"]
    assert run["calls"] == [
        {"tool": "openclaw:core:alpha", "source": "openclaw", "status": "completed"}
    ]
    assert run["promptBytes"] == len(systems[0].encode())


async def test_direct_runs_are_told_apart(tmp_path):
    """rule 10.7: what it is compared with."""
    told = Told()
    steps = [[tool_call("alpha", {"x": 1})], "done"]
    trace, bodies = await session(tmp_path / "s.db", steps, None, told=told)
    (run,) = tool_use(trace)["runs"]
    assert run["mode"] is None
    assert run["toolsUpFront"] == len(bodies[0]["tools"]) == 24
    assert [call["tool"] for call in run["calls"]] == ["openclaw:core:alpha"]


async def test_control_calls_survive_in_the_history_and_nested_ones_do_not(tmp_path):
    """BEHAVIOURS 357, 358, rule 8.3."""
    told = Told()
    trace, _ = await session(tmp_path / "s.db", STRUCTURED, "tools", told=told)
    messages = [r.data()["message"] for r in trace.records if r.type == "message"]
    asked = [call["name"] for m in messages for call in m.get("toolCalls", ())]
    assert asked == [
        "tool_search",
        "tool_describe",
        "tool_call",
        "tool_call",
        "tool_call",
    ]
    assert "fake_create_ticket" not in asked


def test_the_command_line_shows_it(tmp_path, monkeypatch, capsys):
    """rule 10.7: `toolcell sessions show --tools`."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)

    async def prepare():
        await session(tmp_path / "sessions.db", STRUCTURED, "tools", told=Told())

    anyio.run(prepare)
    capsys.readouterr()
    assert toolcell(("sessions", "show", "s1", "--tools")) == 0
    shown = capsys.readouterr().out
    assert "schemas up front: 3, " in shown
    assert "searches: 2, describes: 1" in shown
    assert "called mcp:fx:far (source mcp) through tool_call" in shown
    assert toolcell(("sessions", "show", "s1", "--tools", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["mode"] == "tools"
