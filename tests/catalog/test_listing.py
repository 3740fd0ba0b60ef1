"""Catalogs kept in a file."""

import anyio
import pytest

from toolcell.catalog.listing import load_listing, parse_listing
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.errors import CallError, ConfigError


def test_lines_become_tools_of_their_server(tmp_path):
    """rule 4.1: `mcp:<server>:<tool>` with a server, a local tool without."""
    path = tmp_path / "catalog.jsonl"
    path.write_text(
        '{"name": "create_issue", "server": "github", "description": "Create an issue",'
        ' "inputSchema": {"type": "object"}, "title": "New", "origin": "ignored"}\n\n'
        '{"name": "read"}\r\n',
        encoding="utf-8",
    )
    tools = load_listing(path)
    assert [entry.id for entry in CatalogSnapshot.build(tools).entries] == [
        "openclaw:core:read",
        "mcp:github:create_issue",
    ]
    assert tools[0].tool.label == "New"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        ("{}", "'name' must be a non-empty string"),
        ('{"name": 1}', "'name' must be a string"),
        ('{"name": "a", "server": 1}', "'server' must be a string"),
        ('{"name": "a", "description": []}', "'description' must be a string"),
        ('{"name": "a", "inputSchema": "x"}', "'inputSchema' must be a JSON Schema object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(line, wrong):
    """rule 4.3: what was wrong, and where."""
    with pytest.raises(ConfigError, match=wrong) as caught:
        parse_listing(['{"name": "fine"}', line], where="c.jsonl")
    assert "c.jsonl, line 2" in caught.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    """rule 4.3."""
    with pytest.raises(ConfigError, match="missing.jsonl"):
        load_listing(tmp_path / "missing.jsonl")


def test_a_listed_tool_says_that_it_cannot_run():
    """rule 3.10: a failure is data with a code."""
    (sourced,) = parse_listing(['{"name": "a"}'], where="c")
    with pytest.raises(CallError, match="only listed") as caught:
        anyio.run(sourced.tool.execute, {}, None)
    assert (caught.value.code, caught.value.effect) == ("unavailable", "none")
