"""Owns how results of the controls read: `{tool, result}`, wrapped where it came from outside.

Above: the controls' bodies. Below: `tools.content`, `base.untrusted`. Refuses to know: how a result
came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolcell.base.jsontext import clip_utf8, dumps, loads, utf8_length
from toolcell.base.untrusted import wrapped
from toolcell.catalog.entry import Entry
from toolcell.tools.content import (
    MISSING,
    Content,
    ImageContent,
    TextContent,
    ToolResult,
)

MAX_TEXT_BYTES: Final = 256 << 10
"""UTF-8 bytes of one result that a model is shown: as many as of a tool it calls directly."""

_COMPARED_CHARS: Final = 1 << 16
"""Longer texts are not read to find out whether they repeat the details."""


def data_result(
    value: Any,
    *,
    untrusted: bool,
    notes: Sequence[str] = (),
    is_error: bool = False,
    terminate: bool = False,
) -> ToolResult:
    """Return plain JSON as a result, and its text for the model."""
    text = "\n".join((dumps(value), *notes))
    return ToolResult(
        content=(TextContent(_shown(text, untrusted=untrusted)),),
        details=value,
        is_error=is_error,
        terminate=terminate,
    )


def envelope(entry: Entry, result: ToolResult) -> dict[str, Any]:
    """Return what a caller gets: the tool as search shows it, and its whole result.

    Images are described; the bytes are for models, not for programs.
    """
    out = result.to_dict()
    out["content"] = [_block(block) for block in result.content]
    return {"tool": entry.compact(), "result": out}


def call_result(entry: Entry, result: ToolResult) -> ToolResult:
    """Return the result of `tool_call`: like its target it fails, or ends the turn (333)."""
    named = {"id": entry.id, "name": entry.name, "source": entry.sourced.source}
    text = dumps({"tool": named, "result": _readable(result)})
    images: tuple[Content, ...] = tuple(b for b in result.content if isinstance(b, ImageContent))
    return ToolResult(
        content=(TextContent(_shown(text, untrusted=result.untrusted)), *images),
        details=envelope(entry, result),
        is_error=result.is_error,
        terminate=result.terminate,
    )


def _readable(result: ToolResult) -> dict[str, Any]:
    """Return a result without what it says twice: text that only spells out its details."""
    out = result.to_dict()
    blocks = [_block(block) for block in result.content]
    if result.details is not MISSING:
        blocks = [block for block in blocks if not _repeats(block, result.details)]
    if blocks:
        out["content"] = blocks
    elif result.details is not MISSING:
        del out["content"]
    return out


def _block(block: Content) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return {"type": "image", "mimeType": block.mime_type, "bytes": len(block.data) * 3 // 4}
    return block.to_dict()


def _repeats(block: dict[str, Any], details: Any) -> bool:
    """Whether a block says only what the details, or an MCP result in them, say already."""
    if isinstance(details, dict) and block in _parts(details.get("content")):
        return True
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return False
    if text == details:
        return True
    if len(text) > _COMPARED_CHARS:
        return False
    try:
        read = loads(text)
    except (ValueError, RecursionError):
        return False
    inner = details.get("structuredContent") if isinstance(details, dict) else None
    return bool(read == details or (inner is not None and read == inner))


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _shown(text: str, *, untrusted: bool) -> str:
    size = utf8_length(text)
    if size > MAX_TEXT_BYTES:
        cut = clip_utf8(text, MAX_TEXT_BYTES)
        text = f"{cut}\n[cut: the first {MAX_TEXT_BYTES} of {size} bytes are shown]"
    return wrapped(text) if untrusted else text
