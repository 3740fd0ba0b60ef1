"""`apply_patch`: all or nothing, in two forms (issue part 4; rule 7.4, rule 7.5)."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sources.core.conftest import call
from toolcell.errors import CallError
from toolcell.schema.hints import output_hint
from toolcell.sources.core.editing import edit_tool
from toolcell.sources.core.patching import apply_patch_tool
from toolcell.sources.core.placing import Place
from toolcell.sources.core.writing import Turns

pytestmark = pytest.mark.anyio


@pytest.fixture
def patch(workspace):
    return apply_patch_tool(workspace, Turns())


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_a_patch_adds_modifies_deletes_and_moves(patch, root):
    """rule 7.5: paths added, modified, deleted."""
    done = await call(
        patch,
        patch=enveloped(
            "*** Update File: a.txt",
            "@@",
            " one",
            "-two",
            "+2",
            " three",
            "*** Add File: new/x.txt",
            "+hello",
            "+",
            "*** Delete File: sub/b.py",
            "*** Update File: sub/deep/c.py",
            "*** Move to: moved.py",
            "@@",
            "-print('deep')",
            "+print('flat')",
        ),
    )
    assert done == {
        "added": ["new/x.txt", "moved.py"],
        "modified": ["a.txt"],
        "deleted": ["sub/b.py", "sub/deep/c.py"],
    }
    assert tree(root) == {
        "a.txt": "one\n2\nthree\n",
        "new/x.txt": "hello\n\n",
        "moved.py": "print('flat')\n",
    }


async def test_a_patch_that_fits_in_part_changes_nothing(patch, root):
    """All or nothing."""
    before = tree(root)
    for bad in (
        ["*** Update File: sub/b.py", "@@", "-import nothing", "+x"],
        ["*** Delete File: none.py"],
        ["*** Add File: sub/b.py", "+x"],
        ["*** Update File: ../secret.txt", "@@", "-secret", "+x"],
        ["*** Add File: sub/../../out.txt", "+x"],
        ["*** Update File: a.txt", "@@", "-one", "+1"],
        ["*** Add File: a.txt/x", "+x"],
    ):
        good = ["*** Update File: a.txt", "@@", "-two", "+2", "*** Add File: n/y.txt", "+y"]
        with pytest.raises(CallError) as caught:
            await call(patch, patch=enveloped(*good, *bad))
        assert caught.value.effect == "none", bad
        assert tree(root) == before, bad
    assert (root.parent / "secret.txt").read_text() == "secret\n"


async def test_a_failure_while_files_are_put_in_place_is_taken_back(patch, root, monkeypatch):
    before, real, count = tree(root), Place.commit, 0

    def failing(place: Place, staged: str) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(28, "No space left on device")
        real(place, staged)

    monkeypatch.setattr(Place, "commit", failing)
    with pytest.raises(CallError, match="the disk is full"):
        await call(
            patch,
            patch=enveloped(
                "*** Update File: a.txt",
                "-two",
                "+2",
                "*** Delete File: sub/deep/c.py",
                "*** Add File: x.txt",
                "+x",
                "*** Update File: sub/b.py",
                "-import os",
                "+import sys",
            ),
        )
    assert count >= 3
    assert tree(root) == before


async def test_places_that_look_alike_need_an_anchor(patch, root):
    (root / "f.py").write_text("def a():\n    return 1\n\ndef b():\n    return 1\n")
    change = ["-    return 1", "+    return 2"]
    with pytest.raises(CallError, match=r"found 2 times, in lines 2, 5"):
        await call(patch, patch=enveloped("*** Update File: f.py", "@@", *change))
    await call(patch, patch=enveloped("*** Update File: f.py", "@@ def b():", *change))
    assert (root / "f.py").read_text() == "def a():\n    return 1\n\ndef b():\n    return 2\n"


async def test_white_space_at_line_ends_does_not_matter_and_is_kept(patch, root):
    (root / "f.txt").write_bytes(b"one  \r\ntwo\r\nthree")
    await call(
        patch, patch=enveloped("*** Update File: f.txt", " one", "-two", "+2", " three", "+four")
    )
    assert (root / "f.txt").read_bytes() == b"one  \r\n2\r\nthree\r\nfour\r\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello", "changes no file"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        ("*** Begin Patch\n*** Add File: x\n+a", "does not end with"),
        ("*** Begin Patch\n*** Add File: x\na\n*** End Patch", "line 3: each line of an added"),
        ("*** Begin Patch\n*** Rename: x\n*** End Patch", "line 2: expected one of"),
        ("*** Begin Patch\n*** Update File: a.txt\n*** End Patch", "without changes"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ nonsense @@\n", "line 3: expected"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n", "starts with"),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", "not supported"),
    ],
)
async def test_a_malformed_patch_is_refused_with_its_line(patch, root, text, why):
    before = tree(root)
    with pytest.raises(CallError, match=why) as caught:
        await call(patch, patch=text)
    assert (caught.value.code, caught.value.effect) == ("invalid_input", "none")
    assert tree(root) == before


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_what_git_diff_writes_is_applied(patch, root):
    git = [shutil.which("git") or "", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    text = "\n".join(f"line {n % 7}" for n in range(200))
    (root / "long.txt").write_text(text)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*git, *arguments], cwd=root, check=True, capture_output=True, text=True
        )
        return done.stdout

    run("init", "-q")
    run("add", "-A")
    run("commit", "-qm", "x")
    lines = text.split("\n")
    lines[3] = "changed"
    del lines[50:55]
    lines[120:120] = ["new 1", "new 2"]
    (root / "long.txt").write_text("\n".join(lines) + "\n")
    (root / "sub/b.py").unlink()
    (root / "fresh.txt").write_text("fresh")
    run("add", "-AN")
    diff = run("diff", "--no-renames", "HEAD")
    after = tree(root)
    run("reset", "-q", "--hard")
    (root / "fresh.txt").unlink(missing_ok=True)
    done = await call(patch, patch=diff)
    assert done == {"added": ["fresh.txt"], "modified": ["long.txt"], "deleted": ["sub/b.py"]}
    assert tree(root) == after


async def test_the_patch_of_an_edit_can_be_applied_elsewhere(workspace, patch, root):
    (root / "f.txt").write_text("a\nb\nc\nb\n")
    done = await call(
        edit_tool(workspace, Turns()), path="f.txt", oldText="b", newText="B", replaceAll=True
    )
    (root / "f.txt").write_text("x\ny\na\nb\nc\nb\n")
    await call(patch, patch=done["patch"])
    assert (root / "f.txt").read_text() == "x\ny\na\nB\nc\nB\n"


async def test_a_hostile_patch_of_many_equal_lines_ends_in_time(patch, root):
    (root / "big.txt").write_text("x\n" * 20_000)
    for last, why in (("-y", "not found"), ("-x", "takes too long")):
        hunk = ["@@", *[" x"] * 2000, last, "+z"]
        with pytest.raises(CallError, match=why):
            await call(patch, patch=enveloped("*** Update File: big.txt", *hunk))


async def test_its_contract_is_a_complete_hint(patch):
    """rule 7.4, rule 7.2."""
    assert output_hint(patch.output_schema) == (
        "{ added: Array<string>; deleted: Array<string>; modified: Array<string> }"
    )
    assert not patch.replay_safe


async def test_a_patch_that_fails_leaves_no_directory_behind(patch, root, monkeypatch):
    """All of it happens, or nothing: nor are the directories above an added file left."""

    def full(_self: Place, _data: bytes) -> str:
        raise OSError(errno.ENOSPC, "full")

    text = (
        "*** Begin Patch\n*** Add File: new/deep/x.txt\n+x\n"
        "*** Add File: sub/other/y.txt\n+y\n*** End Patch"
    )
    before = sorted(root.rglob("*"))
    with monkeypatch.context() as patched:
        patched.setattr(Place, "stage", full)
        with pytest.raises(CallError, match="the disk is full"):
            await call(patch, patch=text)
    assert sorted(root.rglob("*")) == before
    twice = text.replace("sub/other/y.txt", "new/deep/x.txt")
    with pytest.raises(CallError, match="twice"):
        await call(patch, patch=twice)
    below_a_file = text.replace("sub/other/y.txt", "sub/b.py/y.txt")
    with pytest.raises(CallError, match="is a file, not a directory"):
        await call(patch, patch=below_a_file)
    assert sorted(root.rglob("*")) == before
    assert (await call(patch, patch=text))["added"] == ["new/deep/x.txt", "sub/other/y.txt"]


async def test_a_failing_patch_keeps_directories_that_others_use_meanwhile(
    patch, root, monkeypatch
):
    def used(_self: Place, _data: bytes) -> str:
        (root / "new" / "theirs.txt").write_text("theirs")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Place, "stage", used)
    text = "*** Begin Patch\n*** Add File: new/deep/x.txt\n+x\n*** End Patch"
    with pytest.raises(CallError):
        await call(patch, patch=text)
    assert [each.name for each in (root / "new").iterdir()] == ["theirs.txt"]
