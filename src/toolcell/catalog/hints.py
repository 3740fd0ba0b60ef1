"""Owns the hints of tools: worked out once per schema object and remembered.

Above: snapshot. Below: `schema.hints`. Refuses to know: entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from toolcell.schema import hints
from toolcell.schema.plain import SameObject

UNKNOWN: Final = "unknown"
_REMEMBERED: Final = 20_000


def input_hint(schema: Mapping[str, Any]) -> str:
    """Return the compact input hint of a trusted schema (rule 4.3)."""
    return _input(SameObject(schema))


def output_hint(schema: Mapping[str, Any] | None) -> str | None:
    """Return the complete compact output hint of a trusted schema, or None (rule 7.2)."""
    return None if schema is None else _output(SameObject(schema))


@lru_cache(maxsize=_REMEMBERED)
def _input(same: SameObject) -> str:
    return hints.input_hint(same.schema)


@lru_cache(maxsize=_REMEMBERED)
def _output(same: SameObject) -> str | None:
    return hints.output_hint(same.schema)
