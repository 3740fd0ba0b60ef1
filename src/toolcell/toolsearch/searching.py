"""Owns `tool_search`: its arguments, one search or several, and a reply of bounded size.

BEHAVIOURS 319 to 324, REPORTS SR-07. Above: controls. Below: `calls.access`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from toolcell.base.jsontext import dumps, utf8_length
from toolcell.base.untrusted import wrapped
from toolcell.calls.access import RunCatalog
from toolcell.catalog.entry import Entry
from toolcell.toolsearch.selection import bad_input

MAX_ENTRIES: Final = 16
MAX_RESULTS: Final = 50
MAX_QUERY_BYTES: Final = 512
MAX_QUERY_CHARS: Final = 512
MAX_BATCH_CHARS: Final = 4000
MAX_SINGLE_CHARS: Final = 16_000
MAX_CANDIDATE_CHARS: Final = 2000
_WRAPPER_CHARS: Final = len(wrapped(""))
SHORT_DESCRIPTION: Final = 180
LONG_DESCRIPTION: Final = 512
_OPTIONAL: Final = ("output", "label", "mcp", "sourceName", "input", "description")
"""What a candidate can do without, in the order in which it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One search."""

    text: str
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a call asks for; `batch` decides the form of the reply."""

    queries: tuple[Query, ...]
    batch: bool


@dataclass(slots=True, kw_only=True)
class Found:
    """The reply: `value` is plain JSON; `untrusted` when remote text is in it.

    `notes` say which sources are missing that the search might have found (REPORTS SR-12).
    """

    value: Any
    untrusted: bool
    notes: tuple[str, ...] = field(default=())


def asked(given: Mapping[str, Any], default_limit: int, max_limit: int) -> Asked:
    """Read the arguments of `tool_search`; nothing is searched when one of them is wrong.

    Args:
        given: The arguments.
        default_limit: Hits of a query that names no limit.
        max_limit: The most hits of any query.

    Raises:
        CallError: `invalid_input`; the text says which argument and what to do.
    """
    query, queries, limit = given.get("query"), given.get("queries"), given.get("limit")
    if query is not None and not isinstance(query, str):
        msg = "query must be a string."
        raise bad_input(msg)
    if queries is not None and not isinstance(queries, list | tuple):
        msg = "queries must be a non-empty array."
        raise bad_input(msg)
    if not queries:
        if query is None:
            missing = queries is None
            raise bad_input(
                "provide query or queries." if missing else "queries must be a non-empty array."
            )
        return Asked(queries=(_query(query, limit, "query", "limit"),), batch=False)
    if len(queries) > MAX_ENTRIES:
        msg = f"queries has {len(queries)} entries; at most {MAX_ENTRIES} fit in a call."
        raise bad_input(msg)
    batch = tuple(_entry(each, index) for index, each in enumerate(queries))
    _check_scalar(query, limit, batch)
    _check_budget(batch, default_limit, max_limit)
    return Asked(queries=batch, batch=True)


def searched(catalog: RunCatalog, wanted: Asked) -> Found:
    """Run the searches, in order.

    Raises:
        CallError: `unavailable`, or the host's reranker failed.
    """
    groups = []
    untrusted = False
    notes: dict[str, None] = {}
    for query in wanted.queries:
        hits = [hit.entry for hit in catalog.search(query.text, limit=query.limit)]
        untrusted = untrusted or any(not entry.sourced.trusted for entry in hits)
        notes |= dict.fromkeys(catalog.missing(query.text, empty=not hits))
        groups.append((query.text, hits))
    room = MAX_BATCH_CHARS - (_WRAPPER_CHARS if untrusted else 0)
    value = _batch(groups, room) if wanted.batch else _single(groups[0][1])
    return Found(value=value, untrusted=untrusted, notes=tuple(notes))


def _entry(given: Any, index: int) -> Query:
    place = f"queries[{index}]"
    if isinstance(given, str):
        given = {"query": given}
    text = given.get("query") if isinstance(given, Mapping) else None
    if not isinstance(text, str) or not text.strip():
        msg = f"{place}.query must be a non-empty string."
        raise bad_input(msg)
    return _query(text, given.get("limit"), f"{place}.query", f"{place}.limit")


def _query(text: str, limit: Any, place: str, limit_place: str) -> Query:
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        msg = f"{limit_place} must be a positive integer."
        raise bad_input(msg)
    if len(text) > MAX_QUERY_CHARS:
        msg = (
            f"{place} has {len(text)} characters; at most {MAX_QUERY_CHARS} are searched for. Say "
            "what you want to do in a few words."
        )
        raise bad_input(msg)
    return Query(text=text, limit=limit)


def _check_scalar(query: str | None, limit: Any, batch: Sequence[Query]) -> None:
    """A single query beside a batch that has it too is an echo; another one is an error."""
    if query is None or not query.strip():
        if limit is not None:
            msg = "set limit on each batch query, not on the batch request."
            raise bad_input(msg)
        return
    if query.strip() not in {each.text.strip() for each in batch}:
        msg = "query and queries are both set and differ: drop query and put its text into queries."
        raise bad_input(msg)


def _check_budget(batch: Sequence[Query], default_limit: int, max_limit: int) -> None:
    total = sum(min(each.limit or default_limit, max_limit) for each in batch)
    if total > MAX_RESULTS:
        msg = (
            f"batch queries resolve to {total} results, but may request at most {MAX_RESULTS} in "
            "total. Set smaller limits or send fewer queries."
        )
        raise bad_input(msg)
    size = utf8_length(dumps([each.text for each in batch]))
    if size > MAX_QUERY_BYTES:
        msg = (
            f"batch queries take {size} bytes, but at most {MAX_QUERY_BYTES} in total. Shorten "
            "them or send fewer."
        )
        raise bad_input(msg)


def _single(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    candidates = [_candidate(entry, LONG_DESCRIPTION) for entry in entries]
    if len(dumps(candidates)) > MAX_SINGLE_CHARS:
        candidates = [_candidate(entry, SHORT_DESCRIPTION) for entry in entries]
    for name in _OPTIONAL:
        if len(dumps(candidates)) <= MAX_SINGLE_CHARS:
            break
        for candidate in candidates:
            candidate.pop(name, None)
    return candidates


def _batch(groups: Sequence[tuple[str, list[Entry]]], room: int) -> dict[str, Any]:
    """Return the groups; the last candidates of the largest one give way until it all fits."""
    results: list[dict[str, Any]] = [
        {"query": text, "candidates": [_candidate(entry, SHORT_DESCRIPTION) for entry in entries]}
        for text, entries in groups
    ]
    reply: dict[str, Any] = {"results": results}
    while len(dumps(reply)) > room:
        largest = max(results, key=lambda group: len(dumps(group["candidates"])))
        if not largest["candidates"]:
            break
        largest["candidates"].pop()
        largest["truncated"] = True
        reply["truncated"] = True
    return reply


def _candidate(entry: Entry, description: int) -> dict[str, Any]:
    out = entry.compact()
    out["description"] = clipped(out["description"], description)
    for name in _OPTIONAL:
        if len(dumps(out)) <= MAX_CANDIDATE_CHARS:
            break
        out.pop(name, None)
    return out


def clipped(text: str, most: int) -> str:
    """Return `text` in at most `most` characters, three dots in place of the rest."""
    return text if len(text) <= most else text[: most - 3] + "..."
