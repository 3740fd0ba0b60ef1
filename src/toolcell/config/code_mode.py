"""Owns what `tools.codeMode` comes to for one run: rule 1.2 after defaults, clamps and overrides.

Above: code mode, surface, the library face. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ExecutorName = Literal["node", "quickjs"]
GuestApi = Literal["catalog", "tools"]
Language = Literal["javascript", "typescript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeModeOptions:
    """The effective options of one run. Defaults and units are those of rule 1.2."""

    enabled: bool | Literal["auto"] = False
    executor: ExecutorName = "node"
    guest_api: GuestApi = "catalog"
    languages: tuple[Language, ...] = ("javascript", "typescript")
    timeout_ms: int = 10_000
    memory_limit_bytes: int = 64 << 20
    max_output_bytes: int = 65_536
    max_snapshot_bytes: int = 10 << 20
    max_pending_tool_calls: int = 16
    snapshot_ttl_seconds: int = 900
    search_default_limit: int = 8
    max_search_limit: int = 50

    @property
    def inbox_bytes(self) -> int:
        """The largest single reply a cell takes: min(memoryLimitBytes / 4, 16 MiB)."""
        return min(self.memory_limit_bytes // 4, 16 << 20)
