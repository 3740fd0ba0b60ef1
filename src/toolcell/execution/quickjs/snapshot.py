"""Owns parked cells: the memory pages that differ from the image, compressed.

Above: cells. Below: `zstandard`. Refuses to know: wasm, JavaScript, time to live.

Numpy would compare pages faster, but importing it costs more than it saves; comparing whole wasm
pages first, then their 4 KiB pages, keeps an ordinary cell well under a millisecond.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import zstandard

PAGE = 4096
BLOCK = 65536
_HEADER = struct.Struct("<4s32sIII")
_MAGIC = b"TCQ1"
_ZERO_BLOCK = bytes(BLOCK)


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


def blocks_of(memory: bytes) -> tuple[bytes, ...]:
    """Cut an image's memory into the blocks that `difference` compares."""
    return tuple(memory[at : at + BLOCK] for at in range(0, len(memory), BLOCK))


def difference(
    read: Callable[[int, int], bytes],
    size: int,
    base: tuple[bytes, ...],
    most: int | None = None,
) -> Pages:
    """Compare a cell's memory with its image; memory grown since counts where it is not zero.

    `read(offset, length)` copies `size` bytes of memory out in blocks, which are small enough to be
    served from the allocator's own stock. Contents beyond `most` bytes are counted and not copied:
    such a difference is too large to be kept, and a copy of it might be too large to be made.
    """
    numbers = array("I")
    parts: list[bytes] = []
    for index in range(size // BLOCK):
        now = read(index * BLOCK, BLOCK)
        before = base[index] if index < len(base) else _ZERO_BLOCK
        if now == before:
            continue
        for at in range(0, BLOCK, PAGE):
            page = now[at : at + PAGE]
            if page != before[at : at + PAGE]:
                numbers.append((index * BLOCK + at) // PAGE)
                if most is None or len(numbers) * PAGE <= most:
                    parts.append(page)
    return Pages(size, numbers, b"".join(parts))


def runs(pages: Pages) -> Iterator[tuple[int, bytes]]:
    """Return offsets and contents, neighbouring pages in one piece."""
    numbers, begin = pages.numbers, 0
    for index in range(1, len(numbers) + 1):
        if index == len(numbers) or numbers[index] != numbers[index - 1] + 1:
            yield numbers[begin] * PAGE, pages.contents[begin * PAGE : index * PAGE]
            begin = index


def freeze(pages: Pages, image: bytes, limit: int) -> bytes:
    """Return the parked form; `image` is the digest of the image it belongs to.

    Raises:
        SnapshotTooLargeError: header and pages come to more than `limit` bytes.
    """
    size = _HEADER.size + len(pages.numbers) * (pages.numbers.itemsize + PAGE)
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
