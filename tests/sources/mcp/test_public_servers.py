"""Public servers from npm and PyPI, unchanged: every one of their tools called once."""

import shutil
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.sources.mcp.running import Running, running
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.tools.tool import ToolKind

pytestmark = [pytest.mark.anyio, pytest.mark.network, pytest.mark.timeout(240)]

NPM = (
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
)


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest) -> Path:
    """Install the servers once, into pytest's cache."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    root = Path(request.config.cache.mkdir("mcp-servers"))
    if not (root / "node_modules").is_dir():
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(root), *NPM]
        subprocess.run(command, check=True, capture_output=True, timeout=200)
    if not (root / "venv").is_dir():
        venv.create(root / "venv", with_pip=True)
        command = [str(root / "venv/bin/pip"), "install", "-q", "mcp-server-time"]
        subprocess.run(command, check=True, capture_output=True, timeout=200)
    return root


def servers(root: Path, work: Path) -> dict[str, McpServerSettings]:
    npm = root / "node_modules" / ".bin"
    return {
        "everything": McpServerSettings(command=str(npm / "mcp-server-everything")),
        "files": McpServerSettings(command=str(npm / "mcp-server-filesystem"), args=(str(work),)),
        "memory": McpServerSettings(
            command=str(npm / "mcp-server-memory"),
            env={"MEMORY_FILE_PATH": str(work / "memory.jsonl")},
        ),
        "time": McpServerSettings(command=str(root / "venv/bin/mcp-server-time")),
    }


def arguments(work: Path) -> dict[str, dict[str, Any]]:
    """What each tool is called with; the order is the order of the calls."""
    note, other = str(work / "note.txt"), str(work / "other.txt")
    observation = {"entityName": "Ada", "contents": ["writes"]}
    forget = {"entityName": "Ada", "observations": ["writes"]}
    relation = [{"from": "Ada", "to": "Bob", "relationType": "knows"}]
    people = [{"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bob")]
    return {
        "everything:echo": {"message": "hi"},
        "everything:get-annotated-message": {"messageType": "success", "includeImage": True},
        "everything:get-env": {},
        "everything:get-resource-links": {"count": 2},
        "everything:get-resource-reference": {"resourceType": "Blob", "resourceId": 2},
        "everything:get-structured-content": {"location": "Chicago"},
        "everything:get-sum": {"a": 2, "b": 3},
        "everything:get-tiny-image": {},
        "everything:gzip-file-as-resource": {"name": "a.gz", "data": "data:text/plain;base64,QQ=="},
        "everything:toggle-simulated-logging": {},
        "everything:toggle-subscriber-updates": {},
        "everything:trigger-long-running-operation": {"duration": 0.4, "steps": 2},
        "everything:simulate-research-query": {"topic": "bees"},
        "files:write_file": {"path": note, "content": "one\ntwo\n"},
        "files:read_file": {"path": note},
        "files:read_text_file": {"path": note, "head": 1},
        "files:read_media_file": {"path": str(work / "dot.png")},
        "files:read_multiple_files": {"paths": [note]},
        "files:edit_file": {"path": note, "edits": [{"oldText": "two", "newText": "three"}]},
        "files:create_directory": {"path": str(work / "sub")},
        "files:list_directory": {"path": str(work)},
        "files:list_directory_with_sizes": {"path": str(work)},
        "files:directory_tree": {"path": str(work)},
        "files:search_files": {"path": str(work), "pattern": "*.txt"},
        "files:get_file_info": {"path": note},
        "files:list_allowed_directories": {},
        "files:move_file": {"source": note, "destination": other},
        "memory:create_entities": {"entities": people},
        "memory:create_relations": {"relations": relation},
        "memory:add_observations": {"observations": [observation]},
        "memory:read_graph": {},
        "memory:search_nodes": {"query": "Ada"},
        "memory:open_nodes": {"names": ["Ada"]},
        "memory:delete_observations": {"deletions": [forget]},
        "memory:delete_relations": {"relations": relation},
        "memory:delete_entities": {"entityNames": ["Ada", "Bob"]},
        "time:get_current_time": {"timezone": "Europe/Berlin"},
        "time:convert_time": {
            "source_timezone": "Europe/Berlin",
            "time": "12:00",
            "target_timezone": "Asia/Tokyo",
        },
    }


async def test_every_tool_of_the_public_servers_answers(installed: Path, tmp_path: Path) -> None:
    """Issue 2, part 8; rule 4.9, rule 5.1: unchanged public servers work, no bytes in the guest."""
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    async with running(servers(installed, tmp_path)) as mcp:
        assert mcp.source.unavailable() == ()
        plans = arguments(tmp_path)
        ordinary = {
            tool.id.removeprefix("mcp:")
            for tool in mcp.source.tools()
            if tool.tool.kind is ToolKind.ORDINARY
        }
        assert ordinary == set(plans)
        results = {ident: await mcp.call(ident, given) for ident, given in plans.items()}
        failed = {ident for ident, result in results.items() if result.is_error}
        # This one runs as a task of the protocol only, which its server says as a value.
        assert failed <= {"everything:simulate-research-query"}
        assert results["everything:get-sum"].details["content"][0]["text"].endswith("5.")
        assert "T" in results["time:get_current_time"].details["content"][0]["text"]
        assert (tmp_path / "other.txt").read_text() == "one\nthree\n"
        picture = results["everything:get-tiny-image"].details["content"]
        assert any("not included" in block.get("description", "") for block in picture)
        await resources_and_prompts(mcp)


async def resources_and_prompts(mcp: Running) -> None:
    """BEHAVIOURS 225: the operations of a public server."""
    listed = (await mcp.call("everything:$resources.list")).details["resources"]
    read = await mcp.call("everything:$resources.read", {"uri": listed[0]["uri"]})
    assert read.details["contents"]
    prompts = (await mcp.call("everything:$prompts.list")).details["prompts"]
    assert prompts
    got = await mcp.call("everything:$prompts.get", {"name": prompts[0]["name"]})
    assert got.details["messages"][0]["role"] in {"user", "assistant"}
