"""The real TypeScript compiler, installed once into pytest's cache."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TypeCheck = Callable[[str, str], list[str]]


@pytest.fixture(scope="session")
def type_check(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> TypeCheck:
    """Return `(file name, text)` → the compiler's complaints under `--strict`."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not on PATH, so there is no TypeScript compiler")
    home: Path = request.config.cache.mkdir("typescript")
    compiler = home / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), "typescript"]
        try:
            subprocess.run(install, check=True, capture_output=True, timeout=50)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip("typescript cannot be installed from the package registry")
    folder = tmp_path_factory.mktemp("types")

    def check(name: str, text: str) -> list[str]:
        path = folder / name
        path.write_text(text, encoding="utf-8")
        options = ["--noEmit", "--strict", "--target", "es2022", "--types", ""]
        done = subprocess.run(
            [str(compiler), *options, str(path)],
            check=False,
            capture_output=True,
            text=True,
            timeout=50,
            cwd=folder,
        )
        return [line for line in done.stdout.splitlines() if "error" in line] or (
            [done.stdout + done.stderr] if done.returncode else []
        )

    return check
