"""Owns parked cells: the memory pages that differ from the image, compressed.

Above: cells. Below: `zstandard`. Refuses to know: wasm, JavaScript, time to live.

Numpy would compare pages faster, but importing it costs more than it saves; comparing whole wasm
pages first, then their 4 KiB pages, keeps an ordinary cell well under a millisecond.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

PAGE = 4096
_BLOCK = 65536
_HEADER = struct.Struct("<4s32sIII")
_MAGIC = b"TCQ1"
_ZERO_BLOCK = bytes(_BLOCK)
_ZERO_PAGE = bytes(PAGE)


class SnapshotTooLargeError(Exception):
    """The state is larger than allowed; `size` is in bytes, before compression."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


class SnapshotError(Exception):
    """Bytes that are not a snapshot of this image."""


@dataclass(frozen=True, slots=True)
class Pages:
    """A cell's memory as a difference.

    Attributes:
        size: Bytes of linear memory.
        numbers: The pages that differ, ascending.
        contents: Those pages, one after another.
    """

    size: int
    numbers: array[int]
    contents: bytes


def difference(memory: bytes, base: bytes) -> Pages:
    """Compare a cell's memory with its image; memory grown since counts where it is not zero."""
    numbers = array("I")
    parts: list[bytes] = []
    for number, page in _changed(memory, base):
        numbers.append(number)
        parts.append(page)
    return Pages(len(memory), numbers, b"".join(parts))


def _changed(memory: bytes, base: bytes) -> Iterator[tuple[int, bytes]]:
    for block in range(0, len(memory), _BLOCK):
        now = memory[block : block + _BLOCK]
        before = base[block : block + _BLOCK] or _ZERO_BLOCK
        if now == before:
            continue
        for at in range(0, len(now), PAGE):
            page = now[at : at + PAGE]
            if page != (before[at : at + PAGE] or _ZERO_PAGE):
                yield (block + at) // PAGE, page


def freeze(pages: Pages, image: bytes, limit: int) -> bytes:
    """Return the parked form; `image` is the digest of the image it belongs to.

    Raises:
        SnapshotTooLargeError: header and pages come to more than `limit` bytes.
    """
    size = _HEADER.size + len(pages.numbers) * pages.numbers.itemsize + len(pages.contents)
    if size > limit:
        raise SnapshotTooLargeError(size)
    packed = zstandard.ZstdCompressor(level=1).compress(pages.contents)
    head = _HEADER.pack(_MAGIC, image, pages.size, len(pages.numbers), len(packed))
    body = head + pages.numbers.tobytes() + packed
    return body + hashlib.sha256(body).digest()[:8]


def thaw(parked: bytes, image: bytes) -> Pages:
    """Undo `freeze`.

    Raises:
        SnapshotError: it is damaged or belongs to another image.
    """
    body = parked[:-8]
    if len(body) < _HEADER.size or hashlib.sha256(body).digest()[:8] != parked[-8:]:
        msg = "the parked state is damaged"
        raise SnapshotError(msg)
    magic, made_of, size, count, packed = _HEADER.unpack_from(body)
    numbers = array("I")
    begin = _HEADER.size + count * numbers.itemsize
    if magic != _MAGIC or begin + packed != len(body):
        msg = "the parked state is not one of this version"
        raise SnapshotError(msg)
    if made_of != image:
        msg = "the parked state belongs to another image"
        raise SnapshotError(msg)
    numbers.frombytes(body[_HEADER.size : begin])
    contents = zstandard.ZstdDecompressor().decompress(
        body[begin:], max_output_size=max(count * PAGE, 1)
    )
    if len(contents) != count * PAGE or any((number + 1) * PAGE > size for number in numbers):
        msg = "the parked state is not whole"
        raise SnapshotError(msg)
    return Pages(size, numbers, contents)
