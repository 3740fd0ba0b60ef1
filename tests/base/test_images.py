"""Which images may be sent to a model: told from their bytes, never from a name or a type."""

import pytest

from tests.pictures import png, text
from toolcell.base.images import (
    MAX_BASE64_CHARS,
    MAX_IMAGE_BYTES,
    decoded_bytes,
    picture_for_model,
    picture_for_model_base64,
    size_text,
)

JPEG = b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x02\x00\x03" + bytes(20)
GIF = b"GIF89a\x03\x00\x02\x00\0\0\0"
WEBP = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\x02\0\0\x01\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (png(640, 480), "image/png, 640x480"),
        (JPEG, "image/jpeg, 3x2"),
        (GIF, "image/gif, 3x2"),
        (WEBP, "image/webp, 3x2"),
        (png(8000, 1), "image/png, 8000x1"),
    ],
)
def test_a_whole_image_is_taken_as_what_its_bytes_say(data, shown):
    assert picture_for_model(data).shown == shown
    assert picture_for_model_base64(text(data)) == picture_for_model(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is no PNG, JPEG, GIF or WebP image"),
        (b"<svg/>", "it is no PNG, JPEG, GIF or WebP image"),
        (b"%PDF-1.7", "it is no PNG, JPEG, GIF or WebP image"),
        (png()[:30], "it is a broken image/png"),
        (png(0, 3), "it is a broken image/png"),
        (b"\xff\xd8\xff", "it is a broken image/jpeg"),
        (WEBP[:-5], "it is a broken image/webp"),
        (png(8001, 1), "it is 8001x1 pixels, a side has at most 8000"),
        (png(1, 100_000), "it is 1x100000 pixels, a side has at most 8000"),
        (png(extra=bytes(MAX_IMAGE_BYTES)), "at most 3932160 can be sent"),
    ],
)
def test_an_image_an_endpoint_would_refuse_is_not_taken(data, why):
    assert why in picture_for_model(data)
    assert why in picture_for_model_base64(text(data))


@pytest.mark.parametrize(
    "data",
    ["x", "QUJ", "QUJD\n", "QU=JD", "Q===", "====", "QUJ-", "QUJD\u00e9\u00e9\u00e9\u00e9"],
)
def test_what_is_no_base64_is_said_to_be_none(data):
    assert picture_for_model_base64(data) == "its data is no base64"


def test_text_that_goes_wrong_far_behind_the_beginning_is_found():
    good = text(png(extra=bytes(1 << 20)))
    assert picture_for_model_base64(good).mime_type == "image/png"
    assert picture_for_model_base64(good[:700_000] + "!" + good[700_001:]) == (
        "its data is no base64"
    )


def test_the_limits_of_bytes_and_of_base64_are_one():
    assert len(text(bytes(MAX_IMAGE_BYTES))) == MAX_BASE64_CHARS


@pytest.mark.parametrize("count", range(1, 8))
def test_sizes_are_those_of_the_bytes(count):
    assert decoded_bytes(text(bytes(count))) == count


def test_sizes_are_told_in_few_digits():
    assert [size_text(n) for n in (812, 12_000, MAX_IMAGE_BYTES)] == [
        "812 bytes",
        "12 KB",
        "3.75 MB",
    ]
