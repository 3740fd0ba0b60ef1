"""Builds the QuickJS engine (WebAssembly) that the wheel ships: hatchling's custom hook.

Owns: the pinned inputs, the compiler call, the build cache, the check of the result.
Above: `pip install`, `python -m build`. Below: the standard library, pip, hatchling.

`native/glue.c` and the pinned QuickJS-NG sources are compiled with the pinned `ziglang` wheel; no
C compiler is needed. The result is the same bit for bit everywhere, so its hash is checked against
`native/engine.lock.json`: same inputs and another result is an error; changed inputs (somebody
edited `glue.c`) are a warning, and `python hatch_build.py --lock` records the new hash. The result
is cached by the hash of all inputs. To build without network, hand in a prebuilt engine:
`TOOLCELL_QUICKJS_WASM=/path/to/engine.wasm pip install .`
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
GLUE = ROOT / "native" / "glue.c"
LOCK = ROOT / "native" / "engine.lock.json"
IN_TREE = ROOT / "src" / "toolcell" / "execution" / "quickjs" / "engine.wasm"
IN_WHEEL = "toolcell/execution/quickjs/engine.wasm"

QUICKJS = ("quickjs-ng", "0.17.0.2")
QUICKJS_SHA256 = "43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef"
SOURCES = ("libregexp.c", "libunicode.c", "dtoa.c")
ZIG = ("ziglang", "0.17.1")
# -O1 runs as fast as -O2 here and compiles in half the time; -Os is a tenth slower.
FLAGS = (
    "-target wasm32-wasi -mexec-model=reactor -O1 -DNDEBUG -D_GNU_SOURCE -fno-sanitize=all "
    "-fno-stack-protector -fno-strict-aliasing -mbulk-memory -mnontrapping-fptoint -msign-ext "
    "-w -s -Wl,-z,stack-size=1048576"
)
PREBUILT = "TOOLCELL_QUICKJS_WASM"
REMEDY = (
    f"To install without network or compiler, set {PREBUILT} to an engine.wasm built elsewhere "
    f"(it is in every toolcell wheel as {IN_WHEEL})."
)


class EngineBuildError(Exception):
    """The engine cannot be built; the text says why and what to do."""


class EngineHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the engine into the wheel, or beside the sources of an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Provide the engine; hatchling calls this once or twice per build."""
        engine = provide_engine()
        if version == "editable":
            place(engine, IN_TREE)
        else:
            build_data["force_include"][str(engine)] = IN_WHEEL


def provide_engine() -> Path:
    """Return the path of a built engine: handed in, cached, or built now.

    Raises:
        EngineBuildError: none can be had.
    """
    handed_in = os.environ.get(PREBUILT)
    if handed_in:
        return accept(Path(handed_in).expanduser())
    cached = cache_folder() / f"{inputs_hash()}.wasm"
    for found in (cached, IN_TREE):
        if found.is_file() and digest(found) == locked_hash():
            return found
    if cached.is_file() and locked_hash() is None:
        return cached
    say("building the QuickJS engine (once per machine; about a minute)")
    with tempfile.TemporaryDirectory(prefix="toolcell-engine-") as folder:
        built = compile_engine(Path(folder))
        check(built)
        place(built, cached)
    return cached


def accept(engine: Path) -> Path:
    """Take a prebuilt engine as it is; one that is not ours bit for bit earns a warning."""
    try:
        head = engine.read_bytes()[:4]
    except OSError as error:
        msg = f"{PREBUILT}={str(engine)!r} cannot be read: {error}"
        raise EngineBuildError(msg) from error
    if head != b"\0asm":
        msg = f"{PREBUILT}={str(engine)!r} is not a WebAssembly module"
        raise EngineBuildError(msg)
    if digest(engine) != locked_hash():
        say(f"warning: {engine} is not the engine of this version; it is used because you say so")
    return engine


def check(built: Path) -> None:
    """Compare a fresh build with the lock.

    Raises:
        EngineBuildError: the inputs are the locked ones, the result is not.
    """
    expected, actual = locked_hash(), digest(built)
    if expected is None:
        say(
            "warning: native/glue.c or the pins changed since native/engine.lock.json was written; "
            "run `python hatch_build.py --lock`"
        )
    elif actual != expected:
        msg = (
            f"the QuickJS engine came out as {actual}, not as {expected}, from the same inputs: "
            f"the compiler that was downloaded is not the one toolcell was released with. {REMEDY}"
        )
        raise EngineBuildError(msg)


def compile_engine(folder: Path) -> Path:
    """Compile the engine in a folder of its own and return its path."""
    sources = fetch_quickjs(folder)
    command, environment = zig(folder)
    shutil.copy(GLUE, folder / "glue.c")
    files = ["glue.c", *(f"quickjs/{name}" for name in SOURCES)]
    sources.rename(folder / "quickjs")
    run(
        [*command, "cc", *FLAGS.split(), "-Iquickjs", *files, "-o", "engine.wasm"],
        "the compiler failed",
        cwd=folder,
        env=environment,
    )
    return folder / "engine.wasm"


def fetch_quickjs(folder: Path) -> Path:
    """Return the folder of the unpacked, hash-checked QuickJS-NG sources."""
    name, version = QUICKJS
    archive = download(folder / "sdist", f"{name}=={version}", "--no-binary", ":all:")
    if digest(archive) != QUICKJS_SHA256:
        msg = f"{archive.name} has the wrong hash: {digest(archive)}. {REMEDY}"
        raise EngineBuildError(msg)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = Path(member.name).parts
            if member.isfile() and len(parts) == 3 and parts[1] == "upstream-quickjs":
                content = tar.extractfile(member)
                target = folder / "unpacked" / parts[2]
                target.parent.mkdir(exist_ok=True)
                if content is not None:
                    target.write_bytes(content.read())
    return folder / "unpacked"


def zig(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command of the pinned compiler: the installed one, else a downloaded one."""
    name, version = ZIG
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig-cache")}
    environment["ZIG_LOCAL_CACHE_DIR"] = environment["ZIG_GLOBAL_CACHE_DIR"]
    with suppress(importlib.metadata.PackageNotFoundError):
        if importlib.metadata.version(name) == version:
            return [sys.executable, "-m", name], environment
    wheel = download(folder / "wheel", f"{name}=={version}", "--only-binary", ":all:")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "zig")  # noqa: S202 - a wheel from the index pip trusts
    binary = folder / "zig" / name / ("zig.exe" if os.name == "nt" else "zig")
    binary.chmod(0o755)
    return [str(binary)], environment


def download(folder: Path, requirement: str, *options: str) -> Path:
    """Fetch one file with pip from the index it is set up for."""
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", *options, "--dest", str(folder), requirement]
    run(command, f"pip cannot download {requirement}")
    return next(folder.iterdir())


def run(
    command: list[str], what: str, *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    """Run a command; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = (done.stderr or done.stdout).strip()[-3000:]
        msg = f"the QuickJS engine cannot be built: {what}:\n{tail}\n{REMEDY}"
        raise EngineBuildError(msg)


def inputs_hash() -> str:
    """Return the hash of all that decides the result."""
    hashed = hashlib.sha256(GLUE.read_bytes())
    hashed.update(repr((QUICKJS, QUICKJS_SHA256, SOURCES, ZIG, FLAGS)).encode())
    return hashed.hexdigest()


def locked_hash() -> str | None:
    """Return the hash the result must have, or None when the inputs are not the locked ones."""
    try:
        lock = json.loads(LOCK.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(lock["engine"]) if lock["inputs"] == inputs_hash() else None


def write_lock(engine: Path) -> None:
    """Record the inputs and the result they gave."""
    lock = {"inputs": inputs_hash(), "engine": digest(engine)}
    LOCK.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cache_folder() -> Path:
    """Return the folder of built engines in the user's cache directory."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "toolcell" / "engine-build"


def place(source: Path, target: Path) -> None:
    """Copy a file so that nobody ever sees half of it."""
    if target.is_file() and digest(target) == digest(source):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent)
    os.close(handle)
    shutil.copy(source, name)
    Path(name).chmod(0o644)
    Path(name).replace(target)


def say(text: str) -> None:
    """Tell the person who builds."""
    sys.stderr.write(f"toolcell: {text}\n")


def main() -> None:
    """Build the engine into the source tree; `--lock` records its hash."""
    if "--lock" in sys.argv[1:]:
        with tempfile.TemporaryDirectory(prefix="toolcell-engine-") as folder:
            built = compile_engine(Path(folder))
            write_lock(built)
            place(built, cache_folder() / f"{inputs_hash()}.wasm")
    place(provide_engine(), IN_TREE)
    say(f"{IN_TREE} is {digest(IN_TREE)}")


if __name__ == "__main__":
    main()
