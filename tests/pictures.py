"""Small real pictures for tests."""

import base64
import struct
import zlib

from toolcell.protocol.messages import ImagePart


def png(width=2, height=1, *, extra=b"", shade=0):
    """Return a whole grey PNG; `extra` is put into a chunk of its own, to make it larger."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([shade]) * width) * min(height, 64)
    chunks = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    if extra:
        chunks.insert(1, chunk(b"teXt", extra))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def text(data):
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def url(data=None, kind="image/png"):
    """Return a data URL."""
    return f"data:{kind};base64,{text(png() if data is None else data)}"


def part(shade=0, at=None):
    """Return an image of a message."""
    return ImagePart(text(png(shade=shade)), "image/png", at)
