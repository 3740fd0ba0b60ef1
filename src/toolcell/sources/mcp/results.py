"""Owns turning a raw MCP result into a `ToolResult`: what guest code reads, and what a model reads.

Private metadata (`_meta`) never crosses, bytes become a description, blocks that break the protocol
are dropped and counted (REPORTS MC-06, MC-07, MC-13, BEHAVIOURS 241).

Above: the connection's calls. Below: `tools.content`. Refuses to know: the MCP SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcell.base import jsontext
from toolcell.sources.mcp.text import one_line
from toolcell.tools.content import Content, ImageContent, TextContent, ToolResult

NO_STRUCTURED = (
    "the tool declares structured output and sent none; the call ran, its content is complete"
)


def tool_result(raw: Mapping[str, Any], *, structured: bool) -> ToolResult:
    """Return the result of a tool call.

    `details` is `{content, structuredContent?, isError?, warning?}`: the declared shape is the real
    one (REPORTS BR-11), and `isError` is a value, not an exception. A tool that declared structured
    output and sent none gives its content with a `warning` (REPORTS MC-09).
    """
    is_error = raw.get("isError") is True
    content, dropped = _blocks(raw.get("content"))
    details: dict[str, Any] = {"content": [guest for guest, _ in content]}
    model: list[Content] = [shown for _, shown in content]
    warnings = []
    if raw.get("structuredContent") is not None:
        value = raw["structuredContent"]
        details["structuredContent"] = value
        if not _already_shown(value, content):
            model.append(TextContent(jsontext.dumps(value)))
    elif structured and not is_error:
        warnings.append(NO_STRUCTURED)
    if dropped:
        warnings.append(f"{dropped} malformed content block(s) left out")
    if is_error:
        details["isError"] = True
    if warnings:
        details["warning"] = "; ".join(warnings)
        model.append(TextContent(f"[warning: {details['warning']}]"))
    return ToolResult(content=tuple(model), details=details, is_error=is_error, untrusted=True)


def operation_result(details: dict[str, Any]) -> ToolResult:
    """Return the result of a resource or prompt operation: its data, and the same as JSON text."""
    text = TextContent(jsontext.dumps(details))
    return ToolResult(content=(text,), details=details, untrusted=True)


def without_meta(item: Any) -> dict[str, Any] | None:
    """Return one listed resource or prompt without private metadata and icons, or None."""
    if not isinstance(item, Mapping):
        return None
    return {key: value for key, value in item.items() if key not in {"_meta", "icons"}}


def resource_contents(raw: Any) -> dict[str, Any] | None:
    """Return one item of `resources/read`, bytes described; None when it is malformed."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("uri"), str):
        return None
    out: dict[str, Any] = {"uri": raw["uri"]}
    mime = raw.get("mimeType")
    if isinstance(mime, str):
        out["mimeType"] = mime
    if isinstance(raw.get("text"), str):
        out["text"] = raw["text"]
    elif isinstance(raw.get("blob"), str):
        out.update(_described(raw["blob"], mime, "application/octet-stream"))
    else:
        return None
    return out


def prompt_message(raw: Any) -> dict[str, Any] | None:
    """Return one message of `prompts/get`; None when it is malformed."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("role"), str):
        return None
    block = _block(raw.get("content"))
    return None if block is None else {"role": raw["role"], "content": block[0]}


_Block = tuple[dict[str, Any], Content]


def _blocks(raw: Any) -> tuple[list[_Block], int]:
    if not isinstance(raw, list):
        return [], 0 if raw is None else 1
    kept = [block for block in map(_block, raw) if block is not None]
    return kept, len(raw) - len(kept)


def _block(raw: Any) -> _Block | None:
    if not isinstance(raw, Mapping):
        return None
    kind = raw.get("type")
    reader = _BLOCKS.get(kind) if isinstance(kind, str) else None
    return None if reader is None else reader(raw)


def _text_block(raw: Mapping[str, Any]) -> _Block | None:
    text = raw.get("text")
    if not isinstance(text, str):
        return None
    return {"type": "text", "text": text}, TextContent(text)


def _media_block(raw: Mapping[str, Any]) -> _Block | None:
    data, mime = raw.get("data"), raw.get("mimeType")
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    kind = str(raw["type"])
    described = _described(data, mime, mime)
    guest = {"type": kind, "mimeType": one_line(mime, 100), **described}
    if kind == "image":
        return guest, ImageContent(data=data, mime_type=mime)
    return guest, TextContent(str(described["description"]))


def _link_block(raw: Mapping[str, Any]) -> _Block | None:
    if not isinstance(raw.get("uri"), str) or not isinstance(raw.get("name"), str):
        return None
    guest = without_meta(raw) or {}
    return guest, TextContent(jsontext.dumps(guest))


def _resource_block(raw: Mapping[str, Any]) -> _Block | None:
    resource = resource_contents(raw.get("resource"))
    if resource is None:
        return None
    shown = resource.get("text") or resource.get("description") or ""
    return {"type": "resource", "resource": resource}, TextContent(str(shown))


def _described(data: str, mime: Any, fallback: str) -> dict[str, Any]:
    """Stand for base64 `data` by its size: bytes never enter the guest."""
    size = len(data.rstrip("=")) * 3 // 4
    kind = one_line(mime, 100) if isinstance(mime, str) and mime else fallback
    return {"bytes": size, "description": f"[{kind}, {size} bytes, not included]"}


def _already_shown(value: Any, content: list[_Block]) -> bool:
    """Whether a text block holds the same JSON, as the protocol asks of servers."""
    for guest, _ in content:
        text = guest.get("text")
        if guest["type"] == "text" and isinstance(text, str) and text.lstrip()[:1] in {"{", "["}:
            try:
                if jsontext.loads(text) == value:
                    return True
            except (ValueError, RecursionError):
                continue
    return False


_BLOCKS: Mapping[str, Callable[[Mapping[str, Any]], _Block | None]] = {
    "text": _text_block,
    "image": _media_block,
    "audio": _media_block,
    "resource_link": _link_block,
    "resource": _resource_block,
}
