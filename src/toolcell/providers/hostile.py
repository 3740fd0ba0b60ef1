"""Owns reading single values out of an endpoint's JSON, all of which is hostile.

Above: the readers of replies. Below: `base`. Refuses to know: wires.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from toolcell.base.jsontext import dumps


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one when it is something else."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """Return a list; an empty one when it is something else."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """Return a string; an empty one when it is something else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a count; zero when it is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def dollars(value: object) -> float | None:
    """Return an amount of money; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    amount = float(value)
    return amount if 0 <= amount < math.inf else None


def arguments_text(value: object) -> str:
    """Return the arguments of a call as text; some endpoints send the object itself."""
    return dumps(value) if isinstance(value, dict) else string(value)
