"""Owns the text of an exception out of code that is not ours, which may refuse to be shown.

Above: the borders where such code is called. Below: nothing. Refuses to know: who reads the text.
"""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 4096


def text_of_error(error: BaseException) -> str:
    """Return `Type: message`, bounded; only the type when the exception cannot be turned to text.

    A `__str__` or `__repr__` of somebody's class may raise anything; where that happens inside an
    `except` clause it would take the place of the fault that is being reported.
    """
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the text is a courtesy, its absence no fault
        return name
    return f"{name}: {text[:MAX_CHARACTERS]}" if text else name
