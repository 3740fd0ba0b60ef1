"""Tool Search for MCP clients: `toolcell mcp serve --surface tools|directory`."""

import json

import pytest

from tests.mcp_server.serving import Home, stdio
from toolcell.cli.main import run as toolcell

pytestmark = pytest.mark.anyio


async def test_a_client_gets_the_structured_controls(tmp_path):
    """rule 10.3 over MCP: search, then call; a shell's approval is nobody's here."""
    async with stdio(Home(tmp_path).prepare(), "--surface", "tools") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"tool_search", "tool_describe", "tool_call", "look"} == set(tools)
        assert tools["tool_search"].annotations.read_only_hint is True
        assert tools["tool_call"].output_schema is None
        found = await client.call_tool("tool_search", {"query": "add numbers", "limit": 1})
        (hit,) = json.loads(found.content[0].text)
        assert hit["id"] == "openclaw:tests:add"
        called = await client.call_tool("tool_call", {"id": hit["id"], "args": {"a": 1, "b": 2}})
        assert json.loads(called.content[0].text)["result"]["details"] == {"sum": 3}
        wrong = await client.call_tool("tool_call", {"id": "nothing"})
        assert wrong.is_error


async def test_a_client_gets_the_directory(tmp_path):
    """rule 10.4 over MCP: names in the first tool's description, hidden names run."""
    async with stdio(Home(tmp_path).prepare(), "--surface", "directory") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        told = tools["tool_search"].description
        assert "Available deferred-schema tools:" in told
        assert "- add (tests): Add two numbers." in told
        assert "add" not in tools
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == {"sum": 5}


def test_options_of_cells_do_not_go_with_it(capsys):
    """rule 10.1: nothing is silently ignored."""
    assert toolcell(("mcp", "serve", "--surface", "tools", "--executor", "node")) == 2
    assert "--surface code" in capsys.readouterr().err
