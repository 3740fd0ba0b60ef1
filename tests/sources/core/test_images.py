"""The image variant of `read` (rule 7.5)."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace

import pytest

from tests.sources.core.conftest import call, context
from toolcell.base.images import MAX_IMAGE_BYTES, picture_of
from toolcell.sources.core.reading import read_tool
from toolcell.tools.content import ImageContent

pytestmark = pytest.mark.anyio

PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    + struct.pack(">II", 640, 480)
    + b"\x08\x06\0\0\0rest\0\0\0\0IEND\xaeB`\x82"
)
GIF = b"GIF89a" + struct.pack("<HH", 12, 34) + b"\0\0\0"
APP = b"\xff\xe0" + struct.pack(">H", 4000) + bytes(3998)
JPEG = b"\xff\xd8" + APP + b"\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, 200, 300) + bytes(40)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + body.ljust(16, b"\0")


@pytest.mark.parametrize(
    ("data", "mime", "size"),
    [
        (PNG, "image/png", (640, 480)),
        (GIF, "image/gif", (12, 34)),
        (JPEG, "image/jpeg", (300, 200)),
        (webp(b"VP8X", b"\0\0\0\0\x0f\0\0\x1f\0\0"), "image/webp", (16, 32)),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\0\x20\0"), "image/webp", (16, 32)),
        (webp(b"VP8L", b"\x2f" + (15 | 31 << 14).to_bytes(4, "little")), "image/webp", (16, 32)),
        (PNG[:18], "image/png", (None, None)),
        (b"\xff\xd8\xff", "image/jpeg", (None, None)),
        (JPEG[:2000], "image/jpeg", (None, None)),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", (None, None)),
    ],
)
async def test_read_describes_an_image_to_a_program(workspace, root, data, mime, size):
    (root / "picture").write_bytes(data)
    nested = replace(context(), parent_id="cell")
    assert await call(read_tool(workspace), path="picture", using=nested) == {
        "kind": "image",
        "path": "picture",
        "mimeType": mime,
        "width": size[0],
        "height": size[1],
        "size": len(data),
    }


async def test_who_calls_read_directly_gets_the_picture_itself(workspace, root):
    (root / "p.png").write_bytes(PNG)
    tool = read_tool(workspace)
    direct = await tool.execute({"path": "p.png"}, context())
    image = direct.content[1]
    assert isinstance(image, ImageContent)
    assert (base64.b64decode(image.data), image.mime_type) == (PNG, "image/png")
    nested = await tool.execute({"path": "p.png"}, replace(context(), parent_id="cell"))
    assert len(nested.content) == 1
    (root / "p.png").write_bytes(PNG + bytes(MAX_IMAGE_BYTES))
    large = await tool.execute({"path": "p.png"}, context())
    assert len(large.content) == 1


def test_no_first_bytes_of_an_image_can_break_the_reader():
    for data in (PNG, GIF, JPEG, webp(b"VP8X", b""), b"\xff\xd8" + b"\xff\xe1\0\0" * 50):
        for end in range(min(len(data), 120)):
            picture_of(data[:end])
