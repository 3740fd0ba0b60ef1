"""`read`, `ls`, `find`, `grep`: results as their contracts say, limits, hostile input."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import anyio
import pytest

from tests.sources.core.conftest import call, context
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import CallError
from toolcell.schema.hints import input_hint, output_hint
from toolcell.sources.core import reading, work
from toolcell.sources.core.finding import find_tool
from toolcell.sources.core.grepping import grep_tool
from toolcell.sources.core.listing import ls_tool
from toolcell.sources.core.reading import read_tool
from toolcell.sources.core.shell import ShellOptions
from toolcell.sources.core.toolset import core_tools

pytestmark = pytest.mark.anyio


def test_the_file_tools_have_their_names_and_state_whether_they_are_replay_safe(workspace):
    """Issue part 4; rule 3.13, BEHAVIOURS 212: audited core reads may run again."""
    tools = core_tools(workspace)
    assert [(each.name, each.replay_safe) for each in tools] == [
        ("read", True),
        ("ls", True),
        ("find", True),
        ("grep", True),
        ("write", False),
        ("edit", False),
        ("apply_patch", False),
        ("image", True),
    ]


async def test_read_gives_the_text(workspace):
    """Contract rule 7.5: `read` describes text, truncation with continuation, and not found."""
    assert await call(read_tool(workspace), path="a.txt") == {
        "kind": "text",
        "path": "a.txt",
        "text": "one\ntwo\nthree\n",
        "startLine": 1,
        "lines": 3,
        "size": 14,
        "truncated": False,
        "next": None,
    }


async def test_read_takes_lines_and_goes_on_where_it_ended(workspace):
    """Contract rule 7.5: truncated with continuation."""
    read = read_tool(workspace)
    first = await call(read, path="a.txt", limit=2)
    assert (first["text"], first["truncated"]) == ("one\ntwo\n", True)
    assert first["next"] == {"offset": 3, "byteOffset": 8}
    second = await call(read, path="a.txt", **first["next"])
    assert (second["text"], second["startLine"], second["next"]) == ("three\n", 3, None)
    by_line = await call(read, path="a.txt", offset=3)
    assert by_line == second


async def test_read_of_a_large_file_comes_in_whole_lines_and_joins_without_loss(workspace, root):
    line = "é" * 40
    text = "".join(f"{n} {line}\n" for n in range(30_000)) + "x" * 3_000_000 + "é\nend"
    (root / "big.txt").write_text(text)
    read = read_tool(workspace)
    parts: list[str] = []
    rest: dict[str, Any] | None = {}
    while rest is not None:
        part = await call(read, path="big.txt", **rest)
        assert len(part["text"].encode()) <= reading.MAX_BYTES
        parts.append(part["text"])
        rest = part["next"]
    assert "".join(parts) == text
    assert parts[0].endswith("\n")
    jump = await call(read, path="big.txt", offset=29_999, limit=1)
    assert jump["text"] == f"29998 {line}\n"


async def test_a_model_that_reads_directly_is_shown_a_bounded_part(workspace, root):
    (root / "big.txt").write_text("line\n" * 100_000)
    result = await read_tool(workspace).execute({"path": "big.txt"}, context())
    (block,) = result.content
    assert len(block.to_dict()["text"]) < 66_000
    assert "go on with offset 13108" in block.to_dict()["text"]
    assert len(result.details["text"]) == 500_000


async def test_read_can_take_a_missing_file_as_a_value(workspace):
    """Contract rule 7.5: optional not-found."""
    read = read_tool(workspace)
    with pytest.raises(CallError, match=r"'no\.txt' does not exist"):
        await call(read, path="no.txt")
    assert await call(read, path="no.txt", optional=True) == {"kind": "not_found", "path": "no.txt"}
    with pytest.raises(CallError, match="outside"):
        await call(read, path="../no.txt", optional=True)


@pytest.mark.parametrize(
    ("data", "arguments", "expected"),
    [
        ("héllo\n".encode(), {}, "héllo\n"),
        ("\ufeffhéllo".encode(), {}, "héllo"),
        ("héllo\n".encode("utf-16"), {}, "héllo\n"),
        ("héllo".encode("latin-1"), {"encoding": "latin-1"}, "héllo"),
        ("héllo".encode("latin-1"), {"encoding": "utf-8-lossy"}, "h\ufffdllo"),
        ("日本".encode("shift_jis"), {"encoding": "Shift_JIS"}, "日本"),
        (b"", {}, ""),
        (b"a\r\nb", {}, "a\r\nb"),
    ],
)
async def test_read_knows_encodings(workspace, root, data, arguments, expected):
    (root / "f").write_bytes(data)
    assert (await call(read_tool(workspace), path="f", **arguments))["text"] == expected


@pytest.mark.parametrize(
    ("data", "arguments", "problem"),
    [
        (b"\x89PNG\0\0", {}, r"'f' is binary \(6 bytes\)"),
        (b"ok \xff", {}, r"not UTF-8 text \(byte 3\). Pass encoding"),
        (b"x", {"encoding": "rot13"}, "encoding 'rot13' is not known. Use one of utf-8"),
        (b"\xff", {"encoding": "shift_jis"}, "is not shift_jis text"),
        (b"a\nb\n", {"offset": 9}, "offset 9 is past the end: about 3 lines"),
        (b"abc", {"byteOffset": 9}, r"byteOffset 9 is past the end \(3 bytes\)"),
    ],
)
async def test_read_says_what_it_cannot_read(workspace, root, data, arguments, problem):
    (root / "f").write_bytes(data)
    with pytest.raises(CallError, match=problem):
        await call(read_tool(workspace), path="f", **arguments)


async def test_ls_gives_entries_in_order(workspace, root):
    (root / "link").symlink_to("a.txt")
    listed = await call(ls_tool(workspace))
    assert [(each["name"], each["type"]) for each in listed["entries"]] == [
        ("a.txt", "file"),
        ("link", "symlink"),
        ("sub", "directory"),
    ]
    assert listed["entries"][0]["size"] == 14
    assert (listed["path"], listed["total"], listed["truncated"]) == (".", 3, False)


async def test_ls_of_ten_thousand_entries_comes_in_pages(workspace, root):
    many = root / "many"
    many.mkdir()
    for n in range(10_000):
        os.close(os.open(many / f"{n:05}.txt", os.O_CREAT))
    ls = ls_tool(workspace)
    first = await call(ls, path="many")
    assert (len(first["entries"]), first["nextOffset"], first["total"]) == (1000, 1000, 10_000)
    last = await call(ls, path="many", offset=9_500, limit=10_000)
    assert (len(last["entries"]), last["nextOffset"]) == (500, None)
    found = await call(find_tool(workspace), pattern="many/0999*.txt")
    assert found["paths"] == [f"many/0999{n}.txt" for n in range(10)]


async def test_find_walks_in_order_and_does_not_follow_links(workspace, root, tmp_path):
    (root / "out").symlink_to(tmp_path)
    (root / "sub" / "round").symlink_to(root)
    (root / ".hidden.py").write_text("")
    find = find_tool(workspace)
    assert (await call(find, pattern="*.py"))["paths"] == ["sub/b.py", "sub/deep/c.py"]
    assert (await call(find, pattern="*.py", hidden=True))["paths"][0] == ".hidden.py"
    assert (await call(find, pattern="*.py", path="sub/deep"))["paths"] == ["sub/deep/c.py"]
    assert (await call(find, pattern="*", type="directory"))["paths"] == ["sub", "sub/deep"]
    assert (await call(find, pattern="*.txt"))["paths"] == ["a.txt"]
    assert (await call(find, pattern="*", maxDepth=1))["paths"] == ["a.txt"]
    cut = await call(find, pattern="*", limit=1)
    assert (cut["paths"], cut["truncated"]) == (["a.txt"], True)


async def test_find_and_grep_pass_over_what_git_ignores(workspace, root):
    (root / ".git").mkdir()
    (root / ".git" / "config.py").write_text("import git\n")
    (root / ".gitignore").write_text("build/\n/sub/deep\n")
    (root / "build").mkdir()
    (root / "build" / "x.py").write_text("import x\n")
    find, grep = find_tool(workspace), grep_tool(workspace)
    assert (await call(find, pattern="*.py", hidden=True))["paths"] == ["sub/b.py"]
    assert (await call(find, pattern="*.py", gitignore=False))["paths"] == [
        "build/x.py",
        "sub/b.py",
        "sub/deep/c.py",
    ]
    assert (await call(find, pattern="*.py", path="sub"))["paths"] == ["sub/b.py"]
    found = await call(grep, pattern="import")
    assert [each["path"] for each in found["matches"]] == ["sub/b.py"]


async def test_grep_gives_lines_with_their_numbers_and_context(workspace):
    found = await call(grep_tool(workspace), pattern="^t", context=1)
    assert found == {
        "matches": [
            {"path": "a.txt", "line": 2, "text": "two", "before": ["one"], "after": ["three"]},
            {"path": "a.txt", "line": 3, "text": "three", "before": ["two"], "after": []},
        ],
        "files": 3,
        "skipped": 0,
        "truncated": False,
    }


async def test_the_last_line_is_context_whether_or_not_it_ends_with_a_line_break(workspace, root):
    for end in ("", "\n"):
        for filler in ("", "filler\n" * 20_000):
            (root / "a.txt").write_text(f"{filler}one\ntwo{end}")
            for path in ("a.txt", "."):
                (found,) = (await call(grep_tool(workspace), pattern="^one", path=path, context=2))[
                    "matches"
                ]
                assert found["after"] == ["two"], (end, path)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "o$"}, [2]),
        ({"pattern": "TWO", "ignoreCase": True}, [2]),
        ({"pattern": "e.", "literal": True}, []),
        ({"pattern": "W", "literal": True, "ignoreCase": True}, [2]),
        ({"pattern": r"e\s+t"}, []),
        ({"pattern": "x*"}, [1, 2, 3]),
        ({"pattern": "o", "limit": 1}, [1]),
        ({"pattern": r"^\w{3}$"}, [1, 2]),
    ],
)
async def test_grep_patterns(workspace, arguments, lines):
    found = await call(grep_tool(workspace), path="a.txt", **arguments)
    assert [each["line"] for each in found["matches"]] == lines
    assert found["truncated"] is ("limit" in arguments)


async def test_grep_finds_lines_across_chunks_and_in_windows_files(workspace, root):
    (root / "big.log").write_bytes(b"filler line\r\n" * 700_000 + b"needle\r\n" + b"z" * 9_000_000)
    found = await call(grep_tool(workspace), pattern="needle$", path="big.log")
    assert [(each["line"], each["text"]) for each in found["matches"]] == [(700_001, "needle")]
    long = await call(grep_tool(workspace), pattern="zzz", path="big.log", limit=1)
    assert len(long["matches"][0]["text"]) == 501


async def test_grep_skips_binary_files_and_says_so(workspace, root):
    (root / "bin.dat").write_bytes(b"import\0import\n")
    found = await call(grep_tool(workspace), pattern="import")
    assert [each["path"] for each in found["matches"]] == ["sub/b.py"]
    assert found["skipped"] == 1


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "is not valid: missing"),
        ("(?=x)", "RE2 syntax: no look-around"),
        ("a{99999999}", "is not valid"),
        ("a\nb", "line break"),
    ],
)
async def test_grep_says_what_is_wrong_with_a_pattern(workspace, pattern, problem):
    with pytest.raises(CallError, match=problem):
        await call(grep_tool(workspace), pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(x+x+)+y", "(a|aa)+$", "(.*?,){20}P", "(x?){50}x{50}y", "(?:(?:x{1,10}){1,10}){1,9}y"],
)
async def test_hostile_patterns_neither_hang_nor_hold_the_loop(workspace, root, pattern):
    """Model-made patterns are hostile: time is linear in the text."""
    (root / "x.txt").write_text(("x" * 3000 + "\n") * 200 + "a" * 100_000)
    started = SYSTEM_CLOCK.monotonic()
    await call(grep_tool(workspace), pattern=pattern, path="x.txt")
    assert SYSTEM_CLOCK.monotonic() - started < 5


async def test_a_search_that_runs_out_of_time_returns_what_it_has(workspace, root, monkeypatch):
    for n in range(600):
        (root / f"{n}.txt").write_text("x\n")
    monkeypatch.setattr(work.Stop, "check", lambda _self: True)
    found = await call(find_tool(workspace), pattern="*")
    assert found["truncated"] is True
    assert (await call(grep_tool(workspace), pattern="x"))["truncated"] is True


async def test_a_cancelled_search_ends_its_thread(workspace, root, monkeypatch):
    entered, ended = threading.Event(), threading.Event()
    real = work.Stop.check

    def slow(self: work.Stop) -> bool:
        entered.set()
        try:
            return real(self)
        except work.StoppedError:
            ended.set()
            raise

    monkeypatch.setattr(work.Stop, "check", slow)
    (root / "x.txt").write_text("x\n" * 2_000_000)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: call(grep_tool(workspace), pattern="q|x$", limit=10_000))
        while not entered.is_set():  # noqa: ASYNC110 - a thread sets it
            await anyio.sleep(0.001)
        group.cancel_scope.cancel()
    assert ended.wait(5)


async def test_a_cancelled_search_of_a_tree_ends_both_its_threads(workspace, root, monkeypatch):
    """One reads while the other searches; neither goes on when nobody waits any more."""
    for number in range(400):
        (root / f"{number}.txt").write_text("a line of text\n" * 2_000)
    entered, ended = threading.Event(), threading.Event()
    real = work.Stop.check

    def seen(self: work.Stop) -> bool:
        if threading.current_thread().name.startswith("toolcell-grep"):
            entered.set()
            time.sleep(0.01)
        try:
            return real(self)
        except work.StoppedError:
            ended.set()
            raise

    monkeypatch.setattr(work.Stop, "check", seen)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: call(grep_tool(workspace), pattern="(a.*)+b"))
        with anyio.fail_after(10):
            while not entered.is_set():  # noqa: ASYNC110 - a thread sets it
                await anyio.sleep(0.001)
        group.cancel_scope.cancel()
    assert ended.wait(5)
    with anyio.fail_after(5):
        while any(each.name.startswith("toolcell-grep") for each in threading.enumerate()):  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_search_does_not_hold_up_the_event_loop(workspace, root):
    for number in range(300):
        (root / f"{number}.txt").write_text("a line of text\n" * 4_000)
    late = 0.0
    async with anyio.create_task_group() as group:

        async def search() -> None:
            await call(grep_tool(workspace), pattern=r"(\w+\s?)+;")
            group.cancel_scope.cancel()

        group.start_soon(search)
        while True:
            due = SYSTEM_CLOCK.monotonic() + 0.002
            await anyio.sleep(0.002)
            late = max(late, SYSTEM_CLOCK.monotonic() - due)
    assert late < 0.25


async def test_directories_deeper_than_a_walk_goes_are_counted(workspace, root):
    deep = root
    for _ in range(70):
        deep = deep / "d"
        deep.mkdir()
    (deep / "x.txt").write_text("needle\n")
    found = await call(find_tool(workspace), pattern="x.txt")
    assert (found["paths"], found["unreadable"]) == ([], 1)
    assert (await call(grep_tool(workspace), pattern="needle"))["skipped"] == 1
    assert (await call(find_tool(workspace), pattern="x.txt", maxDepth=3))["unreadable"] == 0
    below = await call(find_tool(workspace), pattern="x.txt", path="/".join("d" * 40))
    assert below["paths"] == ["/".join("d" * 70) + "/x.txt"]


async def test_a_tree_that_changes_while_it_is_searched_is_no_error(workspace, root):
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            folder = root / "churn"
            folder.mkdir(exist_ok=True)
            (folder / "f.txt").write_text("one\n")
            (folder / "f.txt").unlink()
            folder.rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(50):
            await call(grep_tool(workspace), pattern="one")
            await call(ls_tool(workspace), hidden=False)
    finally:
        stop.set()
        thread.join(10)


async def test_names_that_are_no_utf8_survive_the_round_trip(workspace, root):
    name = os.fsdecode(b"bad\xff.txt")
    try:
        (root / name).write_text("odd\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (path,) = (await call(find_tool(workspace), pattern="bad*"))["paths"]
    assert (await call(read_tool(workspace), path=path))["text"] == "odd\n"


def test_every_core_tool_has_complete_hints(workspace):
    """Contract rule 4.3, rule 7.2: closed contracts that fit the quick index."""

    class Nowhere:
        def start_soon(self, function: Any, *args: Any, name: str = "") -> None:
            raise NotImplementedError

    tools = core_tools(workspace, ShellOptions(), spawner=Nowhere())
    assert [each.name for each in tools[-2:]] == ["exec", "process"]
    for each in tools:
        assert output_hint(each.output_schema) is not None, each.name
        hint = input_hint(each.parameters)
        assert hint != "unknown", each.name
        assert "null" not in hint, each.name
    hint = output_hint(tools[0].output_schema)
    assert hint is not None
    assert hint.startswith('{ kind: "text"; ')
    assert hint.endswith('| { kind: "not_found"; path: string }')


async def test_many_matches_with_context_cost_no_more_than_their_lines(workspace, root):
    (root / "many.txt").write_text("match\n" * 300_000)
    started = SYSTEM_CLOCK.monotonic()
    found = await call(
        grep_tool(workspace), pattern="match", path="many.txt", context=10, limit=10_000
    )
    assert (len(found["matches"]), found["truncated"]) == (10_000, True)
    assert SYSTEM_CLOCK.monotonic() - started < 10
