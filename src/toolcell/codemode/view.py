"""Owns `GuestView`: what one image shows of the catalog, and by which names.

Made once per catalog and set of visible tools. Above: declarations, extensions, image. Below:
`catalog`. Refuses to know: JavaScript.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from toolcell.catalog.entry import Entry
from toolcell.config.code_mode import GuestApi

SHELL_ID = "openclaw:core:exec"


@dataclass(frozen=True, kw_only=True, eq=False)
class GuestView:
    """The visible entries and operations of one image.

    Attributes:
        entries: Visible tools in catalog order.
        operations: Visible MCP resource and prompt operations.
        guest_api: Which names the guest calls tools by.
    """

    entries: tuple[Entry, ...]
    operations: tuple[Entry, ...] = ()
    guest_api: GuestApi = "catalog"

    @cached_property
    def native(self) -> Mapping[str, Entry]:
        """Tools with a bare global, by callable name, in catalog order."""
        return {e.callable_name: e for e in self.entries if e.callable_name is not None}

    @cached_property
    def by_id(self) -> Mapping[str, Entry]:
        """Tools that are not from an MCP server, by exact id, in catalog order."""
        return {entry.id: entry for entry in self.entries if entry.mcp_path is None}

    @cached_property
    def remote(self) -> Mapping[tuple[str, str], Entry]:
        """MCP tools and operations by `(server, method)` identifiers."""
        both: Iterable[Entry] = (*self.entries, *self.operations)
        return {entry.mcp_path: entry for entry in both if entry.mcp_path is not None}

    @cached_property
    def owned(self) -> frozenset[tuple[str, str]]:
        """Owner and name of every trusted tool."""
        return frozenset((e.sourced.owner, e.name) for e in self.entries if e.sourced.trusted)

    @cached_property
    def by_guest_name(self) -> Mapping[str, Entry]:
        """Searchable tools by what a guest calls: `name` or `MCP.<server>.<method>`."""
        return {entry.guest_name: entry for entry in self.entries if entry.guest_name is not None}

    @cached_property
    def servers(self) -> Mapping[str, tuple[str, ...]]:
        """Method identifiers of each MCP server, operations as `resources.list` and so on."""
        grouped: dict[str, list[str]] = {}
        for server, method in self.remote:
            grouped.setdefault(server, []).append(method)
        return {server: tuple(methods) for server, methods in grouped.items()}

    @cached_property
    def shell_call(self) -> str | None:
        """How a guest calls the shell tool, where policy allows it (rule 2.7)."""
        shell = next((e for e in self.entries if e.id == SHELL_ID), None)
        if shell is None:
            return None
        if self.guest_api == "tools":
            return f'tools.callValue("{SHELL_ID}", {{command: "..."}})'
        return None if shell.callable_name is None else f'{shell.callable_name}({{command: "..."}})'

    @property
    def search_call(self) -> str:
        """How a guest finds a tool."""
        return "tools.search" if self.guest_api == "tools" else "catalog.search"

    def with_guest_names(self, message: str) -> str:
        """Return `message` with catalog ids replaced by callable names (BEHAVIOURS 149).

        With the tools API ids are what a guest calls, and stay.
        """
        if self.guest_api == "tools" or not any(
            prefix in message for prefix in ("openclaw:", "mcp:", "client:")
        ):
            return message
        for catalog_id, name in self._ids_longest_first:
            message = message.replace(catalog_id, name)
        return message

    @cached_property
    def _ids_longest_first(self) -> tuple[tuple[str, str], ...]:
        pairs = [
            (entry.id, entry.guest_name)
            for entry in (*self.entries, *self.operations)
            if entry.guest_name is not None
        ]
        return tuple(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[0])))
