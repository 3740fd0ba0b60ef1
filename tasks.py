"""The task runner: `python3 tasks.py TASK`. Standard library only; does all the set-up itself.

demo    set up a virtual environment and run `toolcell demo`
test    set up with the test tools and run every test (further words go to pytest)
check   format, lint, types, import rules, house rules, docs
docs    check the documentation; with --write, write its generated pages
bench   run the benchmarks (further words name files in bench/)
setup   only make the virtual environment

The environment is `.venv` beside this file, or `$TOOLCELL_VENV`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
INPUTS = ("pyproject.toml", "hatch_build.py", "native/glue.c")
OLDEST = (3, 11)


def environment() -> Path:
    """Return the folder of the virtual environment."""
    return ROOT / os.environ.get("TOOLCELL_VENV", ".venv")


def executable(name: str) -> str:
    """Return the path of a command in the virtual environment."""
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    return str(environment() / folder / f"{name}{suffix}")


def run(*command: str) -> int:
    """Run a command in the project's folder and return its exit code."""
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def stamp(extra: str) -> str:
    """Return what an up-to-date environment is marked with."""
    hashed = hashlib.sha256(f"{sys.version}|{extra}".encode())
    for name in INPUTS:
        hashed.update((ROOT / name).read_bytes())
    return hashed.hexdigest()


def set_up(extra: str) -> None:
    """Make the environment and install the project, unless that was done already."""
    if sys.version_info < OLDEST:
        sys.exit(f"toolcell needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    marks = environment() / "toolcell-setup.txt"
    done = marks.read_text().split() if marks.exists() else []
    wanted = {stamp(extra), stamp("dev")}
    if wanted & set(done):
        return
    print(f"setting up {environment()} …", flush=True)
    if not (environment() / "pyvenv.cfg").exists():
        venv.create(environment(), with_pip=True)
    target = f".[{extra}]"
    code = run(executable("python"), "-m", "pip", "install", "--quiet", "--editable", target)
    if code:
        sys.exit(f"installing failed (exit code {code}); the lines above say why")
    marks.write_text(stamp(extra))


def check() -> int:
    """Run every check that is not a test; say which one failed."""
    python = executable("python")
    commands: Sequence[tuple[str, tuple[str, ...]]] = (
        ("format", (executable("ruff"), "format", "--check", "--quiet", ".")),
        ("lint", (executable("ruff"), "check", "--quiet", ".")),
        ("types", (executable("mypy"),)),
        ("imports", (executable("lint-imports"), "gates/importlinter.ini")),
        ("house rules", (python, "gates/house_rules.py", "src/toolcell")),
        ("docs", (python, "gates/docs.py")),
    )
    failed = []
    for name, command in commands:
        print(f"— {name}", flush=True)
        if run(*command):
            failed.append(name)
    print(f"check failed: {', '.join(failed)}" if failed else "check passed", flush=True)
    return len(failed)


def bench(names: Sequence[str]) -> int:
    """Run the named benchmarks, or all of them."""
    files = [ROOT / "bench" / f"{name}.py" for name in names] or sorted(ROOT.glob("bench/*.py"))
    return max((run(executable("python"), str(file)) for file in files), default=0)


def main(arguments: Sequence[str]) -> int:
    """Run one task and return its exit code."""
    task, rest = (arguments[0], arguments[1:]) if arguments else ("help", ())
    if task == "demo":
        set_up("all")
        return run(executable("toolcell"), "demo", *rest)
    if task in {"test", "check", "docs", "bench", "setup"}:
        set_up("dev")
    work: dict[str, Callable[[], int]] = {
        "test": lambda: run(executable("pytest"), *rest),
        "check": check,
        "docs": lambda: run(executable("python"), "gates/docs.py", *rest),
        "bench": lambda: bench(rest),
        "setup": lambda: 0,
    }
    if task in work:
        return work[task]()
    print(__doc__)
    return 0 if task in {"help", "--help", "-h"} else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
