"""Owns what a model reads and sees as the result of a tool it called.

Above: the loop's calls. Below: `seeing`, `tools.content`, `base.untrusted`. Refuses to know: what
code mode puts into its own results; those come as text and are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcell.agent.seeing import MAX_IMAGES, image_part
from toolcell.base.images import decoded_bytes, size_text
from toolcell.base.jsontext import clip_utf8, dumps, utf8_length
from toolcell.base.untrusted import wrapped
from toolcell.protocol.messages import ImagePart
from toolcell.tools.content import MISSING, ImageContent, OtherContent, TextContent, ToolResult

NO_OUTPUT = "(no output)"


def result_text(result: ToolResult, *, limit: int | None) -> str:
    """Return the text of a result for a loop that passes on nothing else: images are named."""
    return _bounded(result, _words(result, None), limit)


def result_parts(result: ToolResult, *, limit: int | None) -> tuple[str, tuple[ImagePart, ...]]:
    """Return the text of a result and its images.

    The text is that of its blocks, else its details as compact JSON (LM-04). Where there are
    several images, the text has their numbers in their places.

    Args:
        result: What the tool gave back.
        limit: UTF-8 bytes to show; None shows all of it, as it is.
    """
    images: list[ImagePart] = []
    text = _words(result, images)
    return _bounded(result, text, limit), tuple(images)


def _words(result: ToolResult, images: list[ImagePart] | None) -> str:
    """Return what a result says; images that can be seen are added to `images`."""
    several = sum(isinstance(block, ImageContent) for block in result.content) > 1
    pieces: list[str] = []
    for block in result.content:
        if not isinstance(block, ImageContent):
            pieces.append(_block(block))
            continue
        image = _image(block, result, images)
        if isinstance(image, str):
            pieces.append(image)
        elif images is not None:
            images.append(image)
            if several:
                pieces.append(f"[image {len(images)}]")
    text = "\n".join(pieces)
    if not text and images:
        return "[image 1]"
    if not text and result.details is not MISSING:
        text = dumps(result.details)
    return text or NO_OUTPUT


def _bounded(result: ToolResult, text: str, limit: int | None) -> str:
    if limit is None:
        return text
    return outside_text(text, limit) if result.untrusted else bounded_text(text, limit)


def bounded_text(text: str, limit: int) -> str:
    """Return `text`, or its beginning and a note of how much is missing."""
    size = utf8_length(text)
    if size <= limit:
        return text
    return f"{clip_utf8(text, limit)}\n[cut: the first {limit} of {size} bytes are shown]"


def outside_text(text: str, limit: int) -> str:
    """Return bounded text from the network, wrapped once (rule 4.9)."""
    return wrapped(bounded_text(text, limit))


def _block(block: TextContent | OtherContent) -> str:
    return block.text if isinstance(block, TextContent) else dumps(block.to_dict())


def _image(
    block: ImageContent, result: ToolResult, images: Sequence[ImagePart] | None
) -> ImagePart | str:
    """Return an image to be seen, or the note in its place."""
    if images is None:
        why = ""
    elif result.is_error:
        # The Anthropic wire takes nothing but text in the result of a failed call.
        why = ": the call failed"
    elif len(images) >= MAX_IMAGES:
        why = f": at most {MAX_IMAGES} are"
    else:
        found = image_part(block)
        if isinstance(found, ImagePart):
            return found
        why = f": {found}"
    size = size_text(decoded_bytes(block.data))
    return f"[image {block.mime_type[:80]}, {size}, not shown{why}]"
