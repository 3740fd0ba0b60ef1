"""Glob patterns and ignore files: what they match, and that hostile ones cost nothing."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sources.core.conftest import call
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import CallError
from toolcell.sources.core.finding import find_tool
from toolcell.sources.core.globs import Glob
from toolcell.sources.core.ignore import IgnoreFile, kept
from toolcell.sources.core.workspace import WorkspaceRoots


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "py"]),
        ("a*b*c", ["abc", "axxbyyc", "x/abbcc"], ["ab", "acb"]),
        ("src/*.ts", ["src/a.ts"], ["a.ts", "src/x/a.ts", "x/src/a.ts"]),
        ("src/**/*.ts", ["src/a.ts", "src/x/y/a.ts"], ["a.ts", "lib/src/a.ts"]),
        ("**/test/**", ["test/a", "x/test/y/z"], ["test", "tests/a"]),
        ("**", ["a", "a/b"], []),
        ("*.{ts,tsx}", ["a.ts", "b/c.tsx"], ["a.tsxx", "a.{ts"]),
        ("{a,b/{c,d}}", ["a", "b/c", "b/d"], ["b", "c"]),
        ("?[0-9][!a].txt", ["x1b.txt"], ["x1a.txt", "1b.txt", "x/1b.txt"]),
        ("a[", ["a["], ["a"]),
        (r"\*.txt", ["*.txt"], ["a.txt"]),
        ("./sub/x", ["sub/x"], ["x"]),
        ("[]a]x", ["]x", "ax"], ["bx"]),
    ],
)
def test_globs_match(pattern, yes, no):
    glob = Glob(pattern)
    assert [path for path in yes if not glob.matches(path)] == []
    assert [path for path in no if glob.matches(path)] == []


def test_case_may_be_ignored():
    assert Glob("READ*.MD", ignore_case=True).matches("docs/readme.md")
    assert not Glob("READ*.MD").matches("docs/readme.md")


@pytest.mark.parametrize("pattern", ["*a" * 200 + "b", "**/a/" * 60 + "b", "a" + "*" * 500])
def test_hostile_globs_are_quick(pattern):
    started = SYSTEM_CLOCK.monotonic()
    glob = Glob(pattern)
    for _ in range(20):
        glob.matches("a/" * 60 + "a" * 255)
    assert SYSTEM_CLOCK.monotonic() - started < 2


@pytest.mark.parametrize("pattern", ["", "x" * 2000, "{a,b}" * 12])
def test_oversized_globs_are_refused(pattern):
    with pytest.raises(CallError):
        Glob(pattern)


RULES = """
# comment
build/
*.log
!keep.log
/only_top
doc/*.txt
**/cache
a/**/z
trailing\\ \\
node_modules
"""
PATHS = [
    ("build", True),
    ("build", False),
    ("x/build", True),
    ("a.log", False),
    ("x/y/a.log", False),
    ("keep.log", False),
    ("only_top", False),
    ("x/only_top", False),
    ("doc/a.txt", False),
    ("doc/x/a.txt", False),
    ("x/cache", True),
    ("cache", False),
    ("a/z", False),
    ("a/b/c/z", False),
    ("node_modules", True),
    ("x/node_modules", False),
    ("plain.py", False),
]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_ignore_rules_agree_with_git(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(RULES)
    for path, is_directory in PATHS:
        shown = f"{path}/" if is_directory else path
        git = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "-q", "--no-index", shown], check=False
        )
        ours = passed_over(RULES, path, directories=is_directory)
        assert ours == (git.returncode == 0), (path, is_directory)


def passed_over(rules: str, path: str, *, directories: bool = False) -> bool:
    above, slash, name = path.rpartition("/")
    chain = (IgnoreFile("", rules),)
    return kept(chain, above + slash, [name], directories=directories) == []


def test_ignore_files_above_the_start_and_deeper_ones_count_in_their_order():
    above = IgnoreFile("", "/sub/start/x.txt\n*.log\n", way="sub/start/")
    deeper = IgnoreFile("in/", "!keep.log\n/own\n")
    assert kept((above,), "", ["a.log", "x.txt", "y.txt"]) == ["y.txt"]
    assert kept((above,), "in/", ["x.txt"]) == ["x.txt"]
    names = ["a.log", "keep.log", "own"]
    assert kept((above, deeper), "in/", names) == ["keep.log"]
    assert kept((above, deeper), "in/below/", ["keep.log", "own"]) == ["keep.log", "own"]


def test_a_hostile_ignore_file_is_quick():
    started = SYSTEM_CLOCK.monotonic()
    rules = "\n".join(["*a" * 60 + "b", "a/**/" * 30 + "x", "[[[", "\\"] * 50)
    for _ in range(20):
        assert not passed_over(rules, "a/" * 60 + "a" * 255)
    assert SYSTEM_CLOCK.monotonic() - started < 5


LINES = [
    "*.log", "!keep.log", "build", "build/", "/a", "/a/", "a/b", "/a/*.txt", "**/c", "c/**", "!c",
    "a/**/x.txt", "x.*", "[ab].txt", "?", "*", "!*/", "!*.txt", "# no", "", "/build/x*", "b/",
    "\\!odd",
]  # fmt: skip
NAMES = ["a", "b", "c", "build", "x.txt", "keep.log", "a.log", "a.txt", "!odd"]


def grow(rng: random.Random, place: Path, depth: int) -> None:
    """Make a random tree with ignore files in it."""
    place.mkdir()
    if rng.random() < 0.5:
        (place / ".gitignore").write_text("\n".join(rng.sample(LINES, rng.randint(1, 4))))
    for name in rng.sample(NAMES, rng.randint(2, 6)):
        if depth and "." not in name and rng.random() < 0.6:
            grow(rng, place / name, depth - 1)
        else:
            (place / name).write_text("")


def git_would_add(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "-c", "core.quotePath=false"]
    subprocess.run([*command, "init", "-q"], check=True)
    listed = subprocess.run(
        [*command, "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    return listed.stdout.splitlines()


@pytest.mark.anyio
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(12))
async def test_find_gives_what_git_would_add(tmp_path, seed):
    """Trees and ignore files at random; also from a directory below the root."""
    rng = random.Random(seed)
    root = tmp_path / "tree"
    grow(rng, root, 4)
    listed = git_would_add(root)
    find = find_tool(WorkspaceRoots([root]))
    found = (await call(find, pattern="*", hidden=True))["paths"]
    assert sorted(found) == sorted(listed)
    for name in NAMES[:4]:
        if (root / name).is_dir() and any(each.startswith(f"{name}/") for each in listed):
            below = (await call(find, pattern="*", hidden=True, path=name))["paths"]
            assert sorted(below) == sorted(each for each in listed if each.startswith(f"{name}/"))
