"""Owns `Entry`: one catalogued tool with its names and hints, and `Hit`: an entry that was found.

Above: search, quick index, code mode, tool search. Below: `hints`, `schema.plain`, `tools`.
Refuses to know: who may see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolcell.catalog.hints import UNKNOWN, input_hint, output_hint
from toolcell.schema.plain import MAX_DEPTH, MAX_NODES, within_bounds
from toolcell.tools.tool import SourcedTool

TOO_LARGE: Final = f"not shown: over {MAX_NODES} values or {MAX_DEPTH} levels, or in a cycle"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One tool of a published snapshot. Immutable; a change publishes another snapshot.

    Attributes:
        sourced: The tool and where it is from.
        description: Its description; at most 512 UTF-16 units for MCP and client tools (rule 4.9).
        callable_name: Its bare global in the catalog API; None for MCP tools and for a tool whose
            name another one won (rule 4.7).
        mcp_path: For MCP tools `(server identifier, method identifier)`; `("fx", "resources.list")`
            for operations.
        api_path: `mcp/<server>.d.ts` or `tools/<callableName>.d.ts`; None without a name.
    """

    sourced: SourcedTool
    description: str
    callable_name: str | None
    mcp_path: tuple[str, str] | None
    api_path: str | None

    @property
    def id(self) -> str:
        """The exact catalog id."""
        return self.sourced.id

    @property
    def name(self) -> str:
        """The tool's own name."""
        return self.sourced.tool.name

    @property
    def input(self) -> str:
        """Compact TypeScript input hint; `unknown` for MCP and client tools (rule 4.3).

        Worked out when first asked for and remembered by schema object.
        """
        return input_hint(self.sourced.tool.parameters) if self.sourced.trusted else UNKNOWN

    @property
    def output(self) -> str | None:
        """Complete compact output hint of a trusted closed schema, or None (rule 7.2)."""
        return output_hint(self.sourced.tool.output_schema) if self.sourced.trusted else None

    @property
    def guest_name(self) -> str | None:
        """What a guest program calls: `name`, or `MCP.<server>.<method>`."""
        if self.mcp_path is not None:
            return f"MCP.{self.mcp_path[0]}.{self.mcp_path[1]}"
        return self.callable_name

    def compact(self) -> dict[str, Any]:
        """Return the entry of rule 4.2: `{id, name, label?, description, source, …}`."""
        tool = self.sourced.tool
        out: dict[str, Any] = {"id": self.id, "name": tool.name}
        if tool.label:
            out["label"] = tool.label
        out["description"] = self.description
        out["source"] = self.sourced.source
        if self.sourced.owner != "core":
            out["sourceName"] = self.sourced.owner
        if self.sourced.mcp is not None:
            out["mcp"] = {"server": self.sourced.mcp.server, "tool": self.sourced.mcp.tool}
        out["input"] = self.input
        if self.output is not None:
            out["output"] = self.output
        return out

    def described(self) -> dict[str, Any]:
        """Return `compact()` plus `parameters` and, for trusted tools, `outputSchema`."""
        out = self.compact()
        out["parameters"] = _shown(self.sourced.tool.parameters)
        if self.sourced.trusted and self.sourced.tool.output_schema is not None:
            out["outputSchema"] = _shown(self.sourced.tool.output_schema)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry that a search found; `score` compares only within one search."""

    entry: Entry
    score: float
    exact: bool = False


def _shown(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema if within_bounds(schema) else {"$comment": TOO_LARGE}
