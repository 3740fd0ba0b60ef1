"""Owns images: the initialised memory that every cell of one catalog starts from.

Above: workers. Below: `engine`, `wasmfile`, `modulecache`. Refuses to know: cells, threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolcell.base.jsontext import utf8
from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import GuestImage
from toolcell.execution.quickjs.control import read_control, read_frames
from toolcell.execution.quickjs.engine import (
    QUICKJS_VERSION,
    Engine,
    EngineLoadError,
    GuestTrapError,
    Instance,
    can_load,
    compile_module,
    wasmtime_version,
)
from toolcell.execution.quickjs.modulecache import ModuleCache
from toolcell.execution.quickjs.snapshot import blocks_of
from toolcell.execution.quickjs.wasmfile import WasmFormatError, data_module, split

ENGINE_WASM = Path(__file__).with_name("engine.wasm")
_MAKING_CAP = 256 << 20
_MAKING_FRAMES = 1 << 20
_CONTROLLER, _EXTENSION = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class EngineCode:
    """The engine, compiled once per machine and read once per process.

    Attributes:
        code: The compiled code module.
        base: The compiled data module of the engine before anything ran.
    """

    code: Path | bytes
    base: bytes


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Image:
    """One catalog's initial memory.

    Attributes:
        key: Content hash of the guest image it was made from.
        blocks: The memory itself, in the blocks that snapshots compare.
        size: Its bytes, whole wasm pages.
        digest: SHA-256 of it: what a snapshot of a cell refers to.
        compiled: The compiled data module.
        control: Guest address of the control block.
    """

    key: str
    blocks: tuple[bytes, ...]
    size: int
    digest: bytes
    compiled: bytes
    control: int


def identify_engine(wasm: Path) -> str:
    """Return for people what the engine is, by its content.

    Raises:
        RuntimeUnavailableError: the file cannot be read.
    """
    digest = hashlib.sha256(_engine_bytes(wasm)).hexdigest()[:12]
    origin = "part of toolcell" if wasm == ENGINE_WASM else str(wasm)
    return f"quickjs-ng {QUICKJS_VERSION}, build {digest} ({origin}), wasmtime {wasmtime_version()}"


def load_engine_code(
    wasm: Path, cache: ModuleCache, on_progress: Callable[[str], None]
) -> EngineCode:
    """Read the engine's wasm file and compile it, or find it compiled in the cache.

    Raises:
        RuntimeUnavailableError: the file is missing or is not our engine.
    """
    data = _engine_bytes(wasm)
    try:
        parts = split(data)
        base = compile_module(data_module(parts.memory))
        key = f"{hashlib.sha256(parts.code).hexdigest()[:32]}-wasmtime-{wasmtime_version()}"

        def compile_code() -> bytes:
            on_progress("Compiling the QuickJS engine (once per machine)")
            return compile_module(parts.code)

        return EngineCode(cache.load(key, compile_code, can_load), base)
    except (WasmFormatError, EngineLoadError) as error:
        msg = f"executor 'quickjs' is not available: {str(wasm)!r} is not a usable engine: {error}"
        raise RuntimeUnavailableError(msg) from error


def _engine_bytes(wasm: Path) -> bytes:
    try:
        return wasm.read_bytes()
    except OSError as error:
        msg = (
            f"executor 'quickjs' is not available: its engine {str(wasm)!r} cannot be read "
            f"({error.strerror}); reinstall toolcell, or hand in a prebuilt engine as "
            f"docs/engine.md says"
        )
        raise RuntimeUnavailableError(msg) from error


def make_image(engine: Engine, code: EngineCode, source: GuestImage) -> Image:
    """Start a guest, evaluate the prelude in it and keep its memory.

    Raises:
        RuntimeUnavailableError: the prelude does not evaluate; the text names the script.
        EngineLoadError: no guest can be made.
    """
    instance = engine.instantiate(engine.load_data(code.base), _MAKING_CAP)
    try:
        instance.call("_initialize")
        control = instance.call("cm_control") & 0xFFFFFFFF
        _demand(instance, control, instance.call("cm_init"), "the engine")
        for index, script in enumerate((source.controller, *source.extensions)):
            which = _EXTENSION if index else _CONTROLLER
            text = _put(instance, script.source)
            name = _put(instance, script.name)
            rc = instance.call("cm_script", which, *text, name[0])
            _demand(instance, control, rc, f"prelude script {script.name!r}")
        rc = instance.call("cm_boot", *_put(instance, source.data))
        _demand(instance, control, rc, "the prelude")
        memory = instance.read(0, instance.size)
    except GuestTrapError as error:
        msg = f"the prelude cannot be evaluated: {error}"
        raise RuntimeUnavailableError(msg) from error
    finally:
        instance.close()
    compiled = compile_module(data_module(memory))
    return Image(
        key=source.key,
        blocks=blocks_of(memory),
        size=len(memory),
        digest=hashlib.sha256(memory).digest(),
        compiled=compiled,
        control=control,
    )


def _put(instance: Instance, text: str) -> tuple[int, int]:
    data = utf8(text)
    address = instance.call("cm_message", len(data)) & 0xFFFFFFFF
    if not address:
        msg = "the prelude does not fit the engine's memory"
        raise RuntimeUnavailableError(msg)
    instance.write(address, data + b"\0")
    return address, len(data)


def _demand(instance: Instance, control: int, rc: int, what: str) -> None:
    if rc == 0:
        return
    frames = read_frames(instance, read_control(instance, control), _MAKING_FRAMES)
    said = "; ".join(text.strip() for _, text in frames) or f"code {rc}"
    msg = f"{what} cannot be evaluated: {said}"
    raise RuntimeUnavailableError(msg)
