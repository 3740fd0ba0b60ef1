"""Owns recognising that a request was too long for the model: endpoints say so in many words.

Behind a wire stands whoever speaks it, so what any vendor says is understood on each: OpenAI and
Anthropic, and vLLM, llama.cpp, LM Studio, OpenRouter, Mistral, Gemini, xAI and Bedrock in front of
or behind them.

Above: the readers of answers. Below: nothing. Refuses to know: what is done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_CODES: Final = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_exceeded",
        "request_too_large",
    }
)
_WORDS: Final = (
    "maximum context length",
    "exceeds the context window",
    "model's context window",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds context size",
    "greater than the context length",
    "maximum prompt length",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
)
_OTHER: Final = frozenset({401, 402, 403, 404, 429})
"""Answers that are about something else, whatever they say of tokens."""
_RATE: Final = "rate_limit_exceeded"
TOO_LARGE: Final = 413


def too_long(status: int | None, error: Mapping[str, Any], said: str) -> bool:
    """Return whether an endpoint refused a request because it was too long.

    Args:
        status: The status of its answer; None for an error inside a stream.
        error: The error object of its body.
        said: Its words.
    """
    words = {error.get("code"), error.get("type")} if _plain(error) else set()
    if status in _OTHER or _RATE in words:
        return False
    if status == TOO_LARGE or words & _CODES:
        return True
    lowered = said.lower()
    return any(phrase in lowered for phrase in _WORDS)


def _plain(error: Mapping[str, Any]) -> bool:
    """Whether code and type can be looked up: an endpoint may send anything in their places."""
    return all(isinstance(error.get(key), str | int | None) for key in ("code", "type"))
