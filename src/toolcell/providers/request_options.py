"""Owns saying a client's options in the words of each wire.

Clients speak Chat Completions; the model behind an agent may not. What a wire has no word for is
left out, as other endpoints do that take one vendor's requests for another's models.

Above: `app.routes`. Below: `anthropic_thinking`. Refuses to know: who the client is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcell.providers.anthropic_thinking import ThinkingStyle, thinking_options

_SAME: Final = ("temperature", "top_p")


def options_for(
    api: str,
    options: Mapping[str, Any],
    *,
    configured: Mapping[str, Any] | None = None,
    thinking: ThinkingStyle = "adaptive",
) -> dict[str, Any]:
    """Return the options as a wire takes them.

    Args:
        api: The wire, as `models.providers.<id>.api` names it.
        options: In the words of Chat Completions.
        configured: The model's own options, in the words of the wire.
        thinking: How the model is asked to think, on a wire that has two ways.
    """
    match api:
        case "openai-responses":
            return _responses(options)
        case "anthropic":
            return _anthropic(options, configured or {}, thinking)
        case _:
            return dict(options)


def _responses(options: Mapping[str, Any]) -> dict[str, Any]:
    out = {name: options[name] for name in _SAME if name in options}
    limit = options.get("max_completion_tokens", options.get("max_tokens"))
    if limit is not None:
        out["max_output_tokens"] = limit
    if "reasoning_effort" in options:
        out["reasoning"] = {"effort": options["reasoning_effort"]}
    text: dict[str, Any] = {}
    if "verbosity" in options:
        text["verbosity"] = options["verbosity"]
    given = options.get("response_format")
    if isinstance(given, Mapping):
        inner = given.get("json_schema")
        nested = inner if isinstance(inner, Mapping) else {}
        text["format"] = {"type": given.get("type"), **nested}
    if text:
        out["text"] = text
    return out


def _anthropic(
    options: Mapping[str, Any], configured: Mapping[str, Any], thinking: ThinkingStyle
) -> dict[str, Any]:
    out = {name: options[name] for name in _SAME if name in options}
    limit = options.get("max_completion_tokens", options.get("max_tokens"))
    if limit is not None:
        out["max_tokens"] = limit
    stop = options.get("stop")
    if stop:
        out["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    level = options.get("reasoning_effort")
    if isinstance(level, str):
        bound = out.get("max_tokens", configured.get("max_tokens"))
        out |= thinking_options(level, thinking, bound if isinstance(bound, int) else None)
        if "output_config" in out and isinstance(configured.get("output_config"), Mapping):
            out["output_config"] = {**configured["output_config"], **out["output_config"]}
    return out
