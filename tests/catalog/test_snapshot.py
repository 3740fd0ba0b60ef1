"""The published catalog: what is in it, in which order, and how it is looked up."""

import random
import time

import pytest

from tests.catalog.made import client, core, mcp, operation, params, plugin
from toolcell.catalog.entry import TOO_LARGE
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.tools.tool import Group, SourcedTool, ToolKind

CLOSED = {
    "type": "object",
    "properties": {"id": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def mixed() -> list[SourcedTool]:
    bundled = SourcedTool(
        tool=core("web").tool, source="openclaw", owner="browser", group=Group.BUNDLED
    )
    return [
        client("ask"),
        mcp("fx", "delete"),
        operation("fx", "resources.list"),
        plugin("zeta", "z"),
        plugin("alpha", "a"),
        bundled,
        core("write"),
        core("read"),
        core("exec", kind=ToolKind.CONTROL),
        core("computer", catalog_mode="direct-only"),
    ]


def test_entries_stand_in_the_order_of_groups_then_ids():
    """rule 4.1: core, bundled, external, MCP, client; within a group by id."""
    assert [entry.id for entry in CatalogSnapshot.build(mixed()).entries] == [
        "openclaw:core:read",
        "openclaw:core:write",
        "openclaw:browser:web",
        "openclaw:alpha:a",
        "openclaw:zeta:z",
        "mcp:fx:delete",
        "client:app:ask",
    ]


def test_controls_direct_only_tools_and_operations_are_not_entries():
    """rule 4.4: left out of entries, counts and search; operations stay callable."""
    snapshot = CatalogSnapshot.build(mixed())
    assert snapshot.get("openclaw:core:exec") is None
    assert snapshot.get("openclaw:core:computer") is None
    assert snapshot.get("mcp:fx:resources.list") is None
    assert snapshot.sources() == {"openclaw": 5, "mcp": 1, "client": 1}
    assert snapshot.search("resources list", limit=8) == ()
    (found,) = snapshot.operations
    assert found.guest_name == "MCP.fx.resources.list"
    assert snapshot.by_mcp_path("fx", "resources.list") is found


def test_an_operation_does_not_take_the_name_of_a_tool():
    """BEHAVIOURS 225: fixed paths for operations beside tools of any name."""
    snapshot = CatalogSnapshot.build(
        [mcp("fx", "resources"), mcp("fx", "resources.list"), operation("fx", "resources.list")]
    )
    assert [entry.guest_name for entry in snapshot.entries] == [
        "MCP.fx.resources2",
        "MCP.fx.resourcesList",
    ]
    assert snapshot.operations[0].guest_name == "MCP.fx.resources.list"


def test_the_shell_tool_keeps_its_bare_name():
    """rule 2.7: shell `exec` is cataloged as the bare global `exec`."""
    assert CatalogSnapshot.build([core("exec")]).by_callable("exec") is not None


def test_names_and_paths_agree_with_the_lookups():
    """CN-03, BEHAVIOURS 179: what is printed is what is found."""
    tools = [*mixed(), core("llm-task"), core("class"), mcp("my-server", "do.it")]
    snapshot = CatalogSnapshot.build(tools)
    for entry in snapshot.entries:
        assert snapshot.get(entry.id) is entry
        if entry.mcp_path is None:
            assert entry.callable_name is not None
            assert snapshot.by_callable(entry.callable_name) is entry
            assert entry.api_path == f"tools/{entry.callable_name}.d.ts"
        else:
            assert snapshot.by_mcp_path(*entry.mcp_path) is entry
            assert entry.api_path == f"mcp/{entry.mcp_path[0]}.d.ts"
    assert snapshot.get("mcp:my-server:do.it").guest_name == "MCP.myServer.doIt"


def test_reserved_words_as_mcp_tools_have_distinct_methods():
    """CN-04."""
    tools = [mcp("fx", name) for name in ("delete", "await", "enum", "new")]
    names = {entry.name: entry.mcp_path for entry in CatalogSnapshot.build(tools).entries}
    assert names == {
        "await": ("fx", "await2"),
        "delete": ("fx", "delete2"),
        "enum": ("fx", "enum2"),
        "new": ("fx", "new2"),
    }


def test_servers_are_listed_with_identifier_raw_name_and_tools():
    """BEHAVIOURS 230."""
    tools = [mcp("chrome-devtools", "take_snapshot"), operation("only-ops", "prompts.list")]
    first, second = CatalogSnapshot.build(tools).servers
    assert (first.identifier, first.name, len(first.entries)) == (
        "chromeDevtools",
        "chrome-devtools",
        1,
    )
    assert (second.identifier, second.entries, len(second.operations)) == ("onlyOps", (), 1)


def test_mcp_descriptions_are_bounded_without_splitting_a_pair():
    """rule 4.9, SE-06: 512 UTF-16 units."""
    text = "x" * 511 + "😀" + "y" * 10_000
    (entry,) = CatalogSnapshot.build([mcp("fx", "t", text)]).entries
    assert entry.description == "x" * 511
    (local,) = CatalogSnapshot.build([core("t", text)]).entries
    assert local.description == text


def test_only_trusted_tools_have_hints():
    """rule 4.3, rule 7.2, rule 7.3: MCP and client entries are `unknown`, whatever they declare."""
    schemas = {"parameters": params("value"), "output_schema": CLOSED}
    tools = [core("a", **schemas), mcp("fx", "b", **schemas), client("c", **schemas)]
    found = [(e.input, e.output) for e in CatalogSnapshot.build(tools).entries]
    assert found == [
        ("{ value?: string }", "{ id: string }"),
        ("unknown", None),
        ("unknown", None),
    ]


def test_a_compact_entry_has_no_schema_and_a_described_one_has():
    """rule 4.2, BEHAVIOURS 152, BEHAVIOURS 305."""
    tool = plugin("p", "a", "Does a.", parameters=params("x"), output_schema=CLOSED, label="A")
    (entry,) = CatalogSnapshot.build([tool]).entries
    assert entry.compact() == {
        "id": "openclaw:p:a",
        "name": "a",
        "label": "A",
        "description": "Does a.",
        "source": "openclaw",
        "sourceName": "p",
        "input": "{ x?: string }",
        "output": "{ id: string }",
    }
    assert entry.described()["parameters"] == params("x")
    assert entry.described()["outputSchema"] == CLOSED


def test_equal_sets_give_equal_snapshots_in_any_order():
    """rule 4.1, BEHAVIOURS 54: ids, names and key do not depend on the order of registration."""
    tools = [*mixed(), core("foo-bar"), plugin("p", "foo.bar"), plugin("p", "read")]
    expected = CatalogSnapshot.build(tools)
    shape = [(e.id, e.callable_name, e.mcp_path) for e in expected.entries]
    for seed in range(10):
        random.Random(seed).shuffle(tools)
        other = CatalogSnapshot.build(tools)
        assert [(e.id, e.callable_name, e.mcp_path) for e in other.entries] == shape
        assert other.key == expected.key
        assert other.diagnostics == expected.diagnostics


def test_the_key_follows_the_content_and_not_the_objects():
    """rule 4.5, BEHAVIOURS 318: an edited description or schema is another snapshot."""
    key = CatalogSnapshot.build([core("a", "Does a.", parameters=params("x"))]).key
    assert CatalogSnapshot.build([core("a", "Does a.", parameters=params("x"))]).key == key
    assert CatalogSnapshot.build([core("a", "Does b.", parameters=params("x"))]).key != key
    assert CatalogSnapshot.build([core("a", "Does a.", parameters=params("y"))]).key != key
    assert CatalogSnapshot.build([mcp("a", "a", "Does a.", parameters=params("x"))]).key != key


def test_two_tools_with_one_id_leave_one_and_a_diagnostic_in_any_order():
    """rule 4.1: ids are unique; the loser is named."""
    tools = [mcp("fx", "t", "one"), mcp("fx", "t", "two")]
    first, second = CatalogSnapshot.build(tools), CatalogSnapshot.build(tools[::-1])
    assert len(first.entries) == 1
    assert first.entries[0].description == second.entries[0].description
    assert "mcp:fx:t" in first.diagnostics[0]


def test_schemas_that_json_cannot_carry_have_keys_of_their_own():
    """rule 4.5: the key follows the content there too."""

    def key(schema: dict[str, object]) -> str:
        return CatalogSnapshot.build([core("t", parameters=schema)]).key

    assert key(deep(40)) == key(deep(40))  # 2 ** 40 values when it is written out
    assert key(deep(40)) != key(deep(39))
    assert key(deep(3_000)) == key(deep(3_000))
    assert key(deep(3_000)) != key(deep(2_999))
    assert key({"a": {1, 2}}) == key({"a": {1, 2}})
    assert key({"a": {1, 2}}) != key({"b": {1, 2}})
    assert key(cyclic()) == key(cyclic())


def test_a_schema_that_cannot_be_written_out_is_described_without_it():
    """rule 4.5: one such tool must not hold up the others."""
    large = core("t", parameters=deep(40), output_schema=cyclic())
    (entry,) = CatalogSnapshot.build([large]).entries
    told = entry.described()
    assert told["parameters"] == told["outputSchema"] == {"$comment": TOO_LARGE}
    (entry,) = CatalogSnapshot.build([core("t", parameters=deep(10))]).entries
    assert entry.described()["parameters"] == deep(10)


def deep(levels: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object", "properties": {"abyss": {}}}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"down": schema}, "items": schema}
    return schema


class Trap(dict):
    """A mapping that must never be asked anything."""

    def get(self, *_):
        raise AssertionError("a remote schema was run")

    items = keys = values = get

    def __getitem__(self, _):
        raise AssertionError("a remote schema was run")


def cyclic() -> dict[str, object]:
    schema: dict[str, object] = {"type": "object"}
    schema["properties"] = {"again": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        deep(3_000),
        cyclic(),
        {"properties": {f"p{i}": {"description": "x" * 9_999} for i in range(2_000)}},
        {"properties": {1: {}, None: {}, "ok": 5}, "anyOf": [None, [], {}], "items": []},
        {"properties": [], "description": {"a": 1}},
        {"type": float("nan"), "properties": {"a": {"description": object()}}},
    ],
)
def test_a_hostile_schema_costs_little_and_breaks_nothing(schema):
    """SR-10, rule 4.5: bounded, read without recursing freely."""
    tools = [mcp("evil", "t", "hostile", parameters=schema), core("read_file", "Read a file")]
    start = time.thread_time()
    snapshot = CatalogSnapshot.build(tools)
    assert [hit.entry.name for hit in snapshot.search("read file", limit=3)] == ["read_file"]
    assert [hit.entry.name for hit in snapshot.search("hostile", limit=3)] == ["t"]
    assert len(snapshot.key) == 32
    assert time.thread_time() - start < 2


def test_a_remote_schema_is_never_run():
    """SR-10, BEHAVIOURS 302: only plain dicts are read."""
    inner = {"type": "object", "properties": Trap({"secret": {}})}
    snapshot = CatalogSnapshot.build([mcp("evil", "t", "hostile", parameters=inner)])
    assert len(snapshot.search("hostile", limit=3)) == 1
    trapped = mcp("evil", "t", "hostile", parameters=Trap(inner))
    assert len(CatalogSnapshot.build([trapped]).search("hostile", limit=3)) == 1


def test_building_and_indexing_are_linear():
    """TS-13: twice the tools cost less than three times the time; 1,000 tools well under 60 ms."""

    def spent(count: int) -> float:
        names = [f"p{i}" for i in range(10)]
        tools = [
            core(f"tool_{i}", f"Does thing {i}", parameters=params(*names)) for i in range(count)
        ]
        best = 9.0
        for _ in range(3):
            start = time.thread_time()
            CatalogSnapshot.build(tools).search("thing", limit=8)
            best = min(best, time.thread_time() - start)
        return best

    once, twice = spent(1_000), spent(2_000)
    assert twice < 3 * once + 0.01
