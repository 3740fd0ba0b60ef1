"""Cells over the core tools: a real repository, and what they must not reach (issue, Shows)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.codemode.results import Completed
from toolcell.config.parse import parse_config

pytestmark = pytest.mark.anyio

PROJECT = Path(__file__).resolve().parents[3]


async def cell(root: Path, code: str, executor: str) -> Completed:
    settings = {"enabled": True, "executor": executor, "timeoutMs": 30_000}
    config = parse_config({"tools": {"codeMode": settings}})
    runtime = Runtime(config, Parts(workspace=root, load_plugins=False), Host())
    await runtime.start()
    try:
        run = runtime.run(runtime.scope())
        outcome = await run.exec({"code": code})
        while getattr(outcome, "status", "") == "waiting":
            outcome = await run.wait({"runId": outcome.run_id})
    finally:
        await runtime.aclose()
    assert isinstance(outcome, Completed), outcome
    return outcome


def git(root: Path, *arguments: str) -> str:
    """Run git and return what it says."""
    command = [shutil.which("git") or "", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(
        [*command, *arguments], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout


REFACTOR = """
const top = (await ls({ path: "." })).entries.map((entry) => entry.name);
const modules = (await find({ pattern: "src/**/*.py" })).paths;
const hits = await grep({ pattern: "\\\\bToolResult\\\\b", glob: "*.py", limit: 10000 });
const files = [...new Set(hits.matches.map((match) => match.path))];
const edits = await Promise.all(files.map((path) =>
  edit({ path, oldText: "ToolResult", newText: "ToolOutcome", replaceAll: true })));
const patched = await apply_patch({ patch: [
  "*** Begin Patch",
  "*** Add File: NOTES.md",
  "+Renamed ToolResult.",
  "*** Update File: src/toolcell/tools/content.py",
  "@@ class ToolOutcome:",
  '-    \"\"\"What a tool gives back.',
  '+    \"\"\"What a tool gave back.',
  "*** End Patch",
].join("\\n") });
const left = (await grep({ pattern: "\\\\bToolResult\\\\b", glob: "*.py" })).matches.length;
return { top: top.length, modules: modules.length, files: files.length, left, patched,
         changed: edits.filter((each) => each.changed).length };
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("executor", ["quickjs", "node"])
async def test_a_cell_lists_greps_edits_and_patches_a_real_repository(tmp_path, executor):
    """Rule 7.5, and the seed's promise: no extra turn to look at shapes."""
    shutil.copytree(
        PROJECT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.wasm")
    )
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        git(tmp_path, *command)
    outcome = await cell(tmp_path, REFACTOR, executor)
    value = outcome.value
    assert value["files"] == value["changed"] > 20
    assert value["left"] == 0
    assert value["patched"] == {
        "added": ["NOTES.md"],
        "modified": ["src/toolcell/tools/content.py"],
        "deleted": [],
    }
    assert len(git(tmp_path, "diff", "--name-only").split()) == value["files"]


REFUSED = """
const tries = {
  read: () => read({ path: "../secret.txt" }),
  write: () => write({ path: "way/out.txt", content: "x" }),
  edit: () => edit({ path: "/etc/passwd", oldText: "root", newText: "x" }),
  patch: () => apply_patch({ patch: "*** Begin Patch\\n*** Add File: ../x\\n+x\\n*** End Patch" }),
  local: () => web_fetch({ url: "http://127.0.0.1:1/" }),
  metadata: () => web_fetch({ url: "http://169.254.169.254/latest/meta-data/" }),
  file: () => web_fetch({ url: "file:///etc/passwd" }),
};
const told = {};
for (const [name, attempt] of Object.entries(tries)) {
  try { await attempt(); told[name] = "it worked"; }
  catch (error) { told[name] = `${error.code}: ${error.message}`; }
}
return told;
"""


async def test_paths_out_of_the_workspace_and_private_addresses_are_refused_as_data(tmp_path):
    """Path escapes and SSRF from a cell; rule 3.10: the guest reads them as plain errors."""
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (root / "way").symlink_to(tmp_path)
    told = (await cell(root, REFUSED, "quickjs")).value
    assert set(told) == {"read", "write", "edit", "patch", "local", "metadata", "file"}
    for name, text in told.items():
        assert text.startswith("invalid_input: "), (name, text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.txt", "work"]
