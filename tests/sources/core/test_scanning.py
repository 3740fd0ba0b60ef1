"""Searching many files in one buffer gives what searching each by itself would give."""

from __future__ import annotations

import os
import random
import re

import pytest

from tests.sources.core.conftest import call
from toolcell.sources.core import scanning
from toolcell.sources.core.grepping import grep_tool
from toolcell.sources.core.workspace import WorkspaceRoots

pytestmark = pytest.mark.anyio

PATTERNS = [
    "^$",
    "x*",
    "$",
    "^b",
    "a$",
    r"\bb",
    r"\Ba",
    "(?i)B+$",
    r"\Aa",
    r"b\z",
    "(?-m)^b",
    "(?-m)a$",
    "[^a]",
    "é",
    r"\r",
    "a|^$",
]


def expected(files: dict[str, bytes], pattern: str) -> tuple[list[tuple[str, int, str]], int]:
    """Line by line with Python's `re`, whose `\\A` and `\\z` are those of a file."""
    pattern = pattern.replace(r"\z", r"\Z")
    whole = pattern.startswith((r"\A", "(?-m)^")), pattern.endswith((r"\Z", "(?-m)a$"))
    pattern = pattern.replace("(?-m)", "")
    found = []
    skipped = 0
    for path, data in sorted(files.items()):
        if b"\0" in data[:8192]:
            skipped += 1
            continue
        text = data.replace(b"\r\n", b"\n").decode("utf-8", "replace")
        lines = text.split("\n")
        at_end = len(lines) if lines[-1] else 0  # such a line alone reaches the end of the text
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            if (whole[0] and number > 1) or (whole[1] and number != at_end):
                continue
            if re.search(pattern, line, re.ASCII):
                found.append((path, number, line[:400]))
    return found, skipped


def content(rng: random.Random) -> bytes:
    pieces = [b"a", b"b", b"ab", b"\n", b"\n\n", b"\r\n", b"\r", b" ", "é".encode(), b"B", b"x"]
    data = b"".join(rng.choices(pieces, k=rng.choice((0, 1, 2, 5, 12))))
    if rng.random() < 0.1:
        data += b"\0b\n"
    if rng.random() < 0.05:
        data = b"z" * 9000 + b"\n" + data + b"\0"  # a NUL so late makes no file binary
    return data


@pytest.mark.parametrize("batch", [8, 200, 1 << 20])
async def test_files_in_one_buffer_give_the_lines_each_would_give(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(scanning, "_FIRST_BATCH", batch)
    monkeypatch.setattr(scanning, "BATCH_BYTES", max(batch, 400))
    rng = random.Random(batch)
    files = {f"f{number:03}.txt": content(rng) for number in range(150)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    grep = grep_tool(WorkspaceRoots([tmp_path]))
    for pattern in PATTERNS:
        found = await call(grep, pattern=pattern, limit=10_000)
        lines = [(each["path"], each["line"], each["text"][:400]) for each in found["matches"]]
        assert (lines, found["skipped"]) == expected(files, pattern), pattern
        assert found["files"] == len(files) - found["skipped"]
        for limit in (1, 7, 40):
            less = await call(grep, pattern=pattern, limit=limit)
            assert less["matches"] == found["matches"][:limit], pattern
            assert less["truncated"] is (len(lines) > limit), pattern


async def test_large_files_keep_their_place_among_small_ones(tmp_path):
    (tmp_path / "a.txt").write_text("needle a\n")
    (tmp_path / "b.txt").write_text("filler\n" * 20_000 + "needle b\n")
    (tmp_path / "c.txt").write_bytes(b"needle\0" + b"z" * 100_000)
    (tmp_path / "d.txt").write_text("x" * (scanning.SLOT_BYTES - 1) + "\nneedle d")
    (tmp_path / "e.txt").write_text("needle e")
    found = await call(grep_tool(WorkspaceRoots([tmp_path])), pattern="needle", literal=True)
    assert [(each["path"], each["line"]) for each in found["matches"]] == [
        ("a.txt", 1),
        ("b.txt", 20_001),
        ("d.txt", 2),
        ("e.txt", 1),
    ]
    assert (found["files"], found["skipped"]) == (4, 1)


async def test_a_tree_larger_than_many_buffers_is_searched_in_order(tmp_path):
    """Two buffers are filled in turn while the other one is searched."""
    wanted = []
    for number in range(800):
        place = tmp_path / f"d{number // 100}"
        place.mkdir(exist_ok=True)
        lines = ["some words of text"] * 400
        if number % 3 == 0:
            lines[number % 400] = f"needle {number}"
            wanted.append(
                (f"d{number // 100}/{number:04}.txt", number % 400 + 1, f"needle {number}")
            )
        (place / f"{number:04}.txt").write_text("\n".join(lines))
    grep = grep_tool(WorkspaceRoots([tmp_path]))
    for _ in range(3):
        found = await call(grep, pattern=r"needle \d+$", limit=10_000)
        lines = [(each["path"], each["line"], each["text"][:400]) for each in found["matches"]]
        assert lines == wanted
        assert found["files"] == 800


async def test_text_around_bytes_that_are_no_utf8_is_found(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"one\ncaf\xe9 noir\n")
    grep = grep_tool(WorkspaceRoots([tmp_path]))
    for arguments in ({"literal": True}, {}, {"ignoreCase": True}):
        (found,) = (await call(grep, pattern=" noir", **arguments))["matches"]
        assert (found["line"], found["text"]) == (2, "caf\ufffd noir")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_unreadable_files_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    (tmp_path / "a.txt").chmod(0)
    found = await call(grep_tool(WorkspaceRoots([tmp_path])), pattern="one")
    assert ([each["path"] for each in found["matches"]], found["skipped"]) == (["b.txt"], 1)


async def test_what_became_a_pipe_or_a_link_after_it_was_listed_is_not_read(tmp_path, monkeypatch):
    """Between the look into the directory and the opening anything may be put there."""
    outside = tmp_path / "outside.txt"
    outside.write_text("needle\n")
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text("needle\n")
    real = scanning._read_into

    def swapped(name: str, directory: int, room: memoryview) -> int:
        if name != "c":
            (folder / name).unlink()
            os.mkfifo(folder / name) if name == "a" else (folder / name).symlink_to(outside)
        return real(name, directory, room)

    monkeypatch.setattr(scanning, "_read_into", swapped)
    found = await call(grep_tool(WorkspaceRoots([folder])), pattern="needle")
    assert [each["path"] for each in found["matches"]] == ["c"]
    assert found["skipped"] == 1


async def test_a_file_system_that_gives_less_than_there_is_at_a_time_hides_nothing(
    tmp_path, monkeypatch
):
    """As a network file system may; the end of a file is where nothing more comes."""
    sizes = {"page": 4096, "pages": 40_000, "large": 300_000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * 100 + b"\n" + b"y" * (size - 108) + b"\nneedle")
    readv, read = os.readv, os.read
    monkeypatch.setattr(os, "readv", lambda fd, rooms: readv(fd, [rooms[0][:4096]]))
    monkeypatch.setattr(os, "read", lambda fd, count: read(fd, min(count, 8192)))
    found = await call(grep_tool(WorkspaceRoots([tmp_path])), pattern="^needle$")
    assert {each["path"]: each["line"] for each in found["matches"]} == dict.fromkeys(sizes, 3)
    assert found["files"] == 3
