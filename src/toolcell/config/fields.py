"""Owns the field types of the config tree: strict, clamped where rule 1.2 says so, closed.

Above: the tree's models. Below: pydantic.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """The base of every node of the tree: camelCase keys, no unknown keys, no coercion, frozen.

    A node's validator is built when a value of it is read. The defaults of a node are nodes made
    without one (`model_construct`), so that a program that says nothing builds nothing (40 ms).
    """

    model_config = ConfigDict(
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        strict=True,
        defer_build=True,
    )


def clamped(low: int, high: int) -> BeforeValidator:
    """Return a validator that moves a number outside `low`-`high` to the nearer end (rule 1.2).

    A fraction, NaN, a boolean or text is a wrong type and is refused.
    """

    def clamp(value: Any) -> Any:
        if not _whole(value):
            msg = f"must be a whole number from {low} to {high}, not {value!r}"
            raise ValueError(msg)
        return int(min(max(value, low), high))

    return BeforeValidator(clamp)


def _whole(value: Any) -> bool:
    """Infinities count: they are numbers outside and are clamped."""
    if isinstance(value, float):
        return math.isinf(value) or value == math.floor(value) if not math.isnan(value) else False
    return isinstance(value, int) and not isinstance(value, bool)
