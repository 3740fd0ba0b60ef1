"""Tool lists as servers send them: odd entries, repeated names, filters."""

import time
from typing import Any

from toolcell.base import jsontext
from toolcell.catalog.names import provider_names
from toolcell.sources.mcp.filters import _never
from toolcell.sources.mcp.listing import ANY_OBJECT, Listing, read_listing
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.tools import listed_tool

OBJECT = {"type": "object"}


def listing(raw: list[Any], server: str = "fx", **settings: Any) -> Listing:
    return read_listing(server, McpServerSettings(command="x", **settings), raw)


def names(found: Listing) -> list[str]:
    return [tool.name for tool in found.tools]


def tool(name: str, schema: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema, **more}


def test_a_bad_schema_costs_only_its_own_tool_its_schema() -> None:
    """DESIGN decisions, rule 4.3: kept with `input: "unknown"`, the reason for doctor."""
    found = listing(
        [tool("ok"), tool("bad", {"type": "objekt"}), {"name": "none"}, tool("t", True)]
    )
    assert names(found) == ["ok", "bad", "none", "t"]
    assert [each.parameters for each in found.tools[1:]] == [ANY_OBJECT] * 3
    assert [(each.tool, each.outcome) for each in found.oddities] == [
        ("bad", "kept"),
        ("none", "kept"),
        ("t", "kept"),
    ]
    assert "objekt" in found.oddities[0].reason


def test_a_schema_that_refers_to_itself_is_kept_whole() -> None:
    """TS-03: the server stays with all tools and the full schema keeps its `$ref`."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    anything = {"anyOf": [{"type": "object", "additionalProperties": {"$ref": "#/$defs/Any"}}]}
    schema = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": node, "Any": anything},
    }
    found = listing([tool("tree", schema, outputSchema=schema)])
    assert found.oddities == ()
    assert jsontext.loads(jsontext.dumps(found.tools[0].parameters)) == schema


def test_huge_and_deep_schemas_are_judged_quickly_and_alone() -> None:
    """TS-06: under a second each, no RecursionError, other tools unaffected."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        deep = {"type": "object", "properties": {"p": deep}}
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}
    loop = {
        "type": "object",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    }
    for schema in (deep, wide, loop):
        began = time.perf_counter()
        found = listing([tool("odd", schema), tool("ok")])
        assert time.perf_counter() - began < 1.0
        assert names(found) == ["odd", "ok"]
    assert "128 levels" in listing([tool("odd", deep)]).oddities[0].reason


def test_boolean_sub_schemas_are_fine() -> None:
    """TS-09: they never make a server fail."""
    found = listing([tool("b", {**OBJECT, "properties": {"payload": True, "gone": False}})])
    assert found.oddities == ()
    assert found.tools[0].parameters["properties"] == {"payload": True, "gone": False}


def test_a_schema_never_makes_the_host_fetch_anything() -> None:
    """rule 4.9: remote metadata is untrusted; an address in it is not followed."""
    began = time.perf_counter()
    found = listing(
        [
            tool("ref", {**OBJECT, "properties": {"a": {"$ref": "http://192.0.2.1/x.json"}}}),
            tool("draft", {**OBJECT, "$schema": "http://192.0.2.1/draft"}),
        ]
    )
    assert time.perf_counter() - began < 1.0
    assert [each.reason[:40] for each in found.oddities] == [
        "inputSchema refers to another document: "
    ]


def test_of_names_that_differ_in_white_space_the_plain_one_wins() -> None:
    """MC-03: one canonical `get` and a diagnostic for each of the others."""
    first = {**OBJECT, "properties": {"a": {}}}
    found = listing([tool(" get "), tool("get", first), tool("get", {**OBJECT, "required": ["b"]})])
    assert names(found) == ["get"]
    assert found.tools[0].parameters == first
    assert found.tools[0].wire_name == "get"
    assert [each.outcome for each in found.oddities] == ["rejected", "rejected"]
    alone = listing([tool(" get ")])
    assert (names(alone), alone.tools[0].wire_name) == (["get"], " get ")


def test_names_outside_the_provider_alphabet_keep_their_raw_form() -> None:
    """CN-09, CN-10: the call is routed with the original name, however long or odd it is."""
    raw = ["orders.fetch-one", "ops/users list", "поиск", "ok_tool", "x" * 80 + "a", "x" * 80 + "b"]
    found = listing([tool(name) for name in raw], server="s" * 40)
    assert [each.wire_name for each in found.tools] == raw
    assert found.oddities == ()


def test_entries_without_a_usable_name_are_left_out_and_reported() -> None:
    """Issue 2, bad input: a server that lies about its list loses only that entry."""
    found = listing(["x", {}, tool(""), tool("   "), tool("n" * 600), tool("$x"), tool("ok"), None])
    assert names(found) == ["ok"]
    assert len(found.oddities) == 7
    assert all(each.outcome == "rejected" for each in found.oddities)


def test_descriptions_lose_control_and_direction_characters() -> None:
    """SE-06, rule 4.9: nothing that hides or reorders text gets into metadata."""
    text = "a\x00b\x1b[31m\u202ec\u2066d\nline\U000e0041 \u200f" + "y" * 20_000
    found = listing([tool("t", description=text, title="T\nitle\x07", annotations={"title": "no"})])
    shown = found.tools[0].description
    assert shown.startswith("ab[31mcd\nline yyy")
    assert len(shown) <= 16_384
    assert found.tools[0].title == "T itle"


def test_filters_take_raw_names_globs_and_shown_names() -> None:
    """MC-12: all three forms keep exactly that tool, and an alias catches no namesake."""
    raw = [tool("read.page"), tool("write"), tool("docs__read-page")]
    for pattern in ("docs__read-page", "docs__read_page", "read.page", "read*"):
        assert names(listing(raw, "docs", include=(pattern,))) == ["read.page"], pattern
    left = listing(raw, "docs", exclude=("docs__read-page",))
    assert names(left) == ["write", "docs__read-page"]
    assert [(e.tool, e.outcome) for e in left.oddities] == [("read.page", "filtered")]
    assert names(listing(raw, "docs", include=())) == []


def test_the_provider_name_of_a_tool_is_a_filter_too() -> None:
    """MC-12: the name a listing shows, hash included, can be copied into the config."""
    raw = [tool("read.page"), tool("write")]
    sourced = [listed_tool("docs", each, _never) for each in listing(raw, "docs").tools]
    shown = provider_names(sourced).by_id["mcp:docs:read.page"]
    assert names(listing(raw, "docs", include=(shown,))) == ["read.page"]


def test_only_so_many_tools_are_published() -> None:
    """MC-11: the 129th of 130 is not there."""
    found = listing([tool(f"t{n:03}") for n in range(130)], max_tools=128)
    assert len(found.tools) == 128
    assert [each.tool for each in found.oddities] == ["t128", "t129"]


def test_a_thousand_tools_are_read_in_no_time() -> None:
    """Issue 2, bad input: a server that lists 1,000 tools."""
    schema = {**OBJECT, "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}
    began = time.perf_counter()
    found = listing([tool(f"t{n}", schema) for n in range(1000)], include=("t*",))
    assert len(found.tools) == 1000
    assert time.perf_counter() - began < 1.5
