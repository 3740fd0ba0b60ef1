"""Owns `CatalogSnapshot`: the published, immutable catalog of a run and every way to look into it.

Above: code mode, tool search, surfaces, listings. Below: names, hints, `search`. Refuses to know:
policy (it is given the tools that remain), executors, sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from toolcell.base.identifiers import digest
from toolcell.base.jsontext import clip_utf16
from toolcell.catalog.entry import Entry, Hit
from toolcell.catalog.fingerprint import fingerprint
from toolcell.catalog.names import (
    callable_names,
    catalog_order,
    mcp_method_identifiers,
    mcp_server_identifiers,
)
from toolcell.catalog.order import sort_key
from toolcell.catalog.search.explain import explain
from toolcell.catalog.search.searcher import Reranker, Searcher, Visible
from toolcell.tools.tool import McpOrigin, SourcedTool, SourceName, ToolKind

MCP_DESCRIPTION_UNITS: Final = 512
_KEY_DIGITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CatalogServer:
    """One MCP server of a snapshot: its identifier, its raw name, its tools and operations."""

    identifier: str
    name: str
    entries: tuple[Entry, ...]
    operations: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class CatalogSnapshot:
    """The catalog of a run. A change publishes another one (rule 4.5).

    Attributes:
        entries: Every catalogued tool in the order of rule 4.1.
        operations: MCP resource and prompt operations: callable, never listed, searched or counted.
        servers: The MCP servers in order of their raw names.
        diagnostics: Sentences for the operator about tools without a name of their own.
    """

    entries: tuple[Entry, ...]
    operations: tuple[Entry, ...]
    servers: tuple[CatalogServer, ...]
    diagnostics: tuple[str, ...]
    _searcher: Searcher = field(repr=False)

    @classmethod
    def build(cls, tools: Iterable[SourcedTool]) -> CatalogSnapshot:
        """Return the snapshot of `tools`; equal sets give equal snapshots in any order.

        Control tools and direct-only tools are left out (rule 4.4). Of two tools with one id the
        first by content stays and a diagnostic names the id.
        """
        kept, diagnostics = _distinct(
            t for t in tools if t.tool.kind is not ToolKind.CONTROL and _catalogued(t)
        )
        names = callable_names(t for t in kept if t.tool.kind is ToolKind.ORDINARY)
        paths = _mcp_paths(kept)
        made = [_entry(t, names.by_id.get(t.id), paths.get(_key(t))) for t in kept]
        entries = tuple(e for e in made if e.sourced.tool.kind is ToolKind.ORDINARY)
        operations = tuple(e for e in made if e.sourced.tool.kind is ToolKind.MCP_OPERATION)
        return cls(
            entries=entries,
            operations=operations,
            servers=_servers(entries, operations),
            diagnostics=(*diagnostics, *names.diagnostics),
            _searcher=Searcher(entries),
        )

    def get(self, catalog_id: str) -> Entry | None:
        """Return the entry with exactly this id; never an operation."""
        return self._by_id.get(catalog_id)

    def by_callable(self, name: str) -> Entry | None:
        """Return the entry whose bare global is `name`."""
        return self._by_callable.get(name)

    def by_mcp_path(self, server: str, method: str) -> Entry | None:
        """Return the MCP tool or operation at `MCP.<server>.<method>`, by identifiers."""
        return self._by_mcp_path.get((server, method))

    def sources(self) -> dict[SourceName, int]:
        """Return how many entries each source has: `{"openclaw": n, "mcp": n, "client": n}`."""
        counts = Counter(entry.sourced.source for entry in self.entries)
        return {"openclaw": counts["openclaw"], "mcp": counts["mcp"], "client": counts["client"]}

    def search(
        self,
        query: str,
        *,
        limit: int,
        visible: Visible | None = None,
        reranker: Reranker | None = None,
    ) -> tuple[Hit, ...]:
        """Return at most `limit` hits, best first; see `Searcher.search`."""
        return self._searcher.search(query, limit=limit, visible=visible, reranker=reranker)

    def explain(self, query: str, entry: Entry) -> dict[str, tuple[str, ...]]:
        """Return the words of `query` that `entry` matches, by field; see `search.explain`."""
        return explain(query, entry)

    @cached_property
    def key(self) -> str:
        """A hash of the content: equal for equal sets of tools, whatever their executors."""
        both = (*self.entries, *self.operations)
        return digest(*(fingerprint(entry.sourced) for entry in both), length=_KEY_DIGITS)

    @cached_property
    def _by_id(self) -> Mapping[str, Entry]:
        return {entry.id: entry for entry in self.entries}

    @cached_property
    def _by_callable(self) -> Mapping[str, Entry]:
        return {e.callable_name: e for e in self.entries if e.callable_name is not None}

    @cached_property
    def _by_mcp_path(self) -> Mapping[tuple[str, str], Entry]:
        both = (*self.entries, *self.operations)
        return {entry.mcp_path: entry for entry in both if entry.mcp_path is not None}


def _catalogued(sourced: SourcedTool) -> bool:
    # A remote tool cannot leave the catalog by calling itself direct-only (PO-08).
    return sourced.tool.catalog_mode != "direct-only" or not sourced.trusted


def _key(sourced: SourcedTool) -> tuple[str, ToolKind]:
    return (sourced.id, sourced.tool.kind)


def _distinct(tools: Iterable[SourcedTool]) -> tuple[list[SourcedTool], list[str]]:
    """Return the tools in catalog order, one per id and kind, and what was dropped."""
    held: dict[tuple[str, ToolKind], SourcedTool] = {}
    dropped: list[str] = []
    for sourced in tools:
        other = held.setdefault(_key(sourced), sourced)
        if other is not sourced:
            held[_key(sourced)] = min(other, sourced, key=fingerprint)
            dropped.append(
                f"two tools have the id {sourced.id!r} (owner {sourced.owner!r}); one is left out: "
                "rename one of them."
            )
    return sorted(held.values(), key=catalog_order), sorted(dropped)


def _origin(sourced: SourcedTool) -> McpOrigin | None:
    if sourced.source != "mcp":
        return None
    return sourced.mcp or McpOrigin(server=sourced.owner, tool=sourced.tool.name)


def _mcp_paths(tools: Sequence[SourcedTool]) -> dict[tuple[str, ToolKind], tuple[str, str]]:
    """Return `(server, method)` identifiers of each MCP tool and operation."""
    origins = [(sourced, origin) for sourced in tools if (origin := _origin(sourced)) is not None]
    raw: dict[str, list[str]] = {}
    for sourced, origin in origins:
        methods = raw.setdefault(origin.server, [])
        if sourced.tool.kind is ToolKind.ORDINARY:
            methods.append(origin.tool)
    servers = mcp_server_identifiers(raw)
    methods_of = {server: mcp_method_identifiers(methods) for server, methods in raw.items()}
    return {
        _key(sourced): (
            servers[origin.server],
            methods_of[origin.server][origin.tool]
            if sourced.tool.kind is ToolKind.ORDINARY
            else origin.operation,
        )
        for sourced, origin in origins
    }


def _entry(
    sourced: SourcedTool, callable_name: str | None, mcp_path: tuple[str, str] | None
) -> Entry:
    tool = sourced.tool
    api_path = f"tools/{callable_name}.d.ts" if callable_name is not None else None
    if mcp_path is not None:
        api_path = f"mcp/{mcp_path[0]}.d.ts"
    description = tool.description
    if not sourced.trusted:
        description = clip_utf16(description, MCP_DESCRIPTION_UNITS)
    return Entry(
        sourced=sourced,
        description=description,
        callable_name=callable_name,
        mcp_path=mcp_path,
        api_path=api_path,
    )


def _servers(entries: Sequence[Entry], operations: Sequence[Entry]) -> tuple[CatalogServer, ...]:
    grouped: dict[str, tuple[str, list[Entry], list[Entry]]] = {}
    for place, group in ((1, entries), (2, operations)):
        for entry in group:
            origin = _origin(entry.sourced)
            if origin is None or entry.mcp_path is None:
                continue
            slot = grouped.setdefault(origin.server, (entry.mcp_path[0], [], []))
            (slot[1] if place == 1 else slot[2]).append(entry)
    return tuple(
        CatalogServer(
            identifier=grouped[name][0],
            name=name,
            entries=tuple(grouped[name][1]),
            operations=tuple(grouped[name][2]),
        )
        for name in sorted(grouped, key=sort_key)
    )
