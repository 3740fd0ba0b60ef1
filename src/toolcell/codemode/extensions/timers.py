"""Owns `setTimeout` and `clearTimeout`: the host sleeps, the guest may withdraw (BEHAVIOURS 113).

Above: the sets of guest APIs. Below: `extensions.contract`. Refuses to know: how sleeping is done.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from toolcell.base.jsontext import Json
from toolcell.codemode.extensions.contract import GuestExtension, Sleeping, prelude
from toolcell.codemode.view import GuestView

MAX_MILLISECONDS: Final = 24 * 60 * 60 * 1000
"""The longest snapshotTtlSeconds (rule 1.2): no cell lives longer."""


def _seconds(arguments: list[Any]) -> float:
    given = arguments[0] if arguments else 0
    if not isinstance(given, int | float) or isinstance(given, bool) or not isfinite(given):
        return 0.0
    return min(max(float(given), 0.0), float(MAX_MILLISECONDS)) / 1000


def _data(_view: GuestView) -> Json:
    return {"maxMilliseconds": MAX_MILLISECONDS}


def timers_extension() -> GuestExtension:
    """Return the extension."""
    return GuestExtension(
        name="timers",
        script=prelude("timers"),
        data=_data,
        handlers={"sleep": Sleeping(_seconds)},
    )


def encoding_extension() -> GuestExtension:
    """Return `TextEncoder` and `TextDecoder`, which ask nothing of the host."""
    return GuestExtension(name="encoding", script=prelude("encoding"))


def base64_extension() -> GuestExtension:
    """Return `atob` and `btoa`, which ask nothing of the host either."""
    return GuestExtension(name="base64", script=prelude("base64"))
