"""Owns the border where a tool's result becomes plain, bounded, detached JSON (BEHAVIOURS 288).

Above: the gate. Below: `tools.content`, `base.jsontext`. Refuses to know: schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from toolcell.base.jsontext import clip_utf8, dumps, loads, utf8_length
from toolcell.errors import CallError
from toolcell.tools.content import (
    MISSING,
    Content,
    ImageContent,
    OtherContent,
    TextContent,
    ToolResult,
)

MAX_RESULT_BYTES: Final = 16 << 20
"""The largest `details`, and the largest content, of one result: the ceiling of a cell's inbox."""

MAX_DEPTH: Final = 200
MAX_PLACE_CHARS: Final = 120
"""How much of the way to a fault is told when it is that deep."""
_SCALARS: Final = (str, int, float, bool, type(None))


def accepted(returned: object, subject: str, *, trusted: bool) -> ToolResult:
    """Return a copy of a tool's result that later changes by the tool cannot reach.

    Args:
        returned: What the body gave.
        subject: How messages name the tool.
        trusted: Whether it is local code: nothing else ends a turn, and no failure does.

    Raises:
        CallError: `output_contract`: it is no ToolResult, not JSON, or too large.
    """
    if not isinstance(returned, ToolResult):
        kind = type(returned).__name__
        msg = f"the result is a {kind}; a tool body returns a ToolResult"
        raise _refused(msg, subject)
    return ToolResult(
        content=_content(returned.content, subject),
        details=plain_details(returned.details, subject),
        is_error=bool(returned.is_error),
        untrusted=bool(returned.untrusted),
        terminate=trusted and bool(returned.terminate) and not returned.is_error,
    )


def plain_details(details: Any, subject: str) -> Any:
    """Return `details` as fresh plain JSON; `MISSING` stays.

    Raises:
        CallError: `output_contract`: it is not JSON, or too large.
    """
    if details is MISSING or details is None or details is True or details is False:
        return details
    return _plain(details, "details", subject)


def error_text(result: ToolResult) -> str:
    """Return the text of a result that reports failure."""
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    return clip_utf8("\n".join(texts), 4096) or "the tool reported an error without a text"


def _plain(value: Any, place: str, subject: str) -> Any:
    size = sum(map(len, _outer_strings(value)))
    if size > MAX_RESULT_BYTES:
        raise _too_large(place, size, subject)
    try:
        text = dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(_fault(value, place) or f"{place}: {error}", subject) from None
    size = utf8_length(text)
    if size > MAX_RESULT_BYTES:
        raise _too_large(place, size, subject)
    try:
        return loads(text)
    except (ValueError, RecursionError):
        msg = f"{place} is nested too deeply"
        raise _refused(msg, subject) from None


def _outer_strings(value: Any) -> Iterator[str]:
    """Yield the strings on top: they tell most oversized results apart without encoding them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (item for item in value.values() if isinstance(item, str))
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))


def _content(content: object, subject: str) -> tuple[Content, ...]:
    if content == ():
        return ()
    if not isinstance(content, tuple | list):
        msg = f"content is a {type(content).__name__}, not a tuple of blocks"
        raise _refused(msg, subject)
    blocks = tuple(_block(block, f"content[{i}]", subject) for i, block in enumerate(content))
    total = sum(map(_block_bytes, blocks))
    if total > MAX_RESULT_BYTES:
        msg = "content"
        raise _too_large(msg, total, subject)
    return blocks


def _block(block: object, place: str, subject: str) -> Content:
    if isinstance(block, OtherContent):
        return OtherContent(_plain(dict(block.block), place, subject))
    if isinstance(block, TextContent) and isinstance(block.text, str):
        return block
    if isinstance(block, ImageContent) and isinstance(block.data, str):
        return block
    msg = f"{place} is a {type(block).__name__} without a text form"
    raise _refused(msg, subject)


def _block_bytes(block: Content) -> int:
    if isinstance(block, TextContent):
        return utf8_length(block.text)
    if isinstance(block, ImageContent):
        return len(block.data)
    return utf8_length(dumps(block.block))


def _refused(why: str, subject: str) -> CallError:
    return CallError(
        f"tool returned something that is not JSON: {why} (tool {subject!r}). It has run; check "
        "its effects before you call it again.",
        code="output_contract",
        effect="unknown",
    )


def _too_large(place: str, size: int, subject: str) -> CallError:
    return CallError(
        f"tool {subject!r} returned {place} of {size} bytes; at most {MAX_RESULT_BYTES} fit. "
        "Paginate or narrow the request.",
        code="output_contract",
        effect="unknown",
    )


def _fault(value: Any, place: str, above: tuple[int, ...] = ()) -> str | None:
    """Return where and why a value is not JSON, or None when only the encoder knows."""
    if isinstance(value, float) and not isfinite(value):
        return f"{place} is {value}"
    if isinstance(value, _SCALARS):
        return None
    if not isinstance(value, dict | list | tuple):
        return f"{place} is a value of type {type(value).__name__}"
    if id(value) in above or len(above) >= MAX_DEPTH:
        why = "contains itself (a cycle)" if id(value) in above else "is nested too deeply"
        return f"{place[:MAX_PLACE_CHARS]} {why}"
    inside = (*above, id(value))
    if isinstance(value, dict):
        bad = next((key for key in value if not isinstance(key, _SCALARS)), None)
        if bad is not None:
            return f"{place} has a key of type {type(bad).__name__}"
        members = [(f"{place}.{str(key)[:64]}", item) for key, item in value.items()]
    else:
        members = [(f"{place}[{i}]", item) for i, item in enumerate(value)]
    return next(filter(None, (_fault(item, where, inside) for where, item in members)), None)
