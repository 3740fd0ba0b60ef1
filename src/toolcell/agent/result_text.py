"""Owns the text a model reads as the result of a tool it called.

Above: the loop's calls. Below: `tools.content`, `base.untrusted`. Refuses to know: what code mode
puts into its own results; those come as text and are passed on as they are.
"""

from __future__ import annotations

from toolcell.base.jsontext import clip_utf8, dumps, utf8_length
from toolcell.base.untrusted import wrapped
from toolcell.tools.content import MISSING, Content, ImageContent, TextContent, ToolResult

NO_OUTPUT = "(no output)"


def result_text(result: ToolResult, *, limit: int | None) -> str:
    """Return the text of a result: its text blocks, else its details as compact JSON (LM-04).

    Args:
        result: What the tool gave back.
        limit: UTF-8 bytes to show; None shows all of it, as it is.
    """
    text = "\n".join(_block(block) for block in result.content)
    if not text and result.details is not MISSING:
        text = dumps(result.details)
    text = text or NO_OUTPUT
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


def _block(block: Content) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            # Tool messages of Chat Completions carry text only.
            return f"[image {block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown]"
        case _:
            return dumps(block.to_dict())
