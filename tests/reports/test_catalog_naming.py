"""Reports CN: names that a model, a program and a provider see."""

import re

import pytest

from tests.reports.rig import agent, cell, cells, named_server, raw
from toolcell import Host, ToolcellError, define_tool_plugin, tool
from toolcell.protocol.events import Diagnostic
from toolcell.providers.scripted import tool_call
from toolcell.sources.client import ClientDefinition, ClientSource
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio
PROVIDER_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


async def test_two_names_that_normalise_alike_stay_two_tools(catalog_guest):
    """CN-01, rule 4.7: the same in either order of registration."""
    colon, slash = raw("stock:get", result=1), raw("stock/get", result=2)
    maps = []
    for tools in ([colon, slash], [slash, colon]):
        async with cells(catalog_guest, tools=tools) as open_:
            code = """
            const said = {};
            for (const h of catalog.all()) said[h.toolName] = [h.callableName, await h({})];
            return said;
            """
            maps.append(await open_.value(code))
    assert maps[0] == maps[1]
    assert maps[0]["stock:get"][1] == 1
    assert maps[0]["stock/get"][1] == 2
    assert maps[0]["stock:get"][0] != maps[0]["stock/get"][0]


async def test_with_the_tools_api_both_ids_stay_and_no_shortcut_is_ambiguous():
    """CN-01, rule 4.7."""
    tools = [raw("stock:get", result=1), raw("stock/get", result=2)]
    async with cells(("quickjs", "tools"), tools=tools) as open_:
        code = """
        return [await tools.callValue("openclaw:core:stock:get", {}),
                await tools.callValue("openclaw:core:stock/get", {}), typeof tools.stock_get]
        """
        assert await open_.value(code) == [1, 2, "undefined"]


async def test_discovery_prints_names_that_can_be_called(catalog_guest):
    """CN-03, rule 5.3."""
    tools = [raw(name, result=name) for name in ("llm-task", "2fa.code", "class", "web_search")]
    mcp = {"my-server": named_server({"name": "do.it", "description": "Fetch the weather."})}
    async with cells(catalog_guest, tools=tools, mcp=mcp) as open_:
        pairs = await open_.value(
            "return catalog.all().map((h) => [h.toolName, h.callableName,"
            " typeof globalThis[h.callableName]])"
        )
        names = {tool: callable_ for tool, callable_, _ in pairs}
        assert {kind for *_, kind in pairs} == {"function"}
        assert names["llm-task"] == "llm_task"
        assert names["2fa.code"] == "tool_2fa_code"
        assert names["web_search"] == "web_search"
        assert names["class"].startswith("class_")
        (dotted,) = await open_.value(
            "return (await catalog.search('fetch the weather')).map((h) => h.callableName)"
        )
        assert dotted == "MCP.myServer.doIt"
        assert await open_.value(f"return typeof {dotted}") == "function"


RESERVED = ("delete", "await", "enum", "new")


async def test_mcp_tools_named_like_keywords_are_declared_and_callable(guest):
    """CN-04: each declared name exists and reaches the right tool."""
    server = named_server(*({"name": name, "description": f"{name} it."} for name in RESERVED))
    async with cells(guest, tools=[raw("own")], mcp={"fx": server}) as open_:
        declared = await open_.value('return await API.read("mcp/fx.d.ts")')
        names = [n for n in re.findall(r"function (\S+?)\(", declared) if n != "$api"]
        exported = dict(re.findall(r"export \{ (\S+) as (\S+) \}", declared))
        assert len(names) == len(RESERVED)
        assert not set(names) & set(RESERVED)
        reached = set()
        for name in names:
            path = f"MCP.fx[{exported.get(name, name)!r}]"
            reached.add(await open_.value(f"return (await {path}({{}})).structuredContent.name"))
    assert reached == set(RESERVED)


def status_plugin():
    @tool
    async def session_status() -> str:
        """The plugin's status."""
        return "plugin"

    @tool
    async def other_one() -> str:
        """Another tool of the plugin."""
        return "other"

    return define_tool_plugin(
        id="clash", name="Clash", description="Clashes.", tools=[session_status, other_one]
    )


@tool
async def session_status() -> str:
    """The core status."""
    return "core"


class Kept:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)

    def texts(self):
        return [event.message for event in self.events if isinstance(event, Diagnostic)]


async def test_a_plugin_with_a_core_tools_name_loses_it_and_nothing_else(guest):
    """CN-06, rule 4.7."""
    kept = Kept()
    tools = [session_status, status_plugin()]
    async with cells(guest, tools=tools, host=Host(sink=kept)) as open_:
        if open_.api == "catalog":
            code = (
                "return [await session_status({}), await other_one({}),"
                " catalog.all().filter((h) => h.toolName === 'session_status').length]"
            )
            assert await open_.value(code) == ["core", "other", 1]
            assert [t for t in kept.texts() if "clash" in t and "session_status" in t]
        else:
            code = (
                "return [await tools.callValue('openclaw:core:session_status', {}),"
                " await tools.callValue('openclaw:clash:session_status', {}),"
                " typeof tools.session_status, await tools.other_one({})]"
            )
            assert await open_.value(code) == ["core", "plugin", "undefined", "other"]


class Port:
    async def call(self, name, _arguments, _context):
        return ToolResult(details={"client": name})


def client(*names):
    definitions = [ClientDefinition(name=name, description="Search.") for name in names]
    return ClientSource("app", definitions, port=Port())


@tool
async def web_search() -> str:
    """Search the web."""
    return "core"


async def test_a_clients_tool_with_a_taken_name_is_refused_directly_and_wins_in_code_mode(tmp_path):
    """CN-07: nothing ran; the error names the tool."""
    async with agent(tmp_path, tools=[web_search]) as made:
        with pytest.raises(ToolcellError, match="web_search"):
            await made.turn("never", sources=(client("web_search"),))
        assert made.provider.bodies == []
    async with agent(tmp_path, tools=[web_search], enabled=True) as made:
        await made.turn(cell("return await web_search({})"), "ok", sources=(client("web_search"),))
        assert '"client":"web_search"' in made.results()[0]
    with pytest.raises(ToolcellError, match="web_search"):
        client("web_search", "web_search")


async def test_stray_whitespace_is_forgiven_and_an_empty_name_is_quoted(tmp_path):
    """CN-08."""
    steps = [
        tool_call(" exec ", {"code": "await yield_control(); return 1"}, id="a"),
        lambda request: tool_call("wait\n", {"runId": run_id(request)}, id="b"),
        tool_call("", {}, id="c"),
        "done",
    ]
    async with agent(tmp_path, enabled=True) as made:
        result = await made.turn(*steps)
        first, second, third = made.results()
    assert '"status":"waiting"' in first
    assert '"status":"completed"' in second
    assert "''" in third
    assert "echo" not in third
    assert result.text == "done"


def run_id(request):
    return re.search(r'"runId":"([^"]+)"', request.messages[-1].text).group(1)


ODD = ("orders.fetch-one", "ops/users list", "поиск", "ok_tool")


async def test_odd_mcp_names_are_made_safe_for_the_provider_and_routed_back(tmp_path):
    """CN-09: direct mode."""
    kept = Kept()
    mcp = {"fx": named_server(*({"name": name, "description": name} for name in ODD))}
    async with agent(tmp_path, tools=[], mcp=mcp, host=Host(sink=kept)) as made:
        await made.turn("nothing")
        names = made.shown()
        assert len(set(names)) == len(ODD)
        assert all(PROVIDER_NAME.match(name) for name in names)
        assert "fx__ok_tool" in names
        calls = [tool_call(name, {}, id=f"c{n}") for n, name in enumerate(names)]
        await made.turn(calls, "done")
        reached = {odd for odd in ODD for text in made.results() if f'"{odd}"' in text}
    assert reached == set(ODD)
    told = "\n".join(kept.texts())
    for name in ODD[:3]:
        assert name in told


async def test_very_long_names_are_shortened_apart_and_the_same_each_time(tmp_path):
    """CN-10."""
    start = "a" * 70
    long = [{"name": start + end, "description": "Long."} for end in ("one", "two")]
    mcp = {"s" * 40: named_server(*long)}
    seen = []
    for _ in range(2):
        async with agent(tmp_path, tools=[], mcp=mcp) as made:
            await made.turn("nothing")
            seen.append(made.shown())
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 2
    assert all(len(name) <= 64 for name in seen[0])
    async with cells(tools=[raw("own")], mcp=mcp) as open_:
        code = """
        const hits = await catalog.search("Long");
        const said = [];
        for (const h of hits) said.push([h.callableName, (await h({})).structuredContent.name]);
        return said;
        """
        said = await open_.value(code)
    assert len({path for path, _ in said}) == 2
    assert {name for _, name in said} == {each["name"] for each in long}
