"""Owns every name a guest or a provider sees a tool by; each is made here, once.

Above: snapshot, which carries them on; surfaces, for provider names. Below: `tools`, `order`,
`reserved`. Refuses to know: how a name is installed. Every function gives the same names whatever
the order of its input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolcell.base.identifiers import digest
from toolcell.catalog.order import SortKey, sort_key
from toolcell.catalog.reserved import (
    INTERNAL_PREFIX,
    MCP_METHODS,
    RESERVED_GLOBALS,
    RESERVED_WORDS,
    TOOLS_METHODS,
    UNSAFE_PROPERTIES,
)
from toolcell.tools.tool import Group, SourcedTool

PROVIDER_NAME_LIMIT: Final = 64

_NOT_IDENTIFIER: Final = re.compile(r"[^A-Za-z0-9_$]")
_NOT_PROVIDER: Final = re.compile(r"[^A-Za-z0-9_-]")
_WORDS: Final = re.compile(r"[A-Za-z0-9]+")
_GROUP_RANK: Final = {group: rank for rank, group in enumerate(Group)}
_HASH_DIGITS: Final = 8
_FULL_HASH: Final = 64


@dataclass(frozen=True, slots=True)
class Names:
    """Names by catalog id, and a sentence for each tool that got none or another one."""

    by_id: Mapping[str, str]
    diagnostics: tuple[str, ...]


def catalog_order(sourced: SourcedTool) -> tuple[int, SortKey]:
    """Return the place of a tool in rule 4.1: its group, then its id."""
    return (_GROUP_RANK[sourced.group], sort_key(sourced.id))


def is_identifier(name: str) -> bool:
    """Whether `name` is a plain ASCII JavaScript identifier, reserved or not."""
    return bool(name) and _NOT_IDENTIFIER.search(name) is None and not name[0].isdigit()


def safe_name(name: str) -> str:
    """Return the identifier spelling of `name`: `llm-task` → `llm_task`, `1st` → `tool_1st`.

    BEHAVIOURS 168-170; it may be reserved, and two names may have one spelling.
    """
    base = _NOT_IDENTIFIER.sub("_", name)
    if not is_identifier(base) or base.startswith(INTERNAL_PREFIX):
        return f"tool_{base}"
    return base


def callable_names(tools: Iterable[SourcedTool]) -> Names:
    """Return the bare global of each tool that has one (rule 4.7, BEHAVIOURS 168-176).

    MCP tools have none. Of two tools with one name a client tool wins, else the first in catalog
    order; the diagnostics name the loser and its owner. Exact names are given first, then the
    others by spelling and id, with a hash of the id where the spelling is taken or reserved.
    """
    eligible = sorted((t for t in tools if t.source != "mcp"), key=catalog_order)
    winners, diagnostics = name_winners(eligible)
    names: dict[str, str] = {}
    taken: set[str] = set()
    changed: list[tuple[str, SourcedTool]] = []
    for sourced in winners:
        name = sourced.tool.name
        base = safe_name(name)
        if base == name and base not in RESERVED_GLOBALS:
            names[sourced.id] = base
            taken.add(base)
        else:
            changed.append((base, sourced))
    changed.sort(key=lambda pair: (sort_key(pair[0]), sort_key(pair[1].id)))
    for base, sourced in changed:
        free = base not in taken and base not in RESERVED_GLOBALS
        name = base if free else _with_hash(base, sourced.id, taken)
        names[sourced.id] = name
        taken.add(name)
    return Names(names, tuple(diagnostics))


def name_winners(ordered: Sequence[SourcedTool]) -> tuple[list[SourcedTool], list[str]]:
    """Keep one tool per name; `ordered` is in catalog order. Also return what the losers are told.

    A client tool wins, else the first in catalog order (BEHAVIOURS 175).
    """
    winner: dict[str, SourcedTool] = {}
    for sourced in ordered:
        held = winner.setdefault(sourced.tool.name, sourced)
        if sourced.source == "client" and held.source != "client":
            winner[sourced.tool.name] = sourced
    diagnostics = [
        f"tool {sourced.tool.name!r} of {sourced.owner!r} ({sourced.id}) has no callable name: "
        f"{winner[sourced.tool.name].id} has it; rename one of them."
        for sourced in ordered
        if winner[sourced.tool.name] is not sourced
    ]
    return [s for s in ordered if winner[s.tool.name] is s], diagnostics


def convenience_names(tools: Iterable[SourcedTool]) -> dict[str, str]:
    """Return `tools.<safeName>` → catalog id for the tools API (rule 4.7, BEHAVIOURS 158).

    MCP tools have none; neither has a spelling that two tools share, a method of `tools`, or a
    property with a meaning of its own.
    """
    owners: dict[str, list[str]] = {}
    for sourced in tools:
        if sourced.source != "mcp":
            owners.setdefault(safe_name(sourced.tool.name), []).append(sourced.id)
    refused = TOOLS_METHODS | UNSAFE_PROPERTIES
    usable = [name for name, ids in owners.items() if len(ids) == 1 and name not in refused]
    return {name: owners[name][0] for name in sorted(usable, key=sort_key)}


def camel_case(raw: str, *, fallback: str) -> str:
    """Return `raw` as a camelCase identifier: `take_snapshot` → `takeSnapshot`.

    Everything but ASCII letters and digits parts words; leading digits fall away (BEHAVIOURS 222).
    """
    words = _WORDS.findall(raw)
    joined = "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789")
    return joined[:1].lower() + joined[1:] if joined else fallback


def mcp_server_identifiers(servers: Iterable[str]) -> dict[str, str]:
    """Return the identifier of each raw server name: `chrome-devtools` → `chromeDevtools`."""
    return _identifiers(servers, fallback="server", reserved=RESERVED_WORDS | UNSAFE_PROPERTIES)


def mcp_method_identifiers(tools: Iterable[str]) -> dict[str, str]:
    """Return the identifier of each raw tool name of one server (BEHAVIOURS 222-224)."""
    reserved = RESERVED_WORDS | UNSAFE_PROPERTIES | MCP_METHODS
    return _identifiers(tools, fallback="tool", reserved=reserved)


def _identifiers(raw: Iterable[str], *, fallback: str, reserved: frozenset[str]) -> dict[str, str]:
    taken: set[str] = set()
    names: dict[str, str] = {}
    for name in sorted(set(raw), key=sort_key):
        base = camel_case(name, fallback=fallback)
        candidate, number = base, 1
        while candidate in reserved or candidate in taken:
            number += 1
            candidate = f"{base}{number}"
        taken.add(candidate)
        names[name] = candidate
    return names


def provider_names(tools: Iterable[SourcedTool]) -> Names:
    """Return what a provider sees each tool as: unique, `^[a-zA-Z0-9_-]{1,64}$` (CN-09, CN-10).

    A local or client tool keeps its name, an MCP tool is `<server>__<tool>`; characters outside the
    alphabet become `_`, and a name that was changed, cut or is taken ends in a hash of the id. The
    diagnostics name every tool that had to be renamed or left out.
    """
    ordered = sorted(tools, key=catalog_order)
    local, diagnostics = name_winners([t for t in ordered if t.source != "mcp"])
    names: dict[str, str] = {}
    taken: set[str] = set()
    changed: list[tuple[str, SourcedTool]] = []
    for sourced in [*local, *(t for t in ordered if t.source == "mcp")]:
        wanted = _wanted_provider_name(sourced)
        safe = _NOT_PROVIDER.sub("_", wanted) or "tool"
        if safe == wanted and len(safe) <= PROVIDER_NAME_LIMIT and safe not in taken:
            names[sourced.id] = safe
            taken.add(safe)
        else:
            changed.append((safe, sourced))
    for base, sourced in changed:
        name = _with_hash(base, sourced.id, taken, limit=PROVIDER_NAME_LIMIT)
        names[sourced.id] = name
        taken.add(name)
        diagnostics.append(f"tool {sourced.id!r} is sent to the provider as {name!r}.")
    return Names(names, tuple(diagnostics))


def _wanted_provider_name(sourced: SourcedTool) -> str:
    if sourced.mcp is None:
        return sourced.tool.name
    return f"{sourced.mcp.server}__{sourced.mcp.tool}"


def _with_hash(base: str, seed: str, taken: set[str], *, limit: int | None = None) -> str:
    """Append 8 hex digits of the seed's SHA-256, two more as long as the result is taken."""
    full = digest(seed, length=_FULL_HASH)
    for digits in range(_HASH_DIGITS, _FULL_HASH, 2):
        head = base if limit is None else base[: limit - digits - 1]
        name = f"{head}_{full[:digits]}"
        if name not in taken:
            return name
    message = f"no free name for {seed!r}: all of its hash is taken"
    raise ValueError(message)
