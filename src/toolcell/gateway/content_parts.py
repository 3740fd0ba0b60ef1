"""Owns reading the content of a message: of either wire its text, and images where they may be.

Images come as data URLs. Addresses are not loaded: a request would make the gateway reach into the
network on behalf of whoever sent it.

Above: `chat_request`, `responses_request`, `api_routes`. Below: `base.images`, `faults`.
Refuses to know: runs, HTTP, which wire it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolcell.agent.seeing import MAX_IMAGES
from toolcell.base.images import picture_for_model_base64
from toolcell.gateway.faults import invalid
from toolcell.protocol.messages import ImagePart

_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_IMAGES: Final = frozenset({"image_url", "input_image"})
_SHOWN: Final = 60


def text_of(content: object, *, param: str) -> str:
    """Return the text of a message's content: a string, or a list of text parts.

    Raises:
        ApiError: 400: it has parts that are no text.
    """
    return _read(content, param, seeing=False)[0]


def content_of(content: object, *, param: str) -> tuple[str, tuple[ImagePart, ...]]:
    """Return the text and the images of a user's message, or of a tool's result.

    Raises:
        ApiError: 400: it has parts that are neither, or an image that no model can be sent.
    """
    return _read(content, param, seeing=True)


def images_of(urls: Sequence[str], *, param: str, at: int) -> tuple[ImagePart, ...]:
    """Return the images of a message whose text ends at `at`.

    Raises:
        ApiError: 400: there are too many, or one that no model can be sent.
    """
    images: list[ImagePart] = []
    for index, url in enumerate(urls):
        where = f"{param}[{index}]"
        _check_room(images, where)
        images.append(ImagePart(*_loaded(url, where), at))
    return tuple(images)


def _read(content: object, param: str, *, seeing: bool) -> tuple[str, tuple[ImagePart, ...]]:
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list):
        raise invalid("content must be text or a list of parts", param=param)
    text = ""
    images: list[ImagePart] = []
    for index, part in enumerate(content):
        where = f"{param}[{index}]"
        if not isinstance(part, Mapping):
            raise invalid("a content part must be an object", param=where)
        if not _is(part, _IMAGES):
            text += _text(part, where, seeing=seeing)
            continue
        if not seeing:
            message = "images are taken from users and tools only; send text here"
            raise invalid(message, param=where, code="unsupported_parameter")
        _check_room(images, where)
        images.append(_image(part, where, len(text)))
    return text, tuple(images)


def _check_room(images: Sequence[ImagePart], where: str) -> None:
    if len(images) == MAX_IMAGES:
        message = f"one message has at most {MAX_IMAGES} images"
        raise invalid(message, param=where)


def _is(part: Mapping[str, Any], kinds: frozenset[str]) -> bool:
    """Return whether a part is of one of these types; what it says its type is may be anything."""
    kind = part.get("type")
    return isinstance(kind, str) and kind in kinds


def _text(part: Mapping[str, Any], where: str, *, seeing: bool) -> str:
    kind = part.get("type")
    if _is(part, _TEXTS) and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return str(part["refusal"])
    remedy = "send text or images" if seeing else "send text"
    message = f"content parts of type {repr(kind)[:_SHOWN]} are not supported; {remedy}"
    raise invalid(message, param=where)


def _image(part: Mapping[str, Any], where: str, at: int) -> ImagePart:
    """Return the image of a part; the wires differ in where its address stands."""
    given, where = part.get("image_url"), f"{where}.image_url"
    if isinstance(given, Mapping):
        given, where = given.get("url"), f"{where}.url"
    if not isinstance(given, str):
        message = "an image is sent as a data URL, such as data:image/png;base64,…"
        raise invalid(message, param=where)
    return ImagePart(*_loaded(given, where), at)


def _loaded(url: str, where: str) -> tuple[str, str]:
    """Return the base64 of a data URL, and what its bytes are, whatever it says they are."""
    head, comma, data = url.partition(",")
    head = head[:256].lower()
    if not (comma and head.startswith("data:")):
        message = (
            "addresses of images are not loaded; send the image itself, as a data URL such as "
            "data:image/png;base64,…"
        )
        raise invalid(message, param=where, code="unsupported_parameter")
    if not head.endswith(";base64"):
        raise invalid("a data URL of an image must be base64", param=where)
    picture = picture_for_model_base64(data)
    if isinstance(picture, str):
        message = f"this image cannot be sent to a model: {picture}"
        raise invalid(message, param=where, code="invalid_image")
    return data, picture.mime_type
