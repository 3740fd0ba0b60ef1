"""`write` and `edit`: atomic, bounded, below the roots (issue part 4; rule 7.4, rule 7.5)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import anyio
import pytest

from tests.sources.core.conftest import call
from toolcell.errors import CallError
from toolcell.schema.hints import output_hint
from toolcell.sources.core.changes import Changes, Span
from toolcell.sources.core.editing import edit_tool
from toolcell.sources.core.placing import placed
from toolcell.sources.core.work import Stop
from toolcell.sources.core.writing import MAX_BYTES, Turns, put, write_tool
from toolcell.tools.threads import running_threads

pytestmark = pytest.mark.anyio


@pytest.fixture
def write(workspace):
    return write_tool(workspace, Turns())


@pytest.fixture
def edit(workspace):
    return edit_tool(workspace, Turns())


async def test_write_makes_a_file_and_the_directories_above_it(write, root):
    done = await call(write, path="new/deep/x.txt", content="hé\n")
    assert done == {"path": "new/deep/x.txt", "bytes": 4, "created": True}
    assert (root / "new/deep/x.txt").read_text(encoding="utf-8") == "hé\n"


async def test_write_replaces_a_file_and_keeps_its_mode(write, root):
    (root / "a.txt").chmod(0o751)
    done = await call(write, path="a.txt", content="new")
    assert done == {"path": "a.txt", "bytes": 3, "created": False}
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o751
    assert sorted(p.name for p in root.iterdir()) == ["a.txt", "sub"]  # nothing is left beside it


async def test_who_reads_during_a_write_sees_the_old_or_the_new_file_and_nothing_between(
    write, root
):
    """Writes are atomic."""
    target, stop, seen = root / "a.txt", threading.Event(), set()
    target.write_text("a" * 200_000)

    def watch() -> None:
        while not stop.is_set():
            seen.add(target.read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for letter in "bcdefgh":
            await call(write, path="a.txt", content=letter * 200_000)
    finally:
        stop.set()
        thread.join(10)
    assert all(len(text) == 200_000 and len(set(text)) == 1 for text in seen)


async def test_the_content_is_on_the_disk_before_it_takes_the_place(write, monkeypatch):
    """Writes are atomic: after a power cut the file is the old one or the whole new one."""
    done, sync, rename = [], os.fsync, os.rename

    def synced(fd):
        sync(fd)
        done.append(("on disk", os.fstat(fd).st_size))

    def renamed(*args, **more):
        rename(*args, **more)
        done.append(("in place", None))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    await call(write, path="a.txt", content="new")
    assert done == [("on disk", 3), ("in place", None)]


@pytest.mark.parametrize(
    "path", ["../out.txt", "sub/../../out.txt", "/etc/x", "{outside}/secret.txt", "way/out.txt"]
)
async def test_write_never_leaves_the_roots(write, root, tmp_path, path):
    (root / "way").symlink_to(tmp_path)
    with pytest.raises(CallError, match="outside the workspace") as caught:
        await call(write, path=path.format(outside=tmp_path), content="x")
    assert caught.value.effect == "none"
    assert (tmp_path / "secret.txt").read_text() == "secret\n"
    assert not (tmp_path / "out.txt").exists()


async def test_write_follows_a_link_that_stays_inside(write, root):
    (root / "link").symlink_to("sub/b.py")
    done = await call(write, path="link", content="x = 1\n")
    assert done["path"] == "sub/b.py"
    assert (root / "link").is_symlink()
    assert (root / "sub/b.py").read_text() == "x = 1\n"


async def test_a_link_put_there_between_look_and_write_is_replaced_and_not_followed(
    workspace, root, tmp_path
):
    with placed(workspace, "a.txt", make_parents=False) as place:
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(tmp_path / "secret.txt")
        put(place, b"mine")
    assert (tmp_path / "secret.txt").read_text() == "secret\n"
    assert not (root / "a.txt").is_symlink()


async def test_a_directory_swapped_for_a_link_during_many_writes_never_lets_one_out(
    write, root, tmp_path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "real").mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            try:
                (root / "real").rename(root / "aside")
                (root / "real").symlink_to(outside)
                (root / "real").unlink()
                (root / "aside").rename(root / "real")
            except OSError:
                continue

    thread = threading.Thread(target=swap)
    thread.start()
    written = 0
    try:
        for _ in range(150):
            try:
                await call(write, path="real/x.txt", content="x")
                written += 1
            except CallError:
                continue
    finally:
        stop.set()
        thread.join(10)
    assert list(outside.iterdir()) == []
    assert written > 0


@pytest.mark.parametrize("path", ["sub", ".", "sub/", "new/", "a.txt/x"])
async def test_what_is_no_file_is_refused(write, path):
    with pytest.raises(CallError, match="director"):
        await call(write, path=path, content="x")


async def test_a_special_file_is_refused(write, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(CallError, match="neither a file nor a directory"):
        await call(write, path="pipe", content="x")


async def test_too_much_and_what_is_no_text_is_refused_before_anything_is_made(write, root):
    for content, why in (("x" * (MAX_BYTES + 1), "at most"), ("a\ud800", "lone surrogate")):
        with pytest.raises(CallError, match=why) as caught:
            await write.execute({"path": "n/x", "content": content}, None)
        assert caught.value.effect == "none"
    assert not (root / "n").exists()


async def test_edit_replaces_one_exact_text_and_shows_what_changed(edit, root):
    """rule 7.5: whether it changed, with diff and patch."""
    done = await call(edit, path="a.txt", oldText="two", newText="2\n2½")
    assert (root / "a.txt").read_text(encoding="utf-8") == "one\n2\n2½\nthree\n"
    assert done == {
        "path": "a.txt",
        "changed": True,
        "replacements": 1,
        "firstChangedLine": 2,
        "diff": "-2 two\n+2 2\n+3 2½",
        "patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2½\n three\n",
    }


async def test_an_edit_that_changes_nothing_says_so_and_does_not_touch_the_file(edit, root):
    before = (root / "a.txt").stat()
    done = await call(edit, path="a.txt", oldText="two", newText="two")
    assert (done["changed"], done["diff"], done["patch"]) == (False, "", "")
    assert done["firstChangedLine"] is None
    after = (root / "a.txt").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_a_text_found_more_than_once_needs_replace_all(edit, root):
    (root / "a.txt").write_text("a e\nb e\nc e\n")
    with pytest.raises(CallError, match=r"found 3 times .* in lines 1, 2, 3") as caught:
        await call(edit, path="a.txt", oldText="e", newText="x")
    assert (caught.value.code, caught.value.effect) == ("invalid_input", "none")
    done = await call(edit, path="a.txt", oldText="e", newText="x", replaceAll=True)
    assert done["replacements"] == 3
    assert (root / "a.txt").read_text() == "a x\nb x\nc x\n"


async def test_a_text_that_is_missing_is_told_with_where_its_first_line_is(edit):
    with pytest.raises(CallError, match=r"not found .* in line 2"):
        await call(edit, path="a.txt", oldText="two\n  three", newText="")
    with pytest.raises(CallError, match="copy the text exactly"):
        await call(edit, path="a.txt", oldText="nowhere", newText="")
    with pytest.raises(CallError, match="does not exist"):
        await call(edit, path="none.txt", oldText="x", newText="")


async def test_plain_line_ends_match_a_file_with_those_of_dos_and_keep_them(edit, root):
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await call(edit, path="dos.txt", oldText="one\ntwo", newText="1\n2")
    assert (root / "dos.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_fifty_edits_of_one_file_at_once_all_hold(edit, root):
    """No call overwrites what another just did."""
    (root / "many.txt").write_text("".join(f"<{n}>\n" for n in range(50)))
    async with anyio.create_task_group() as group:
        for n in range(50):
            group.start_soon(
                lambda n=n: call(edit, path="many.txt", oldText=f"<{n}>", newText=f"[{n}]")
            )
    assert (root / "many.txt").read_text() == "".join(f"[{n}]\n" for n in range(50))


async def test_a_file_somebody_else_changes_meanwhile_is_left_alone(workspace, root):
    with placed(workspace, "a.txt", make_parents=False) as place:
        (root / "a.txt").write_text("theirs, and longer than before\n")
        with pytest.raises(CallError, match="changed by somebody else"):
            put(place, b"mine", unless_changed=True)
    assert (root / "a.txt").read_text() == "theirs, and longer than before\n"
    assert sorted(p.name for p in root.iterdir()) == ["a.txt", "sub"]


async def test_a_call_cancelled_while_it_waits_for_its_turn_changes_nothing(workspace, root):
    turns = Turns()
    tool = write_tool(workspace, turns)
    with turns.taken(Stop()):
        with anyio.move_on_after(0.05) as scope:
            await call(tool, path="a.txt", content="late")
        assert scope.cancelled_caught
    with anyio.fail_after(5):
        await call(tool, path="b.txt", content="next")  # the turn came and went
        while running_threads():  # noqa: ASYNC110 - nothing else tells of a thread nobody awaits
            await anyio.sleep(0.01)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_read_only_file_stays_as_it_is(write, edit, root):
    (root / "a.txt").chmod(0o444)
    with pytest.raises(CallError, match="read-only"):
        await call(write, path="a.txt", content="x")
    with pytest.raises(CallError, match="read-only"):
        await call(edit, path="a.txt", oldText="two", newText="x")
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


OLD = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm"


@pytest.mark.skipif(shutil.which("patch") is None, reason="GNU patch is not installed")
@pytest.mark.parametrize(
    "spans",
    [
        [Span(0, 1, "A")],
        [Span(0, 2, "")],
        [Span(1, 2, "")],
        [Span(0, 0, "new\n")],
        [Span(2, 2, "x\ny\n"), Span(20, 21, "K"), Span(24, 25, "M\n")],
        [Span(24, 25, "")],
        [Span(2, 12, "")],
        [Span(4, 5, "C"), Span(6, 7, "D")],
        [Span(0, 25, "all")],
    ],
)
def test_patches_are_what_gnu_patch_applies(tmp_path: Path, spans):
    new, position = "", 0
    for span in spans:
        new += OLD[position : span.start] + span.text
        position = span.end
    new += OLD[position:]
    (tmp_path / "x").write_text(OLD)
    patch = Changes(OLD, spans).patch("x")
    subprocess.run(
        [shutil.which("patch") or "", "-p1", "--fuzz=0"],
        input=patch,
        text=True,
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "x").read_text() == new


def test_their_contracts_are_complete_hints(write, edit):
    """rule 7.4, rule 7.2: `write` and `edit` declare closed results; neither is replay-safe."""
    assert output_hint(write.output_schema) == "{ bytes: number; created: boolean; path: string }"
    assert output_hint(edit.output_schema) == (
        "{ changed: boolean; diff: string; firstChangedLine: number | null; patch: string | null; "
        "path: string; replacements: number }"
    )
    assert not write.replay_safe
    assert not edit.replay_safe


async def test_more_replacements_than_can_be_held_are_refused(edit, root):
    """Sixteen million of them took 34 seconds and 2.8 GB."""
    (root / "a.txt").write_text("a" * 100_001)
    with pytest.raises(CallError, match="more than 100000 times"):
        await call(edit, path="a.txt", oldText="a", newText="b", replaceAll=True)
    assert (root / "a.txt").read_text() == "a" * 100_001


async def test_a_name_with_a_lone_surrogate_is_refused(write, root):
    with pytest.raises(CallError, match="lone surrogate"):
        await call(write, path="new/\ud800", content="x")
    assert not (root / "new").exists()


async def test_a_path_that_goes_too_deep_is_refused(write):
    """Every directory of the way is held open meanwhile."""
    await call(write, path="d/" * 256 + "x", content="x")
    with pytest.raises(CallError, match="more than 256 directories deep"):
        await call(write, path="d/" * 257 + "x", content="x")


async def test_a_program_that_is_written_over_does_not_keep_its_rights(write, root):
    """As when it is written in place."""
    (root / "a.txt").chmod(0o6755)
    await call(write, path="a.txt", content="x")
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o755
