"""Owns cutting a byte stream into lines of bounded length, in time linear in what arrives.

Above: the stdio transport. Below: the standard library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = 512


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: its first and last bytes, and how long it was."""

    head: bytes
    tail: bytes
    size: int


class LineCutter:
    """Takes chunks, gives whole lines without their newline; an overlong line is not kept."""

    __slots__ = ("_head", "_limit", "_parts", "_size", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """Take `chunk` and give the lines it completes."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._take()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        if self._parts:
            self._head = b"".join(self._parts)[:_HEAD]
            self._tail = b"".join(self._parts)[-_HEAD:]
            self._parts = []
        self._head = self._head or part[:_HEAD]
        self._tail = (self._tail + part[-_HEAD:])[-_HEAD:]

    def _take(self) -> bytes | Overlong:
        whole: bytes | Overlong
        if self._size > self._limit:
            whole = Overlong(self._head, self._tail, self._size)
        else:
            whole = b"".join(self._parts)
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return whole
