"""Public packages for the tests marked `network`: installed once, into pytest's cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

_SECONDS = 200


def cache(request: pytest.FixtureRequest) -> Path:
    """The folder of installed packages."""
    found = request.config.cache
    assert found is not None
    return Path(found.mkdir("mcp-servers"))


def npm_bin(root: Path, *packages: str) -> Path:
    """Install packages from npm; give the folder of their programs."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    missing = [name for name in packages if not (root / "node_modules" / name).is_dir()]
    if missing:
        _run(npm, "install", "--no-audit", "--no-fund", "--prefix", str(root), *missing)
    return root / "node_modules" / ".bin"


def pip_bin(root: Path, name: str, *requirements: str) -> Path:
    """Install packages from PyPI into the environment `name`; give the folder of its programs."""
    folder = root / name
    stamp = folder / ".installed"
    wanted = "\n".join(requirements)
    if not stamp.is_file() or stamp.read_text() != wanted:
        venv.create(folder, clear=True)
        # The pip that is here installs there; to put one into each takes seconds.
        into = (sys.executable, "-m", "pip", "--python", str(folder / "bin/python"))
        _run(*into, "install", "-q", *requirements)
        stamp.write_text(wanted)
    return folder / "bin"


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
