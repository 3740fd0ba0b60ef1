"""Owns the wasm file format: parts one engine build into a code module and data modules.

The code module imports its memory and is compiled once. A data module is nothing but an initial
memory, so that one more catalog costs milliseconds and a cell's memory is copied on write.

Above: images. Below: nothing. Refuses to know: what the memory means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\0asm\x01\0\0\0"
WASM_PAGE = 65536
_PAGE = 4096
_CUSTOM, _IMPORT, _MEMORY, _EXPORT, _START, _DATA, _DATA_COUNT = 0, 2, 5, 7, 8, 11, 12
_I32_CONST, _END = 0x41, 0x0B


class WasmFormatError(Exception):
    """The file is not a module of the shape our build has."""


@dataclass(frozen=True, slots=True)
class EngineParts:
    """A build in two parts.

    Attributes:
        code: A module that imports `env.memory`, and exports it, as WASI's clock demands.
        memory: The initial memory as the linker laid it out.
    """

    code: bytes
    memory: bytes


def split(wasm: bytes) -> EngineParts:
    """Part a build.

    Raises:
        WasmFormatError: it is not a module, or imports a memory already.
    """
    if wasm[:8] != MAGIC:
        msg = "not a WebAssembly module"
        raise WasmFormatError(msg)
    code = bytearray(MAGIC)
    memory = bytearray()
    for kind, body in _sections(wasm):
        match kind:
            case _ if kind == _CUSTOM:
                continue
            case _ if kind == _START:
                msg = "a start function is not expected"
                raise WasmFormatError(msg)
            case _ if kind == _MEMORY:
                memory = bytearray(_minimum_pages(body) * WASM_PAGE)
            case _ if kind == _IMPORT:
                code += _section(kind, _with_memory_import(body))
            case _ if kind == _DATA:
                _fill(memory, body)
                code += _section(kind, b"\0")
            case _ if kind == _DATA_COUNT:
                code += _section(kind, b"\0")
            case _:
                code += _section(kind, body)
    if not memory:
        msg = "a memory is expected"
        raise WasmFormatError(msg)
    return EngineParts(bytes(code), bytes(memory))


def data_module(memory: bytes) -> bytes:
    """Return a module that exports a memory with these contents; its size is whole wasm pages."""
    segments = list(_filled_runs(memory))
    pages = _uleb(len(memory) // WASM_PAGE)
    data = b"".join(
        b"\0" + bytes([_I32_CONST]) + _sleb(at) + bytes([_END]) + _uleb(len(part)) + part
        for at, part in segments
    )
    return b"".join(
        (
            MAGIC,
            _section(_MEMORY, b"\x01\x00" + pages),
            _section(_EXPORT, b"\x01\x06memory\x02\x00"),
            _section(_DATA, _uleb(len(segments)) + data),
        )
    )


def _sections(wasm: bytes) -> Iterator[tuple[int, bytes]]:
    at = 8
    while at < len(wasm):
        kind = wasm[at]
        size, at = _read_uleb(wasm, at + 1)
        if at + size > len(wasm):
            msg = "a section is cut off"
            raise WasmFormatError(msg)
        yield kind, wasm[at : at + size]
        at += size


def _section(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _uleb(len(body)) + body


def _minimum_pages(body: bytes) -> int:
    count, at = _read_uleb(body, 0)
    if count != 1:
        msg = "one memory is expected"
        raise WasmFormatError(msg)
    return _read_uleb(body, at + 1)[0]


def _with_memory_import(body: bytes) -> bytes:
    count, at = _read_uleb(body, 0)
    return _uleb(count + 1) + body[at:] + b"\x03env\x06memory\x02\x00\x01"


def _fill(memory: bytearray, body: bytes) -> None:
    count, at = _read_uleb(body, 0)
    for _ in range(count):
        flags, at = _read_uleb(body, at)
        if flags != 0 or body[at] != _I32_CONST:
            msg = "only active data segments with a constant place are expected"
            raise WasmFormatError(msg)
        offset, at = _read_sleb(body, at + 1)
        if body[at] != _END:
            msg = "only a constant place is expected"
            raise WasmFormatError(msg)
        size, at = _read_uleb(body, at + 1)
        if offset < 0 or offset + size > len(memory):
            msg = "a data segment lies outside the memory"
            raise WasmFormatError(msg)
        memory[offset : offset + size] = body[at : at + size]
        at += size


def _filled_runs(memory: bytes) -> Iterator[tuple[int, bytes]]:
    zero = bytes(_PAGE)
    begin: int | None = None
    for at in range(0, len(memory), _PAGE):
        filled = memory[at : at + _PAGE] != zero
        if filled and begin is None:
            begin = at
        elif not filled and begin is not None:
            yield begin, memory[begin:at]
            begin = None
    if begin is not None:
        yield begin, memory[begin:]


def _read_uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 35:
            msg = "a number is cut off"
            raise WasmFormatError(msg)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _read_sleb(data: bytes, at: int) -> tuple[int, int]:
    begin = at
    value, at = _read_uleb(data, at)
    bits = 7 * (at - begin)
    return (value - (1 << bits) if value >> (bits - 1) else value), at


def _uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        last = (value == 0 and not low & 0x40) or (value == -1 and low & 0x40)
        out.append(low if last else low | 0x80)
        if last:
            return bytes(out)
