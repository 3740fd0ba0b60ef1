"""Public servers from npm and PyPI, unchanged: every one of their tools called once."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.public import cache, npm_bin, pip_bin
from tests.sources.mcp.running import Running, running
from toolcell import CodeMode, Completed
from toolcell.sources.mcp.settings import parse_server
from toolcell.tools.tool import ToolKind

pytestmark = [pytest.mark.anyio, pytest.mark.network, pytest.mark.timeout(400)]

NPM = (
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
)


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest) -> dict[str, str]:
    """The servers' programs by name."""
    root = cache(request)
    npm = npm_bin(root, *NPM)
    pip = pip_bin(root, "venv", "mcp-server-time", "mcp-server-git")
    # It was written for the SDK before 2.0, so it gets an environment of its own.
    old = pip_bin(root, "venv-1", "mcp-server-sqlite", "mcp<2")
    return {
        "everything": str(npm / "mcp-server-everything"),
        "files": str(npm / "mcp-server-filesystem"),
        "memory": str(npm / "mcp-server-memory"),
        "time": str(pip / "mcp-server-time"),
        "git": str(pip / "mcp-server-git"),
        "sqlite": str(old / "mcp-server-sqlite"),
    }


def servers(programs: dict[str, str], work: Path) -> dict[str, dict[str, Any]]:
    """The config of every server, as a file has it."""
    more: dict[str, dict[str, Any]] = {
        "files": {"args": [str(work)]},
        "memory": {"env": {"MEMORY_FILE_PATH": str(work / "memory.jsonl")}},
        "git": {"args": ["--repository", str(work / "repo")]},
        "sqlite": {"args": ["--db-path", str(work / "data.db")]},
    }
    return {name: {"command": path, **more.get(name, {})} for name, path in programs.items()}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a picture and a repository."""
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("one\n")
    identity = ["-c", "user.email=a@example.org", "-c", "user.name=A"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=repo, check=True)
    for key, value in (("user.email", "a@example.org"), ("user.name", "A")):
        subprocess.run(["git", "config", key, value], cwd=repo, check=True)
    (repo / "a.txt").write_text("two\n")
    return tmp_path


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
        **git_and_sqlite(str(work / "repo")),
    }


def git_and_sqlite(repo: str) -> dict[str, dict[str, Any]]:
    there = {"repo_path": repo}
    return {
        "git:git_status": there,
        "git:git_diff_unstaged": there,
        "git:git_add": {**there, "files": ["a.txt"]},
        "git:git_diff_staged": there,
        "git:git_reset": there,
        "git:git_add ": {**there, "files": ["a.txt"]},
        "git:git_commit": {**there, "message": "two"},
        "git:git_log": {**there, "max_count": 2},
        "git:git_show": {**there, "revision": "HEAD"},
        "git:git_create_branch": {**there, "branch_name": "side"},
        "git:git_checkout": {**there, "branch_name": "side"},
        "git:git_branch": {**there, "branch_type": "local"},
        "git:git_diff": {**there, "target": "HEAD~1"},
        "sqlite:create_table": {"query": "CREATE TABLE bees (name TEXT, n INTEGER)"},
        "sqlite:write_query": {"query": "INSERT INTO bees VALUES ('Ada', 3)"},
        "sqlite:read_query": {"query": "SELECT name, n FROM bees"},
        "sqlite:list_tables": {},
        "sqlite:describe_table": {"table_name": "bees"},
        "sqlite:append_insight": {"insight": "bees are few"},
    }


CELL = """
const camel = (name) => name.trim().replace(/[-_]+(.)/g, (_, char) => char.toUpperCase());
const got = {};
for (const [id, given] of Object.entries(PLAN)) {
  const [server, tool] = id.split(":");
  got[id] = await MCP[server][camel(tool)](given);
}
return got;
"""


async def test_every_tool_of_the_public_servers_answers_a_cell(
    programs: dict[str, str], work: Path
) -> None:
    """Issue 4, what it must reach; rule 5.1: unchanged servers, every tool, one program."""
    plans = arguments(work)
    config = {"tools": {"codeMode": {"timeoutMs": 60_000, "maxOutputBytes": 1 << 20}}}
    async with CodeMode(
        mcp_servers=servers(programs, work), config=config, executor="quickjs"
    ) as cm:
        outcome = await cm.exec(f"const PLAN = {json.dumps(plans)};{CELL}")
    assert isinstance(outcome, Completed), outcome
    got = outcome.value
    assert set(got) == set(plans)
    # This one runs as a task of the protocol only, which its server says as a value.
    failed = {ident for ident, result in got.items() if result.get("isError")}
    assert failed <= {"everything:simulate-research-query"}, {each: got[each] for each in failed}
    assert "Ada" in got["sqlite:read_query"]["content"][0]["text"]
    assert "two" in got["git:git_log"]["content"][0]["text"]
    assert "T" in got["time:get_current_time"]["content"][0]["text"]
    assert (work / "other.txt").read_text() == "one\nthree\n"
    assert "not included" in json.dumps(got["everything:get-tiny-image"])


async def test_a_program_reads_a_template_of_a_public_server(programs: dict[str, str]) -> None:
    """BEHAVIOURS 225, rule 5.1: listed, declared, filled in and read in one program."""
    found = {"everything": {"command": programs["everything"]}}
    code = """
    const ops = MCP.everything.resources;
    const {resourceTemplates} = await ops.templates();
    const one = resourceTemplates.find((each) => each.uriTemplate.includes("text"));
    const variables = Object.fromEntries(one.variables.map((name) => [name, "7"]));
    const {contents} = await ops.read({uri: one.uriTemplate, variables});
    return [contents[0].text, await API.read("mcp/everything.d.ts")];
    """
    async with CodeMode(mcp_servers=found, executor="quickjs") as cm:
        outcome = await cm.exec(code)
    assert isinstance(outcome, Completed), outcome
    text, declared = outcome.value
    assert "7" in text
    assert "function templates(input?: {" in declared


async def test_every_tool_of_the_public_servers_is_in_the_plan(
    programs: dict[str, str], work: Path
) -> None:
    """Issue 4, what it must reach: no tool is forgotten; resources and prompts answer too."""
    parsed = {name: parse_server(name, each) for name, each in servers(programs, work).items()}
    async with running(parsed) as mcp:
        assert mcp.source.unavailable() == ()
        ordinary = {
            tool.id.removeprefix("mcp:")
            for tool in mcp.source.tools()
            if tool.tool.kind is ToolKind.ORDINARY
        }
        assert ordinary == {ident.strip() for ident in arguments(work)}
        await resources_and_prompts(mcp)


async def resources_and_prompts(mcp: Running) -> None:
    """BEHAVIOURS 225: the operations of a public server."""
    listed = (await mcp.call("everything:$resources.list")).details["resources"]
    read = await mcp.call("everything:$resources.read", {"uri": listed[0]["uri"]})
    assert read.details["contents"]
    templates = (await mcp.call("everything:$resources.templates")).details["resourceTemplates"]
    chosen = next(each for each in templates if "text" in each["uriTemplate"])
    given = {"uri": chosen["uriTemplate"], "variables": dict.fromkeys(chosen["variables"], "3")}
    filled = (await mcp.call("everything:$resources.read", given)).details["contents"]
    assert "3" in filled[0]["uri"]
    assert filled[0]["text"]
    prompts = (await mcp.call("everything:$prompts.list")).details["prompts"]
    assert prompts
    got = await mcp.call("everything:$prompts.get", {"name": prompts[0]["name"]})
    assert got.details["messages"][0]["role"] in {"user", "assistant"}
