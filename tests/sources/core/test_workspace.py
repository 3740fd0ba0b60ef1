"""Workspace roots hold against `..`, absolute paths, links and races (issue part 4)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from toolcell.errors import CallError, ConfigError
from toolcell.sources.core.workspace import NotFoundError, WorkspaceRoots


def text(workspace: WorkspaceRoots, path: str) -> str:
    with workspace.file(path) as found:
        return os.read(found.fd, 1000).decode()


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "./a.txt",
        "sub/../a.txt",
        "sub//deep/../../a.txt",
        "{root}/a.txt",
        "{root}/sub/../a.txt",
    ],
)
def test_paths_below_the_root_open(workspace, root, path):
    assert text(workspace, path.format(root=root)) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "..",
        "sub/../../secret.txt",
        "sub/../../work/a.txt",
        "/etc/passwd",
        "{outside}/secret.txt",
        "{root}/../secret.txt",
        "{root}x/a.txt",
        "/",
    ],
)
def test_paths_that_leave_the_root_are_refused(workspace, root, tmp_path, path):
    with (
        pytest.raises(CallError, match="outside the workspace") as caught,
        workspace.opened(path.format(root=root, outside=tmp_path)),
    ):
        pass
    assert (caught.value.code, caught.value.effect) == ("invalid_input", "none")


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("out", "../secret.txt"),
        ("out", "{outside}/secret.txt"),
        ("out", "/etc/passwd"),
        ("sub/out", "../../secret.txt"),
        ("out", "sub/../../secret.txt"),
    ],
)
def test_links_that_lead_out_are_refused(workspace, root, tmp_path, link, target):
    (root / link).symlink_to(target.format(outside=tmp_path))
    with pytest.raises(CallError, match="leads outside the workspace") as caught:
        text(workspace, link)
    assert "secret" not in caught.value.message.replace(link, "")


def test_a_directory_link_in_the_middle_that_leads_out_is_refused(workspace, root, tmp_path):
    (root / "sub" / "up").symlink_to(tmp_path)
    with pytest.raises(CallError, match="leads outside"):
        text(workspace, "sub/up/secret.txt")


def test_links_that_stay_inside_are_followed(workspace, root):
    (root / "link.txt").symlink_to("sub/b.py")
    (root / "sub" / "back").symlink_to("../a.txt")
    (root / "absolute").symlink_to(root / "sub")
    assert text(workspace, "link.txt") == "import os\n"
    assert text(workspace, "sub/back") == "one\ntwo\nthree\n"
    assert text(workspace, "absolute/deep/c.py") == "print('deep')\n"
    with workspace.opened("absolute/deep") as found:
        assert found.shown == "sub/deep"


def test_link_loops_end(workspace, root):
    (root / "x").symlink_to("y")
    (root / "y").symlink_to("x")
    with pytest.raises(CallError, match="more than 40 links"):
        text(workspace, "x")


def test_a_link_swapped_in_between_never_shows_what_lies_outside(workspace, root, tmp_path):
    """A race: one thread swaps a directory for a link to the outside while another reads."""
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "data.txt").write_text("secret\n")
    good, spare, link = root / "swap", root / "spare", root / "link"
    good.mkdir()
    (good / "data.txt").write_text("fine\n")
    link.symlink_to(tmp_path / "evil")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(good, spare)  # noqa: PTH104 - as fast as can be
            os.rename(link, good)  # noqa: PTH104
            os.rename(good, link)  # noqa: PTH104
            os.rename(spare, good)  # noqa: PTH104

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        for _ in range(3000):
            try:
                seen.add(text(workspace, "swap/data.txt"))
            except CallError:
                seen.add("refused")
    finally:
        stop.set()
        thread.join(10)
    assert "secret\n" not in seen
    assert "fine\n" in seen


def test_what_is_no_file_is_refused_without_waiting(workspace, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(CallError, match="neither a file nor a directory"):
        text(workspace, "pipe")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.txt", "'missing.txt' does not exist"),
        ("a.txt/b", "'a.txt' is a file, not a directory"),
        ("sub", "'sub' is a directory; list it with ls"),
        ("a\0b", "contains a NUL"),
        ("x" * 5000, "at most 4096"),
        ("x" * 300, "name that is too long"),
    ],
)
def test_errors_say_what_is_wrong(workspace, path, problem):
    with pytest.raises(CallError, match=problem):
        text(workspace, path)


def test_missing_is_told_apart(workspace):
    with pytest.raises(NotFoundError):
        text(workspace, "sub/missing")


def test_several_roots_are_searched_by_absolute_path(root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "z.txt").write_text("zed\n")
    (root / "to_other").symlink_to(other / "z.txt")
    workspace = WorkspaceRoots([root, other])
    with workspace.opened(str(other / "z.txt")) as found:
        assert found.shown == str(other.resolve() / "z.txt")
    assert text(workspace, "to_other") == "zed\n"
    with pytest.raises(CallError, match="outside"):
        text(workspace, "z.txt/../../secret.txt".replace("z.txt/../", "../"))


def test_a_root_may_be_given_through_a_link(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    workspace = WorkspaceRoots([tmp_path / "alias"])
    assert text(workspace, f"{tmp_path}/alias/a.txt") == "one\ntwo\nthree\n"
    assert text(workspace, f"{root}/a.txt") == "one\ntwo\nthree\n"


def test_roots_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no workspace root"):
        WorkspaceRoots([])
    with pytest.raises(ConfigError, match="cannot be used"):
        WorkspaceRoots([tmp_path / "missing"])
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="not a directory"):
        WorkspaceRoots([tmp_path / "file"])


def test_no_descriptor_is_left_open(workspace, root):
    (root / "loop").symlink_to("loop")
    open_now = Path("/proc/self/fd")
    if not open_now.exists():
        pytest.skip("this system does not list open descriptors")
    before = len(list(open_now.iterdir()))
    for path in ("a.txt", "missing", "../x", "loop", "sub/deep/c.py", "sub"):
        try:
            with workspace.opened(path):
                pass
        except CallError:
            continue
    assert len(list(open_now.iterdir())) == before


@pytest.mark.parametrize(("name", "path"), [("swap", "swap/data.txt"), ("a.txt", "a.txt")])
def test_a_link_swapped_in_right_after_the_look_is_refused(
    workspace, root, tmp_path, monkeypatch, name, path
):
    """The same race, made certain: the swap happens between the look and the opening."""
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "data.txt").write_text("secret\n")
    (root / "swap").mkdir()
    (root / "swap" / "data.txt").write_text("fine\n")
    target = tmp_path / "evil" if name == "swap" else tmp_path / "secret.txt"
    real = os.stat

    def stat_then_swap(part, *args, **kwargs):
        result = real(part, *args, **kwargs)
        if part == name and not (root / name).is_symlink():
            (root / name).rename(root / "gone")
            (root / name).symlink_to(target)
        return result

    monkeypatch.setattr(os, "stat", stat_then_swap)
    with pytest.raises(CallError, match="leads outside the workspace"):
        text(workspace, path)
