"""Owns what is kept of a process's output: the beginning and the end, within a bound.

Above: `sources.core.shell_session`. Below: nothing. Refuses to know: processes.
"""

from __future__ import annotations


class OutputBuffer:
    """Bytes of one stream; of more than `limit` the first and last halves are kept."""

    __slots__ = ("_head", "_limit", "_tail", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def truncated(self) -> bool:
        """Whether bytes were left out."""
        return self._total > self._limit

    def add(self, data: bytes) -> None:
        """Take more."""
        self._total += len(data)
        room = self._limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        keep = self._limit - self._limit // 2
        if len(self._tail) > 2 * keep:
            del self._tail[:-keep]

    def text(self) -> str:
        """Return what was kept, as UTF-8 with U+FFFD for what is not."""
        keep = self._limit - self._limit // 2
        tail = bytes(self._tail[-keep:])
        left_out = self._total - len(self._head) - len(tail)
        if left_out <= 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head = bytes(self._head).decode("utf-8", "replace")
        return f"{head}\n[{left_out} bytes left out]\n{tail.decode('utf-8', 'replace')}"
