"""Reports PP: what a provider is sent."""

import pytest

from tests.reports.rig import agent, cells, named_server, obj, raw
from toolcell import tool
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio


@tool(catalog_mode="direct-only")
async def message(text: str) -> str:
    """Deliver a message."""
    return text


@tool(catalog_mode="direct-only")
async def view_image(path: str) -> str:
    """Look at an image."""
    return path


async def test_direct_only_tools_stay_in_the_payload_and_out_of_the_catalog(tmp_path):
    """PP-02, rule 2.2."""
    many = [raw(f"normal_{n}", result=n) for n in range(20)]
    mcp = {"fx": named_server({"name": "view_image"})}
    tools = [message, view_image, *many]
    async with agent(tmp_path, tools=tools, mcp=mcp, enabled=True) as made:
        listing = "return catalog.all().map((h) => h.toolName).sort()"
        await made.turn(tool_call("exec", {"code": listing}), "done")
        assert made.shown() == ["exec", "wait", "message", "view_image"]
        said = made.results()[0]
    assert "normal_19" in said
    assert '"message"' not in said.partition("telemetry")[0]
    assert '"view_image"' not in said.partition("telemetry")[0]


async def test_a_root_union_is_flattened_for_the_wire_and_kept_for_checks(tmp_path):
    """PP-03."""
    one = {**obj(id={"type": "string"}, kind={"const": "a"}), "required": ["id", "kind"]}
    two = {**obj(name={"type": "string"}, kind={"const": "b"}), "required": ["name", "kind"]}
    root = {"type": "object", "oneOf": [one, two]}
    mcp = {"fx": named_server({"name": "either", "inputSchema": root})}
    async with agent(tmp_path, tools=[], mcp=mcp) as made:
        await made.turn(
            tool_call("fx__either", {"kind": "a"}, id="bad"),
            tool_call("fx__either", {"kind": "b", "name": "n"}, id="good"),
            "done",
        )
        sent = made.definition("fx__either")["parameters"]
        _, good = made.results()
    assert sent["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & set(sent)
    assert set(sent["properties"]) == {"id", "name", "kind"}
    assert sent.get("required", []) in ([], ["kind"])
    assert '"n"' in good
    async with cells(tools=[raw("own", root)]) as open_:
        described = await open_.value("return (await catalog.all()[0].describe()).parameters")
        assert described == root


async def test_missing_properties_and_items_are_filled_in_and_nothing_else(tmp_path):
    """PP-05."""
    bare = raw("bare", {"type": "object"}, result="ran")
    listed = raw("listed", obj(a={"type": "array"}))
    async with agent(tmp_path, tools=[bare, listed]) as made:
        await made.turn(tool_call("bare", {}), "done")
        assert made.definition("bare")["parameters"] == {"type": "object", "properties": {}}
        sent = made.definition("listed")["parameters"]
        assert sent == obj(a={"type": "array", "items": {}})
        assert "ran" in made.results()[0]


async def test_mcp_is_mentioned_only_where_there_is_a_server(guest):
    """PP-09, rule 4.10."""
    async with cells(guest) as open_:
        description = open_.cm.definitions()[0]["function"]["description"]
        assert "MCP." not in description
        assert "API.list" not in description
        assert await open_.value('return await API.list("mcp")') == []
    async with cells(guest, mcp={"fx": named_server({"name": "one"})}) as open_:
        description = open_.cm.definitions()[0]["function"]["description"]
        assert "MCP." in description
        assert "API" in description
        plain, slashed = await open_.value('return [await API.list("mcp"), await API.list("mcp/")]')
        assert plain == slashed
        assert [each["path"] for each in plain] == ["mcp/index.d.ts", "mcp/fx.d.ts"]


async def test_a_hundred_remote_tools_cost_the_description_next_to_nothing(guest):
    """PP-10, rule 4.6: and all can be reached."""
    names = [f"remote_{n:03}" for n in range(100)]
    texts = []
    for mcp in ({}, {"fx": named_server(*({"name": name} for name in names))}):
        async with cells(guest, mcp=mcp) as open_:
            texts.append(open_.cm.definitions()[0]["function"]["description"])
            if mcp:
                assert await open_.value("return Object.keys(MCP.fx).length") == 100
                code = "return (await MCP.fx.remote099({})).structuredContent.name"
                assert await open_.value(code) == "remote_099"
    assert abs(len(texts[1]) - len(texts[0])) < 600
    assert "remote" not in texts[1].replace("remote servers", "")
