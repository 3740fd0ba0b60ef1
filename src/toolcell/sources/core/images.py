"""Owns telling images from their first bytes: kind and size in pixels.

Above: reading. Below: nothing. Refuses to know: files, and what is in the picture.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 256 << 10
"""What is looked at: the size of a JPEG may stand behind large metadata."""

_JPEG_SIZES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Picture:
    """What the first bytes say; a size is None when they do not say it."""

    mime_type: str
    width: int | None = None
    height: int | None = None


def picture_of(head: bytes) -> Picture | None:
    """Return the kind of image that starts with `head`; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _sized("image/png", head[16:24], ">II")
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _sized("image/gif", head[6:10], "<HH")
    if head.startswith(b"\xff\xd8\xff"):
        return _jpeg(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    return None


def _sized(mime_type: str, data: bytes, form: str) -> Picture:
    try:
        width, height = struct.unpack(form, data)
    except struct.error:
        return Picture(mime_type)
    return Picture(mime_type, width, height)


def _jpeg(head: bytes) -> Picture:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return Picture("image/jpeg", width, height)
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return Picture("image/jpeg")


def _webp(head: bytes) -> Picture:
    kind, body = head[12:16], head[20:30]
    if len(body) < 10:
        return Picture("image/webp")
    if kind == b"VP8X":
        width = int.from_bytes(body[4:7], "little") + 1
        return Picture("image/webp", width, int.from_bytes(body[7:10], "little") + 1)
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", body[6:10])
        return Picture("image/webp", width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return Picture("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return Picture("image/webp")
