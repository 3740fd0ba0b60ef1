"""Owns every call into wasmtime: engines, modules, instances and their memory.

Above: images, cells, workers. Below: `wasmtime`, which no other file may import.
Refuses to know: JavaScript, frames, steps.

A call through wasmtime's public Python face costs five times one through its own ctypes layer, so
that layer is used when a self-check at first use shows that it still works as expected; else the
public face does the same work. Guest pointers and lengths are never trusted: every read and write
is checked against the memory as it is at that moment.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import wasmtime

WASM_PAGE = 65536
# Above 2 MiB wasmtime overruns its own thread stacks and the process aborts.
MAX_WASM_STACK = 2 << 20
# The only import of the guest besides its memory.
CLOCK = ("wasi_snapshot_preview1", "clock_time_get")
# What native/glue.c exports for the host.
_PARTS = ("begin", "boot", "control", "init", "message", "rest", "script", "step", "take")
_EXPORTS: Final = frozenset(f"cm_{part}" for part in _PARTS)

# What a process's list of open files calls the first memory of guests.
MEMORY_FILE: Final = "toolcell-guest-memory"

TrapKind = Literal["interrupted", "stack", "other"]


class EngineLoadError(Exception):
    """A module cannot be compiled, read or instantiated; the text says why."""


class GuestTrapError(Exception):
    """The guest trapped; its instance must not be called again, its memory may still be read."""

    def __init__(self, message: str, kind: TrapKind) -> None:
        super().__init__(message)
        self.kind = kind


class GuestAddressError(Exception):
    """The guest named memory that it does not have."""


QUICKJS_VERSION: Final = "0.17.0.2"
"""The release of quickjs-ng that the build hook pins."""


def wasmtime_version() -> str:
    """Return the version whose compiled modules can be loaded."""
    return version("wasmtime")


def _trap(error: Any) -> GuestTrapError:
    code = error.trap_code
    if code is wasmtime.TrapCode.INTERRUPT:
        return GuestTrapError("interrupted", "interrupted")
    if code is wasmtime.TrapCode.STACK_OVERFLOW:
        return GuestTrapError("stack exhausted", "stack")
    return GuestTrapError(str(error).strip().rpartition("\n")[2].strip(), "other")


class _FastFunction:
    """One exported function through wasmtime's ctypes layer, without per-call type look-ups."""

    __slots__ = ("_call", "_context", "_function", "_returns", "_size", "_values")

    def __init__(
        self, store: Any, instance: Any, name: str, parameters: int, *, returns: bool
    ) -> None:
        layer = wasmtime._bindings
        self._call = layer._wasmtime_func_call_unchecked
        self._context = store._context()
        found = layer.wasmtime_extern_t()
        wanted = name.encode("ascii")
        letters = (ctypes.c_char * len(wanted)).from_buffer_copy(wanted)
        place = ctypes.byref(instance._instance)
        if not layer._wasmtime_instance_export_get(
            self._context, place, letters, len(wanted), ctypes.byref(found)
        ):
            msg = f"the engine has no export {name!r}"
            raise EngineLoadError(msg)
        self._function = layer.wasmtime_func_t.from_buffer_copy(found.of.func)
        self._size = max(parameters, 1)
        self._values = (layer.wasmtime_val_raw_t * self._size)()
        self._returns = returns

    def __call__(self, *arguments: int) -> int:
        values = self._values
        for index, argument in enumerate(arguments):
            values[index].i64 = argument
        trap = ctypes.POINTER(wasmtime._bindings.wasm_trap_t)()
        error = self._call(self._context, self._function, values, self._size, trap)
        if error:
            raise EngineLoadError(str(wasmtime.WasmtimeError._from_ptr(error)))
        if trap:
            raise _trap(wasmtime.Trap._from_ptr(trap))
        return int(values[0].i32) if self._returns else 0


class _PublicFunction:
    """The same through the public face."""

    __slots__ = ("_function", "_returns", "_store")

    def __init__(
        self, store: Any, instance: Any, name: str, _parameters: int, *, returns: bool
    ) -> None:
        self._store, self._returns = store, returns
        self._function = instance.exports(store)[name]

    def __call__(self, *arguments: int) -> int:
        try:
            result = self._function(self._store, *arguments)
        except wasmtime.Trap as error:
            raise _trap(error) from error
        except wasmtime.WasmtimeError as error:
            raise EngineLoadError(str(error)) from error
        return int(result) if self._returns else 0


_PROBE = """(module (memory (export "memory") 1)
  (func (export "f") (param i32 i64) (result i32)
    (i64.store (i32.const 8) (local.get 1)) (i32.sub (local.get 0) (i32.const 3))))"""


@cache
def call_layer() -> Literal["ctypes", "public"]:
    """Return which way calls go, after trying the quick one on a module of known behaviour."""
    store = wasmtime.Store()
    instance = wasmtime.Instance(store, wasmtime.Module(store.engine, _PROBE), [])
    memory = instance.exports(store)["memory"]
    try:
        function = _FastFunction(store, instance, "f", 2, returns=True)
        right = function(1, -(1 << 40)) == -2 and function(0x80000003, 7) == -(1 << 31)
        data = memory.read(store, 8, 16)
    except (AttributeError, TypeError, ctypes.ArgumentError, EngineLoadError):
        return "public"
    return "ctypes" if right and bytes(data) == (7).to_bytes(8, "little") else "public"


class Instance:
    """One live guest: its store, its memory and its exported functions. One thread at a time."""

    __slots__ = ("_code", "_functions", "_known", "_memory", "_store", "base", "engine")

    def __init__(self, engine: Engine, data: Any, memory_cap: int) -> None:
        store = self._store = wasmtime.Store(engine.raw)
        store.set_wasi(wasmtime.WasiConfig())
        store.set_epoch_deadline(1)
        store.set_limits(memory_size=memory_cap)
        try:
            memory = wasmtime.Instance(store, data, []).exports(store)["memory"]
            clock = engine.linker.get(store, *CLOCK)
            imports = [clock if name == CLOCK else memory for name in engine.imports]
            self._code = wasmtime.Instance(store, engine.code, imports)
        except wasmtime.WasmtimeError as error:
            raise EngineLoadError(str(error)) from error
        self.engine = engine
        self._memory = memory
        self._functions: dict[str, Callable[..., int]] = {}
        self._known = 0
        # Memory keeps its place for life, see `_config`.
        self.base: int = ctypes.addressof(memory.data_ptr(store).contents)

    def call(self, name: str, *arguments: int) -> int:
        """Call an export with integers; an `i32` result comes back signed, no result as 0.

        Raises:
            GuestTrapError: the guest trapped.
        """
        function = self._functions.get(name)
        if function is None:
            kind = _FastFunction if call_layer() == "ctypes" else _PublicFunction
            parameters, returns = self.engine.functions[name]
            function = kind(self._store, self._code, name, parameters, returns=returns)
            self._functions[name] = function
        return function(*arguments)

    def arm(self) -> None:
        """Let the next call run until `Engine.interrupt`, whatever was interrupted before."""
        self._store.set_epoch_deadline(1)

    @property
    def size(self) -> int:
        """Bytes of linear memory now."""
        return int(self._memory.data_len(self._store))

    def grow_to(self, size: int) -> None:
        """Grow linear memory to `size` bytes.

        Raises:
            EngineLoadError: the store's limit does not allow it.
        """
        missing = (size - self.size) // WASM_PAGE
        if missing > 0:
            try:
                self._memory.grow(self._store, missing)
            except wasmtime.WasmtimeError as error:
                raise EngineLoadError(str(error)) from error

    def read(self, offset: int, length: int) -> bytes:
        """Copy guest memory out.

        Raises:
            GuestAddressError: it does not lie within the memory.
        """
        self._check(offset, length)
        return ctypes.string_at(self.base + offset, length)

    def write(self, offset: int, data: bytes) -> None:
        """Copy into guest memory.

        Raises:
            GuestAddressError: it does not lie within the memory.
        """
        self._check(offset, len(data))
        ctypes.memmove(self.base + offset, data, len(data))

    def _check(self, offset: int, length: int) -> None:
        end = offset + length
        # Memory only grows: what lay within it does so still, and is not asked for again.
        if end > self._known:
            self._known = self.size
        if offset < 0 or length < 0 or end > self._known:
            msg = f"{length} bytes at {offset} are outside the guest's memory"
            raise GuestAddressError(msg)

    def close(self) -> None:
        """Free it. Safe to call again."""
        self._functions.clear()
        self._known = 0
        self._store.close()


class Engine:
    """One wasmtime engine with the code module loaded: what one worker thread runs cells on.

    It is an engine of its own, because `interrupt` stops everything that runs on it.
    """

    def __init__(self, code: Path | bytes) -> None:
        """Load compiled code: the path of a file that nobody else can write, or its bytes.

        Raises:
            EngineLoadError: it was not made by this version of wasmtime.
        """
        self.raw = wasmtime.Engine(_config())
        try:
            if isinstance(code, Path):
                self.code = wasmtime.Module.deserialize_file(self.raw, str(code))
            else:
                self.code = wasmtime.Module.deserialize(self.raw, code)
        except wasmtime.WasmtimeError as error:
            raise EngineLoadError(str(error)) from error
        self.linker = wasmtime.Linker(self.raw)
        self.linker.define_wasi()
        self.imports = [(item.module, item.name) for item in self.code.imports]
        self.functions = {
            item.name: (len(item.type.params), bool(item.type.results))
            for item in self.code.exports
            if isinstance(item.type, wasmtime.FuncType)
        }
        unknown = [name for name in self.imports if name not in {CLOCK, ("env", "memory")}]
        if unknown:
            msg = f"the engine asks for imports it must not have: {unknown!r}"
            raise EngineLoadError(msg)
        missing = _EXPORTS - self.functions.keys()
        if missing:
            msg = (
                f"engine.wasm is of another build than this toolcell, it lacks {min(missing)}; "
                "install toolcell again (in a checkout: python3 tasks.py setup)"
            )
            raise EngineLoadError(msg)

    def load_data(self, compiled: bytes) -> Any:
        """Load a compiled data module.

        Raises:
            EngineLoadError: it was not made by this version of wasmtime.
        """
        try:
            return _from_memory_file(self.raw, compiled) or wasmtime.Module.deserialize(
                self.raw, compiled
            )
        except wasmtime.WasmtimeError as error:
            raise EngineLoadError(str(error)) from error

    def instantiate(self, data: Any, memory_cap: int, size: int = 0) -> Instance:
        """Make a guest from a data module: `size` bytes or more, at most `memory_cap`.

        Raises:
            EngineLoadError: it cannot be made.
        """
        instance = Instance(self, data, memory_cap)
        try:
            instance.grow_to(size)
        except EngineLoadError:
            instance.close()
            raise
        return instance

    def interrupt(self) -> None:
        """Trap whatever runs on this engine. Callable from any thread."""
        self.raw.increment_epoch()


def _from_memory_file(raw: Any, compiled: bytes) -> Any:
    """Load a module from an anonymous file, or return None where that cannot be done.

    Guests then map their first memory from that file. Of a module that was loaded from bytes,
    wasmtime copies the memory to a file of its own and seals it, which the kernel refuses at times
    ("cannot add seals to the memfd", while a page is being moved) and on some hosts always.
    """
    if sys.platform != "linux":
        return None
    try:
        with os.fdopen(os.memfd_create(MEMORY_FILE, os.MFD_CLOEXEC), "wb") as file:
            file.write(compiled)
            file.flush()
            return wasmtime.Module.deserialize_file(raw, f"/proc/self/fd/{file.fileno()}")
    except (OSError, wasmtime.WasmtimeError):
        return None


def _config() -> Any:
    config = wasmtime.Config()
    config.max_wasm_stack = MAX_WASM_STACK
    config.epoch_interruption = True
    config.memory_init_cow = True
    # Growing must not move the memory: the host pokes the guest's flag while it runs.
    config.memory_may_move = False
    return config


def can_load(code: Path) -> bool:
    """Return whether this process can load a compiled code module."""
    try:
        Engine(code)
    except EngineLoadError:
        return False
    return True


def compile_module(wasm: bytes) -> bytes:
    """Compile a module to bytes that `Engine` and `Engine.load_data` take.

    Raises:
        EngineLoadError: it is not a valid module.
    """
    try:
        return bytes(wasmtime.Module(wasmtime.Engine(_config()), wasm).serialize())
    except wasmtime.WasmtimeError as error:
        msg = f"wasmtime cannot compile it: {error}"
        raise EngineLoadError(msg) from error
