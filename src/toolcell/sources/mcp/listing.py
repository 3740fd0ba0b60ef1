"""Owns reading a tool list as it came over the wire, one entry at a time.

A bad entry costs that entry or its schema, never its neighbours (DESIGN, decisions).

Above: the connection. Below: filters, schemas, text. Refuses to know: the MCP SDK and how to call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcell.sources.mcp.filters import left_out
from toolcell.sources.mcp.schemas import schema_problem
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import Oddity
from toolcell.sources.mcp.text import clean, one_line
from toolcell.sources.mcp.tools import OPERATION_PREFIX, ListedTool

MAX_NAME = 512
MAX_DESCRIPTION = 16_384
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""Published in place of a schema that cannot be used; its hint is `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What came of one complete listing."""

    tools: tuple[ListedTool, ...] = ()
    oddities: tuple[Oddity, ...] = ()


def read_listing(server: str, settings: McpServerSettings, raw: Sequence[Any]) -> Listing:
    """Return the tools to publish, in the server's order, and what was odd about the others.

    Of several entries whose names differ only in white space around them, the first one spelled
    exactly without it wins, else the first (REPORTS MC-03).
    """
    tools: dict[str, ListedTool] = {}
    oddities: list[Oddity] = []
    for index, entry in enumerate(raw):
        tool = _read_entry(entry, index, oddities)
        if tool is not None:
            _settle_duplicate(tools, tool, oddities)
    for name, reason in left_out(server, settings, list(tools.values())).items():
        del tools[name]
        oddities.append(Oddity(tool=one_line(name, 100), outcome="filtered", reason=reason))
    return Listing(tools=tuple(tools.values()), oddities=tuple(oddities))


def _settle_duplicate(
    tools: dict[str, ListedTool], tool: ListedTool, oddities: list[Oddity]
) -> None:
    first = tools.get(tool.name)
    if first is None:
        tools[tool.name] = tool
        return
    loser = tool
    if first.wire_name != first.name and tool.wire_name == tool.name:
        tools[tool.name] = tool
        loser = first
    shown = one_line(repr(loser.wire_name), 100)
    oddities.append(
        Oddity(
            tool=shown,
            outcome="rejected",
            reason=f"the server lists {one_line(repr(tool.name), 100)} more than once",
        )
    )


def _read_entry(entry: Any, index: int, oddities: list[Oddity]) -> ListedTool | None:
    problem, wire_name = _name_of(entry)
    if problem is not None:
        shown = one_line(wire_name, 100) or f"entry {index}"
        oddities.append(Oddity(tool=shown, outcome="rejected", reason=problem))
        return None
    schema = entry.get("inputSchema")
    bad = schema_problem(schema)
    name = wire_name.strip()
    if bad is not None:
        schema = ANY_OBJECT
        oddities.append(Oddity(tool=one_line(name, 100), outcome="kept", reason=bad))
    description = entry.get("description")
    return ListedTool(
        name=name,
        wire_name=wire_name,
        description=clean(description, MAX_DESCRIPTION) if isinstance(description, str) else "",
        title=_title(entry),
        parameters=schema,
        structured=isinstance(entry.get("outputSchema"), Mapping),
    )


def _name_of(entry: Any) -> tuple[str | None, str]:
    if not isinstance(entry, Mapping):
        return "the entry is not an object", ""
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        return "the entry has no name", ""
    if len(name) > MAX_NAME:
        return f"its name has more than {MAX_NAME} characters", name
    if name.strip().startswith(OPERATION_PREFIX):
        return f"names that begin with {OPERATION_PREFIX!r} are kept for operations", name
    return None, name


def _title(entry: Mapping[str, Any]) -> str | None:
    annotations = entry.get("annotations")
    hint = annotations.get("title") if isinstance(annotations, Mapping) else None
    for candidate in (entry.get("title"), hint):
        if isinstance(candidate, str) and candidate.strip():
            return one_line(candidate, 200)
    return None
