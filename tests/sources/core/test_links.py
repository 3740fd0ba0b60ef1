"""What lies outside is neither read nor written, whatever links are put in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.core.conftest import call
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import CallError
from toolcell.sources.core.toolset import core_tools

pytestmark = pytest.mark.anyio

SECRET = "the secret outside"
SWAP = """
import os, sys
os.chdir(sys.argv[1])
made = 0
def move(old, new):
    global made
    while True:
        try:
            return os.rename(old, new)
        except OSError:  # a tool made a directory there meanwhile
            made += 1
            try:
                os.rename(new, f"../made{made}")
            except OSError:
                pass
print("ready", flush=True)
while True:
    move("box", "kept")
    move("way", "box")
    move("box", "way")
    move("kept", "box")
"""


def patch_of(action: str, path: str, *lines: str) -> str:
    return "\n".join(("*** Begin Patch", f"*** {action} File: {path}", *lines, "*** End Patch"))


@contextmanager
def swapping(folder: Path) -> Iterator[None]:
    """Have another process swap `box`, a directory, for `way`, a link, as fast as it can."""
    command = [sys.executable, "-c", SWAP, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None, "the attacker gave up"
        finally:
            process.kill()


def state_of(folder: Path) -> dict[str, tuple[str, int, int]]:
    return {
        str(each.relative_to(folder)): (each.read_text(), info.st_ino, info.st_mode)
        for each in sorted(folder.rglob("*"))
        if each.is_file() and (info := each.stat())
    }


async def test_a_directory_swapped_for_a_link_by_another_process_lets_nothing_in_or_out(
    workspace, root, tmp_path
):
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (root / "box" / "sub").mkdir(parents=True)
    for number in range(5):
        for place, text in ((outside, SECRET), (root / "box", "inside")):
            (place / f"f{number}.txt").write_text(f"{text}\n")
            (place / "sub" / f"g{number}.txt").write_text(f"{text}\n")
    (outside / "only.txt").write_text(SECRET)
    (root / "way").symlink_to(outside)
    before = state_of(outside)
    tools = {each.name: each for each in core_tools(workspace)}
    asked = [
        ("read", {"path": "box/f0.txt"}),
        ("read", {"path": "box/sub/g0.txt"}),
        ("grep", {"pattern": ".", "limit": 1000}),
        ("grep", {"pattern": ".", "path": "box"}),
        ("find", {"pattern": "only.txt", "type": "any"}),
        ("find", {"pattern": "*.txt", "path": "box/sub"}),
        ("ls", {"path": "box"}),
        ("write", {"path": "box/f1.txt", "content": "written"}),
        ("write", {"path": "box/new/deep.txt", "content": "written"}),
        ("edit", {"path": "box/f2.txt", "oldText": "s", "newText": "ss"}),
        ("edit", {"path": "box/sub/g2.txt", "oldText": "e", "newText": "E"}),
        ("apply_patch", {"patch": patch_of("Add", "box/added.txt", "+added")}),
        ("apply_patch", {"patch": patch_of("Update", "box/f3.txt", "-inside", "+outside")}),
        ("apply_patch", {"patch": patch_of("Delete", "box/f4.txt")}),
        ("apply_patch", {"patch": patch_of("Delete", "box/only.txt")}),
    ]
    answers, leaked, refused = 0, 0, 0
    with swapping(root):
        ends = SYSTEM_CLOCK.monotonic() + 4
        while SYSTEM_CLOCK.monotonic() < ends:
            for name, arguments in asked:
                try:
                    found = await call(tools[name], **arguments)
                except CallError as error:
                    refused += 1
                    found = str(error)
                else:
                    answers += 1
                assert SECRET not in str(found), (name, arguments)
                assert "only.txt" not in str(found) or isinstance(found, str), (name, arguments)
            try:
                leaked += (root / "box" / "f0.txt").read_text().startswith(SECRET)
            except OSError:
                continue
    assert state_of(outside) == before
    assert answers
    assert refused
    assert leaked, "the attack was too slow to show anything"


async def test_other_names_of_a_file_keep_its_old_text(workspace, root, tmp_path):
    """A hard link may lead to a file outside; what is written never goes through it."""
    tools = {each.name: each for each in core_tools(workspace)}
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("w", "e", "p", "d", "m", "failed"):
        (outside / name).write_text("one\ntwo\n")
        (outside / name).chmod(0o640)
        os.link(outside / name, root / f"{name}.txt")
    before = state_of(outside)
    await call(tools["write"], path="w.txt", content="three\n")
    await call(tools["edit"], path="e.txt", oldText="two", newText="three")
    await call(tools["apply_patch"], patch=patch_of("Update", "p.txt", "-two", "+three"))
    await call(tools["apply_patch"], patch=patch_of("Delete", "d.txt"))
    moved = patch_of("Update", "m.txt", "*** Move to: n.txt", "-two", "+three")
    await call(tools["apply_patch"], patch=moved)
    with pytest.raises(CallError):
        await call(tools["apply_patch"], patch=patch_of("Update", "failed.txt", "-no", "+three"))
    assert state_of(outside) == before
    assert {each.name: each.read_text() for each in root.glob("*.txt") if each.name != "a.txt"} == {
        "w.txt": "three\n",
        "e.txt": "one\nthree\n",
        "p.txt": "one\nthree\n",
        "n.txt": "one\nthree\n",
        "failed.txt": "one\ntwo\n",
    }
    assert (root / "failed.txt").stat().st_nlink == 2
