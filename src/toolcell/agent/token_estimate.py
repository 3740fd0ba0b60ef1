"""Owns guessing how many tokens a request has, without any model's tokenizer.

Four ASCII characters count as one token, a character of two UTF-8 bytes (Cyrillic, Greek) as half a
one, of three bytes (Chinese, Japanese, Korean) as one, of four (emoji) as one and a half. An image
counts as 1,600, about what the dearest endpoint takes for a large one. Where a provider has said
what a request really had, the guess is scaled (`talk`).

Above: `talk`, `compaction`, `summary`. Below: `protocol.messages`. Refuses to know: models.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolcell.base.jsontext import dumps
from toolcell.protocol.messages import Message, ToolDefinition

IMAGE_TOKENS: Final = 1600
MESSAGE_TOKENS: Final = 4
"""What a wire puts around each message."""


def text_tokens(text: str) -> int:
    """Return about how many tokens `text` has."""
    if text.isascii():
        return (len(text) + 3) // 4
    size = len(text.encode("utf-8", "surrogatepass"))
    plain = len(text.encode("ascii", "ignore"))
    other = len(text) - plain
    return (plain + 3) // 4 + (size - plain - other + 1) // 2


def message_tokens(message: Message) -> int:
    """Return about how many tokens a message has, its images not counted."""
    count = MESSAGE_TOKENS + text_tokens(message.text)
    for call in message.tool_calls:
        count += MESSAGE_TOKENS + text_tokens(call.name) + text_tokens(call.arguments)
    if message.reasoning is not None:
        count += sum(text_tokens(dumps(dict(item))) for item in message.reasoning.items)
    return count


def tool_tokens(tools: Iterable[ToolDefinition]) -> int:
    """Return about how many tokens the tools of a request have."""
    return sum(
        2 * MESSAGE_TOKENS
        + text_tokens(tool.name)
        + text_tokens(tool.description)
        + text_tokens(_schema(tool))
        for tool in tools
    )


def _schema(tool: ToolDefinition) -> str:
    try:
        return dumps(dict(tool.parameters))
    except (TypeError, ValueError, RecursionError):
        return ""  # the provider is about to refuse it and to say why
