"""Owns what `tools.toolSearch` comes to for one run: rule 10.1 after defaults and clamps.

Above: tool search, surface, the library face. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ToolSearchMode = Literal["code", "tools", "directory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSearchOptions:
    """The effective options of one run. Defaults and units are those of rule 10.1."""

    enabled: bool = False
    mode: ToolSearchMode = "code"
    code_timeout_ms: int = 10_000
    search_default_limit: int = 8
    max_search_limit: int = 20
