"""Owns the output globals: `text`, `json`, `console`, `yield_control` (rules 3.5, 3.11).

Above: the sets of guest APIs. Below: `extensions.contract`. Refuses to know: output caps.
"""

from __future__ import annotations

from typing import Any, Final

from toolcell.base.jsontext import Json
from toolcell.codemode.extensions.contract import GuestExtension, Yielding, prelude
from toolcell.codemode.view import GuestView

# BEHAVIOURS 133.
CONSOLE_BOUNDS: Final = {
    "maxString": 512,
    "maxMessage": 4096,
    "maxNodes": 100,
    "maxKeys": 50,
    "maxDepth": 4,
    "maxTotal": 16384,
}
MAX_REASON: Final = 500


def _yielded(arguments: list[Any]) -> dict[str, Any]:
    reason = arguments[0][:MAX_REASON] if arguments and isinstance(arguments[0], str) else None
    return {"status": "yielded", "reason": reason}


def _data(_view: GuestView) -> Json:
    return CONSOLE_BOUNDS


def output_extension(*, yield_value: bool) -> GuestExtension:
    """Return the extension; `yield_value` makes `yield_control` resolve to `{status, reason}`."""
    answer = _yielded if yield_value else lambda _arguments: None
    return GuestExtension(
        name="output",
        script=prelude("output"),
        data=_data,
        handlers={"yield": Yielding(answer)},
    )
