"""Owns telling images from their bytes: kind, size in pixels, and whether a model can be sent one.

Above: file tools, the agent loop, the gateway. Below: nothing. Refuses to know: files, wires, and
what is in the picture.
"""

from __future__ import annotations

import binascii
import struct
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

HEAD_BYTES: Final = 256 << 10
"""What is looked at: the size of a JPEG may stand behind large metadata."""

MAX_BASE64_CHARS: Final = 5 << 20
"""One image at most, as it is sent: the strictest limit of the endpoints toolcell speaks to."""
MAX_IMAGE_BYTES: Final = MAX_BASE64_CHARS // 4 * 3
"""The same as a file: 3.75 MiB."""
MAX_SIDE: Final = 8000
"""Pixels of a side at most; the same endpoints refuse more."""

_HEAD_CHARS: Final = HEAD_BYTES // 3 * 4
_TAIL_CHARS: Final = 4096
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

_JPEG_SIZES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Picture:
    """What the first bytes say; a size is None when they do not say it."""

    mime_type: str
    width: int | None = None
    height: int | None = None

    @property
    def shown(self) -> str:
        """For people and models: `image/png, 640x480`."""
        if self.width is None or self.height is None:
            return self.mime_type
        return f"{self.mime_type}, {self.width}x{self.height}"


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


def picture_for_model(data: bytes, size: int | None = None) -> Picture | str:
    """Return what an image is, or why no model can be sent it.

    An endpoint that refuses an image refuses every later request of the conversation as well, so
    what it would refuse must not get into one.

    Args:
        data: The image; of one that is too large, the beginning will do.
        size: How many bytes it has, when those are not all.
    """
    size = len(data) if size is None else size
    if size > MAX_IMAGE_BYTES:
        return _too_large(size)
    return _usable(data[:HEAD_BYTES], data[-_TAIL_CHARS:], len(data))


def picture_for_model_base64(data: str) -> Picture | str:
    """Return the same of base64 text, which is decoded no further than needed."""
    if len(data) > MAX_BASE64_CHARS:
        return _too_large(decoded_bytes(data))
    try:
        raw = data.encode("ascii")
        whole = len(raw) % 4 == 0 and not raw.rstrip(b"=").translate(None, _ALPHABET)
        if not whole or raw[-3:] == b"===":
            return "its data is no base64"
        head = binascii.a2b_base64(raw[:_HEAD_CHARS])
        tail = binascii.a2b_base64(raw[-_TAIL_CHARS:])
    except (UnicodeEncodeError, binascii.Error):
        return "its data is no base64"
    return _usable(head, tail, decoded_bytes(data))


def decoded_bytes(data: str) -> int:
    """Return how many bytes base64 text stands for."""
    return len(data) * 3 // 4 - data.count("=", -2)


def base64_text(data: bytes) -> str:
    """Return bytes as base64 text."""
    return b64encode(data).decode("ascii")


def size_text(size: int) -> str:
    """Return a size for people and models: `812 bytes`, `12 KB`, `3.75 MB`."""
    if size < 1024:
        return f"{size} bytes"
    if size < 1 << 20:
        return f"{round(size / 1024)} KB"
    return f"{size / (1 << 20):.3g} MB"


def _too_large(size: int) -> str:
    return f"it has {size} bytes, at most {MAX_IMAGE_BYTES} can be sent"


def _usable(head: bytes, tail: bytes, size: int) -> Picture | str:
    picture = picture_of(head)
    if picture is None:
        return "it is no PNG, JPEG, GIF or WebP image"
    if not picture.width or not picture.height or not _complete(picture, head, tail, size):
        return f"it is a broken {picture.mime_type}"
    if max(picture.width, picture.height) > MAX_SIDE:
        return f"it is {picture.width}x{picture.height} pixels, a side has at most {MAX_SIDE}"
    return picture


def _complete(picture: Picture, head: bytes, tail: bytes, size: int) -> bool:
    """Whether it goes on to its end, as far as that can be told without decoding it."""
    match picture.mime_type:
        case "image/png":
            return b"IEND" in tail
        case "image/webp":
            return int.from_bytes(head[4:8], "little") + 8 <= size
        case _:
            return True


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
