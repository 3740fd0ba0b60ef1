"""Owns what the request bodies of all wires share: reserved keys, safe names, images, the bytes.

Above: the body of each wire. Below: `base`, `protocol`. Refuses to know: the SDKs, HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from toolcell.base.jsontext import dumps
from toolcell.errors import ProviderError
from toolcell.protocol.messages import ImagePart

_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def refuse_reserved(options: Mapping[str, Any], reserved: Collection[str]) -> None:
    """Refuse options that are the request itself.

    Raises:
        ProviderError: an option tries to set a reserved key.
    """
    taken = sorted(set(reserved).intersection(options))
    if taken:
        message = f"model option {taken[0]!r} cannot be set: it is part of the request itself"
        raise ProviderError(message)


def encode(body: Mapping[str, Any]) -> bytes:
    """Return the bytes that are sent; a lone surrogate, which no endpoint takes, becomes U+FFFD.

    Raises:
        ProviderError: an option or a schema holds something JSON cannot carry.
    """
    try:
        text = dumps(body)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the request to the model is not JSON: {error}; check options and tool schemas"
        raise ProviderError(message) from error
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def data_url(image: ImagePart) -> str:
    """Return an image as the wires of OpenAI take it."""
    return f"data:{image.mime_type};base64,{image.data}"


def wire_name(name: str) -> str:
    """Return a tool name or call id of the history in letters every endpoint accepts.

    A model may have called a tool that does not exist by a name that no endpoint takes back; the
    next request must not be refused because of it (CN-08).
    """
    trimmed = name.strip()
    if _SAFE.fullmatch(trimmed):
        return trimmed
    return re.sub(r"[^A-Za-z0-9_-]+", "_", trimmed)[:64] or "unnamed"
