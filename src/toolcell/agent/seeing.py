"""Owns which images a model is sent: those of tool results, and what it gets in place of others.

A model that takes no images reads a note in the image's place, and so does every model of older
images once there are many: an endpoint would refuse the whole request.

Above: the loop, `result_text`. Below: `protocol.messages`, `base.images`. Refuses to know: wires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolcell.base.images import picture_for_model_base64
from toolcell.protocol.messages import ImagePart, Message
from toolcell.tools.content import ImageContent

MAX_IMAGES: Final = 20
"""Images of one request; beyond that the strictest endpoint takes only small ones."""
MAX_CHARS: Final = 20 << 20
"""Base64 of one request's images: the strictest endpoint takes 32 MB, text and tools included."""
_TOO_MANY: Final = f"only the last {MAX_IMAGES} images of a conversation are sent, 15 MB in all"


def seen(messages: Sequence[Message], *, unseen: str = "") -> tuple[Message, ...]:
    """Return the conversation as a model is sent it; the record keeps every image.

    Args:
        messages: The conversation.
        unseen: Why the model is sent no image at all; empty when it is.
    """
    if not any(message.images for message in messages):
        return tuple(messages)
    images, chars = MAX_IMAGES, MAX_CHARS
    out: list[Message] = []
    for message in reversed(messages):
        kept = 0
        for image in reversed(message.images):
            images, chars = images - 1, chars - len(image.data)
            kept += not unseen and images >= 0 and chars >= 0
        missing = len(message.images) - kept
        # The newest are kept, so what is missing comes first.
        out.append(_without(message, missing, unseen or _TOO_MANY) if missing else message)
    return tuple(reversed(out))


def image_part(block: ImageContent) -> ImagePart | str:
    """Return an image of a tool result for a message, or why it cannot be sent."""
    picture = picture_for_model_base64(block.data)
    return picture if isinstance(picture, str) else ImagePart(block.data, picture.mime_type)


def _without(message: Message, count: int, why: str) -> Message:
    """Put notes in the place of the first `count` images."""
    text, images = "", []
    for part in message.parts():
        if isinstance(part, str):
            text += part
        elif count:
            count -= 1
            told = f"[{part.note} omitted: {why}]"
            text += f"\n{told}" if text and not text.endswith("\n") else told
        else:
            images.append(replace(part, at=len(text)))
    return replace(message, text=text, images=tuple(images))
