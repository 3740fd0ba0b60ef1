"""Owns saying a client's options in the words of each wire.

Clients speak Chat Completions; the model behind an agent may not. What a wire has no word for is
left out, as other endpoints do that take one vendor's requests for another's models.

Above: `app.routes`. Below: nothing. Refuses to know: who the client is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SAME: Final = ("temperature", "top_p")


def options_for(api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as a wire takes them.

    Args:
        api: The wire, as `models.providers.<id>.api` names it.
        options: In the words of Chat Completions.
    """
    match api:
        case "openai-responses":
            return _responses(options)
        case "anthropic":
            return _anthropic(options)
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


def _anthropic(options: Mapping[str, Any]) -> dict[str, Any]:
    out = {name: options[name] for name in _SAME if name in options}
    limit = options.get("max_completion_tokens", options.get("max_tokens"))
    if limit is not None:
        out["max_tokens"] = limit
    stop = options.get("stop")
    if stop:
        out["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    return out
