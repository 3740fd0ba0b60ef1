"""Owns the lines between Python and the supervisor: their form, their bounds.

To the supervisor: `<verb> <id> <numbers, parted by commas> <payload>`. From it: `<verb> <id>
<JSON object>`. A payload is JSON text without a line break. What comes from the supervisor holds
text of guests: hostile, but framed by code that runs no guest.

Above: `supervisor`. Below: nothing. Refuses to know: what a verb does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolcell.execution.frames import FrameError

# A longer answer is decoded on a thread: a MiB of JSON takes about 10 ms.
DECODE_ON_LOOP = 64 << 10

_LONE = re.compile("[\ud800-\udfff]")
_HEAD = re.compile(rb"([a-z]{1,16}) (\d{1,15}) ")


@dataclass(frozen=True, slots=True)
class Line:
    """One answer, not decoded yet."""

    verb: str
    id: int
    payload: bytes

    def decode(self) -> dict[str, Any]:
        """Return the payload.

        Raises:
            FrameError: it is not a JSON object.
        """
        try:
            value = json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            msg = f"the supervisor sent what is not JSON: {error}"
            raise FrameError(msg) from error
        if not isinstance(value, dict):
            msg = "the supervisor sent what is not an object"
            raise FrameError(msg)
        return value


def command(verb: str, number: int, numbers: tuple[int, ...] = (0,), payload: str = "") -> bytes:
    """Return one line to the supervisor; `payload` is JSON text of any layout.

    A line break in JSON text is layout, since a string holds none; a lone surrogate stands in a
    string and has an escape.
    """
    if "\n" in payload or "\r" in payload:
        payload = payload.replace("\n", " ").replace("\r", " ")
    head = f"{verb} {number} {','.join(map(str, numbers))} "
    try:
        text = payload.encode()
    except UnicodeEncodeError:
        text = _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", payload).encode()
    return head.encode() + text + b"\n"


class LineReader:
    """Puts chunks together to lines of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that `chunk` completes.

        Raises:
            FrameError: a line is too long or has no head.
        """
        start = 0
        while (end := chunk.find(b"\n", start)) != -1:
            self._keep(chunk[start:end])
            line = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            start = end + 1
            yield _line(line)
        if start < len(chunk):
            self._keep(chunk[start:])

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self.limit:
            msg = f"the supervisor sent a line of more than {self.limit} bytes"
            raise FrameError(msg)
        self._parts.append(part)


def _line(line: bytes) -> Line:
    head = _HEAD.match(line)
    if head is None:
        msg = f"the supervisor sent a line without a head: {line[:32]!r}"
        raise FrameError(msg)
    return Line(head[1].decode(), int(head[2]), line[head.end() :])
