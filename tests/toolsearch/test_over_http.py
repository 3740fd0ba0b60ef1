"""Tool Search through the gateway, and the examples of the Tool Search page's configuration."""

import json

import anyio
import openai
import pytest

from tests.gateway.kit import config, gateway, tool
from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.cli.main import run as toolcell
from toolcell.config.load import parse_json5
from toolcell.config.parse import parse_config
from toolcell.config.resolve import tool_search_options
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.surface.definitions import definitions

pytestmark = pytest.mark.anyio


def client_tool(name):
    return {
        "type": "function",
        "function": {"name": name, "description": "Mine.", "parameters": {"type": "object"}},
    }


@pytest.mark.parametrize("given", [["web_search"], ["mine", "mine"]])
async def test_a_client_tool_with_a_taken_name_is_a_bad_request(tmp_path, given):
    """CN-07, BEHAVIOURS 354: before the run, with the name."""
    settings = config(tmp_path, tools={"toolSearch": {"mode": "directory"}})
    async with gateway(settings, ["never"], tools=[tool("web_search")]) as g:
        with pytest.raises(openai.BadRequestError) as refused:
            await g.chat(tools=[client_tool(name) for name in given])
        assert refused.value.body["type"] == "invalid_request_error"
        assert given[-1] in refused.value.body["message"]
        assert g.model.bodies == []


async def test_client_tools_stay_direct_beside_the_directory(tmp_path):
    """rule 10.4: the model sees them, and the directory in the system prompt."""
    settings = config(tmp_path, tools={"toolSearch": {"mode": "directory"}})
    async with gateway(settings, ["hello"], tools=[tool("hidden")]) as g:
        await g.chat(tools=[client_tool("select_file")])
        assert g.shown() == ["tool_search", "tool_describe", "tool_call", "select_file"]
        system = g.sent()["messages"][0]
        assert system["role"] == "system"
        assert "- hidden (core): Does hidden." in system["content"]


async def test_tool_search_answers_over_http(tmp_path):
    """rule 10.3, rule 10.5."""
    steps = [
        tool_call("tool_search", {"query": "does hidden"}),
        tool_call("tool_call", {"id": "openclaw:core:hidden", "args": {"a": 1}}),
        "done",
    ]
    settings = config(tmp_path, tools={"toolSearch": {"mode": "tools"}})
    async with gateway(settings, steps, tools=[tool("hidden")]) as g:
        reply = await g.chat()
        assert reply.choices[0].message.content == "done"
        results = [m["content"] for m in g.sent()["messages"] if m["role"] == "tool"]
        assert json.loads(results[0])[0]["id"] == "openclaw:core:hidden"
        assert '"details":{"a":1}' in results[1]


async def test_the_mode_may_change_between_turns():
    """rule 10.1: what was said before stays in the conversation, the controls are the new ones."""
    sessions = MemorySessions()
    shown = []
    for mode in ("tools", "directory", "code", None):
        provider = ScriptedProvider([tool_call("tool_search", {"query": "hidden"}), "done"])
        tree = {"tools": {"toolSearch": False if mode is None else {"mode": mode}}}
        parts = Parts(tools=[tool("hidden")], sinks=(sessions,), load_plugins=False)
        runtime = Runtime(parse_config(tree), parts, Host())
        runtime.providers.add("s", provider)
        await runtime.start()
        try:
            with anyio.fail_after(30):
                turn = Turn(scope=runtime.scope(session_id="one"), prompt="go", model="s/m")
                result = await converse(runtime, sessions, turn)
            assert result.status == "completed", result.error
        finally:
            await runtime.aclose()
        body = provider.bodies[0]
        shown.append([each["function"]["name"] for each in body["tools"]])
        assert sum(m["role"] == "user" for m in body["messages"]) == len(shown)
    structured = ["tool_search", "tool_describe", "tool_call"]
    assert shown == [structured, structured, ["tool_search_code"], ["hidden"]]


@pytest.mark.parametrize("mode", ["tools", "directory", "code"])
async def test_nothing_is_deferred_at_the_provider(mode):
    """PP-06: hidden tools are not sent at all, so no endpoint can refuse how they are marked."""
    tree = {"tools": {"toolSearch": {"mode": mode}}}
    parts = Parts(tools=[tool(f"t{i}") for i in range(12)], load_plugins=False)
    runtime = Runtime(parse_config(tree), parts, Host())
    await runtime.start()
    try:
        plan = runtime.run(runtime.scope()).surface().plan
        sent = definitions(plan, "anthropic")
    finally:
        await runtime.aclose()
    assert sent
    assert all(set(each) == {"name", "description", "input_schema"} for each in sent)


PAGE = {
    "{tools: {toolSearch: true}}": (True, "code"),
    '{tools: {toolSearch: {mode: "tools"}}}': (True, "tools"),
    '{tools: {toolSearch: {mode: "directory"}}}': (True, "directory"),
    "{tools: {toolSearch: false}}": (False, "code"),
}


@pytest.mark.parametrize("text", PAGE)
def test_the_configurations_of_the_page(text):
    """rule 10.1: as they stand in the page."""
    options = tool_search_options(parse_config(parse_json5(text, origin="page")), "main")
    assert (options.enabled, options.mode) == PAGE[text]


def test_the_tuned_configuration_of_the_page():
    """rule 10.1: its values are the defaults."""
    text = """{
      tools: {
        toolSearch: {
          mode: "code",
          codeTimeoutMs: 10000,
          searchDefaultLimit: 8,
          maxSearchLimit: 20,
        },
      },
    }"""
    tuned = tool_search_options(parse_config(parse_json5(text, origin="page")), "main")
    plain = tool_search_options(parse_config({"tools": {"toolSearch": True}}), "main")
    assert tuned == plain


def test_the_command_of_the_page_turns_it_on(tmp_path, monkeypatch, capsys):
    """rule 10.1: `toolcell config set tools.toolSearch true`."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    assert toolcell(("config", "set", "tools.toolSearch", "true")) == 0
    capsys.readouterr()
    text = (tmp_path / "toolcell.json").read_text()
    options = tool_search_options(parse_config(parse_json5(text, origin="file")), "main")
    assert (options.enabled, options.mode) == (True, "code")


def test_doctor_says_whether_the_isolation_holds(tmp_path, monkeypatch, capsys):
    """rule 10.2: an operator can ask before relying on it."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    toolcell(("doctor", "--json"))
    findings = json.loads(capsys.readouterr().out)
    (found,) = [each for each in findings if each["subject"].startswith("tool search code")]
    assert found["state"] == "ok"
    assert found["text"]
