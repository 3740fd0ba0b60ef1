"""Images from file to model, over real HTTP (issue part 4: native-vision `image`)."""

from contextlib import asynccontextmanager

import anyio
import pytest

from tests.pictures import png, text
from tests.sources.core.web import page, serving
from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

BUSY = Refusal(status=503, headers={"retry-after-ms": "1", "x-should-retry": "false"})
LOOK = tool_call("image", {"path": "a.png"}, id="c1")
QUICKJS = {"codeMode": {"enabled": True, "executor": "quickjs"}}
APIS = ["openai-chat", "openai-responses", "anthropic"]


@asynccontextmanager
async def models(
    tmp_path, first, second=(), *, sees="ab", apis=("openai-chat",) * 2, agents=None, **tools
):
    """Two models, one the other's stand-in; `sees` names those that take images."""
    (tmp_path / "a.png").write_bytes(png())
    async with (
        openai_server(ScriptedModel(first)) as one,
        openai_server(ScriptedModel(second)) as two,
    ):
        providers = {
            name: {
                "api": api,
                "apiKey": "k",
                "baseUrl": server.root_url if api == "anthropic" else server.base_url,
                "models": [{"id": "m", **({"input": ["text", "image"]} if name in sees else {})}],
            }
            for name, server, api in zip("ab", (one, two), apis, strict=True)
        }
        config = parse_config(
            {
                "models": {"providers": providers},
                "agents": {
                    "defaults": {"model": "a/m", "fallbacks": ["b/m"]},
                    **(agents or {}),
                },
                "tools": tools,
            }
        )
        sessions = MemorySessions()
        parts = Parts(workspace=tmp_path, sessions=sessions, sinks=(sessions,), load_plugins=False)
        runtime = Runtime(config, parts, Host())
        await runtime.start()

        async def ask(agent="main", **options):
            scope = runtime.scope(agent_id=agent, session_id=f"s-{agent}")
            with anyio.fail_after(30):
                turn = Turn(scope=scope, prompt="go", **options)
                return await converse(runtime, sessions, turn)

        try:
            yield ask, one.model, two.model, runtime
        finally:
            await runtime.aclose()


def shown(body):
    return [tool.get("function", tool)["name"] for tool in body.get("tools", [])]


@pytest.mark.parametrize("api", APIS)
async def test_a_model_that_sees_looks_at_a_file_in_code_mode(tmp_path, api):
    """rule 2.2: exec, wait and the direct-only `image`; enforcement on the wire (rule 2.6)."""
    apis = (api, "openai-chat")
    async with models(tmp_path, [LOOK, "a cat"], apis=apis, **QUICKJS) as (ask, one, _, _runtime):
        result = await ask()
        assert result.text == "a cat"
        assert shown(one.bodies[0]) == ["exec", "wait", "image"]
        assert text(png()) in str(one.bodies[1])


async def test_a_model_that_does_not_see_has_no_image_tool(tmp_path):
    async with models(tmp_path, [LOOK, "no"], sees="", **QUICKJS) as (ask, one, _, _runtime):
        result = await ask()
        assert shown(one.bodies[0]) == ["exec", "wait"]
        assert "unknown tool 'image'" in one.bodies[1]["messages"][-1]["content"]
        assert result.text == "no"


async def test_read_shows_an_image_to_a_model_that_calls_it_directly(tmp_path):
    """rule 7.5: the image variant of `read`."""
    look = tool_call("read", {"path": "a.png"}, id="c1")
    async with models(tmp_path, [look, "a cat"]) as (ask, one, _, _runtime):
        await ask()
        assert "image" in shown(one.bodies[0])
        tool, carrier = one.bodies[1]["messages"][-2:]
        assert tool["content"] == "[image/png, 2x1, 68 bytes]"
        assert carrier["content"][1]["image_url"]["url"].endswith(text(png()))


WEB = {"images": True, "fetch": {"allow": ["127.0.0.1"]}}
NO_ADDRESS = "image may not load addresses in this run: its tool policy does not allow web_fetch."


def look_at(url):
    return tool_call("image", {"url": url}, id="c1")


@pytest.mark.parametrize(
    "policy",
    [
        {"deny": ["group:web"]},
        {"deny": ["WEB_*"]},
        {"deny": ["openclaw:core:web_fetch"]},
        {"allow": ["group:fs"]},
        {"profile": "minimal", "alsoAllow": ["image"]},
        {"sandbox": {"tools": {"deny": ["web_fetch"]}}},
    ],
)
async def test_image_loads_no_address_where_policy_has_no_web_fetch(tmp_path, policy):
    """rule 2.1: what policy takes away is not to be had by way of another tool; files still are."""
    agents = {"entries": {"main": {"sandboxed": "sandbox" in policy}}}
    async with serving() as web:
        web.answers["/a"] = page(png(), "image/png")
        calls = [look_at(f"{web.url}/a"), LOOK, "a cat"]
        tools = {"web": WEB, **policy}
        async with models(tmp_path, calls, agents=agents, **tools) as (ask, one, _, _runtime):
            assert (await ask()).text == "a cat"
        assert web.asked == []
    refusal, seen = str(one.bodies[1]["messages"][-1]), str(one.bodies[2])
    assert NO_ADDRESS in refusal
    assert "or ask the operator to allow web_fetch (group:web)" in refusal
    assert text(png()) in seen
    (offered,) = [t["function"] for t in one.bodies[0]["tools"] if t["function"]["name"] == "image"]
    said = offered["parameters"]["properties"]["url"]["description"]
    assert said == "Not in this run: it may not load addresses."


async def test_one_agent_loads_addresses_and_another_does_not(tmp_path):
    """Policy is resolved for each run: nothing of one agent's tools is left with the next."""
    agents = {"entries": {"other": {"tools": {"deny": ["group:web"]}}}}
    async with serving() as web:
        web.answers["/a"] = page(png(), "image/png")
        calls = [look_at(f"{web.url}/a"), "a cat"] * 3
        async with models(tmp_path, calls, agents=agents, web=WEB) as (ask, one, _, _runtime):
            for agent in ("main", "other", "main"):
                await ask(agent=agent)
        assert len(web.asked) == 2
    assert [NO_ADDRESS in str(one.bodies[n]) for n in (1, 3, 5)] == [False, True, False]
    assert [text(png()) in str(one.bodies[n]) for n in (1, 3, 5)] == [True, False, True]


@pytest.mark.parametrize(
    ("rules", "loads"),
    [
        ([{"tool": "group:web", "decision": "deny", "reason": "no web"}], False),
        ([{"tool": "web_fetch", "decision": "ask", "reason": "no web"}], False),
        ([{"tool": "web_fetch", "decision": "deny", "arguments": {"url": "127"}}], False),
        ([{"tool": "web_fetch", "decision": "deny", "arguments": {"url": "elsewhere"}}], True),
        (
            [
                {"tool": "image", "decision": "allow"},
                {"tool": "web_fetch", "decision": "deny", "reason": "no web"},
            ],
            False,
        ),
        (
            [
                {"tool": "web_fetch", "decision": "allow"},
                {"tool": "image", "decision": "deny", "arguments": {"url": "127"}},
            ],
            False,
        ),
    ],
)
async def test_approval_rules_about_web_fetch_count_for_an_address_of_image(tmp_path, rules, loads):
    """PO-07: of the rule about `image` and the one about `web_fetch`, the stricter one decides."""
    async with serving() as web:
        web.answers["/a"] = page(png(), "image/png")
        calls = [look_at(f"{web.url}/a"), LOOK, "a cat"]
        tools = {"web": WEB, "approvals": {"rules": rules}}
        async with models(tmp_path, calls, **tools) as (ask, one, _, _runtime):
            await ask()
        assert len(web.asked) == (1 if loads else 0)
    assert ("was blocked before execution" in str(one.bodies[1])) is not loads
    assert text(png()) in str(one.bodies[2])


async def test_programs_never_have_it(tmp_path):
    """rule 4.4: direct-only tools are not in the catalog; a guessed name fails as unknown."""
    cell = tool_call(
        "exec",
        {
            "code": "const r = await read({path: 'a.png'});"
            "return [typeof image, catalog.all().some((t) => t.toolName === 'image'), r]"
        },
    )
    async with models(tmp_path, [cell, "ok"], **QUICKJS) as (ask, one, _, _runtime):
        await ask()
        said = one.bodies[1]["messages"][-1]["content"]
    assert '["undefined",false,{"kind":"image","path":"a.png","mimeType":"image/png"' in said
    assert text(png()) not in said


async def test_tool_search_shows_it_directly_and_does_not_find_it(tmp_path):
    """rule 10.3: direct-only tools are shown, and left out of the catalog."""
    find = tool_call("tool_search", {"query": "look at an image picture"}, id="c1")
    search = {"toolSearch": {"mode": "tools"}}
    async with models(tmp_path, [find, LOOK, "a cat"], **search) as (ask, one, _, _runtime):
        assert (await ask()).text == "a cat"
        assert "image" in shown(one.bodies[0])
        assert "openclaw:core:image" not in one.bodies[1]["messages"][-1]["content"]


async def test_a_fallback_that_does_not_see_reads_a_note(tmp_path):
    """rule 1.4: a fallback resolves on its own entry: no tool, and no image."""
    async with models(tmp_path, [LOOK, BUSY], ["I read"], sees="a") as (ask, one, two, _runtime):
        assert (await ask()).text == "I read"
        assert "image" in shown(one.bodies[0])
        assert "image" not in shown(two.bodies[0])
        last = two.bodies[0]["messages"][-1]
        assert last["role"] == "tool"
        assert last["content"].endswith(
            "[image image/png 68 bytes omitted: m does not take images]"
        )


async def test_a_fallback_that_sees_sees(tmp_path):
    apis = ("openai-chat", "anthropic")
    steps = ([LOOK, BUSY], ["I see"])
    async with models(tmp_path, *steps, apis=apis) as (ask, _, two, _runtime):
        assert (await ask()).text == "I see"
        (block,) = two.bodies[0]["messages"][-1]["content"]
        assert [part["type"] for part in block["content"]] == ["text", "image"]


async def test_the_record_of_the_call_has_no_bytes(tmp_path):
    async with models(tmp_path, [LOOK, "a cat"]) as (ask, _, _two, runtime):
        await ask()
        (node,) = await runtime.core_ports.sessions.tree("s-main")
        assert node.result["mimeType"] == "image/png"
        assert text(png()) not in str(node)


async def test_a_session_can_be_read_by_its_agent_without_the_bytes(tmp_path):
    read = tool_call("sessions_history", {}, id="c2")
    async with models(tmp_path, [LOOK, read, "ok"]) as (ask, one, _, _runtime):
        await ask()
        told = next(m for m in one.bodies[2]["messages"] if m.get("tool_call_id") == "c2")
    assert "[image image/png 68 bytes]" in told["content"]
    assert text(png()) not in told["content"]


async def test_the_web_is_off_unless_the_config_says_otherwise(tmp_path):
    async with models(tmp_path, ["ok"]) as (_, _one, _two, runtime):
        closed = next(t.tool for t in runtime.tools() if t.tool.name == "image")
    async with models(tmp_path, ["ok"], web={"images": True}) as (_, _one, _two, runtime):
        opened = next(t.tool for t in runtime.tools() if t.tool.name == "image")
    assert "url" not in closed.parameters["properties"]
    assert "url" in opened.parameters["properties"]


@pytest.mark.parametrize("kinds", [["image"], [], ["text", "video"], "image"])
def test_what_a_model_takes_is_checked(kinds):
    providers = {"a": {"models": [{"id": "m", "input": kinds}]}}
    with pytest.raises(ConfigError, match=r"models\.providers\.a\.models"):
        parse_config({"models": {"providers": providers}})
