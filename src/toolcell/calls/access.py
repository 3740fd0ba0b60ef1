"""Owns `RunCatalog`: the catalog as one run sees it, with one set of counters and one visibility.

Above: code mode and tool search, which share it. Below: the gate, `catalog`. Refuses to know: guest
APIs, model-facing controls, how results are rendered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio

from toolcell.base.deadline import Deadline
from toolcell.base.identifiers import digest, fresh
from toolcell.calls.gate import Gate
from toolcell.calls.guesses import Guesses
from toolcell.calls.invocation import Invocation
from toolcell.catalog.entry import Entry, Hit
from toolcell.catalog.search.searcher import Reranker
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.errors import CallError
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import SourceName

CLOSED: Final = "Tool Search catalog is unavailable for this run."
_MAX_SHOWN_ID: Final = 256
_MAX_NAME_IN_CALL_ID: Final = 128
_SHORT_WORD: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
_SOURCES: Final[tuple[SourceName, ...]] = ("openclaw", "mcp", "client")


class RunCatalog:
    """What one run may search, describe and call.

    Args:
        snapshot: The catalog; it stays the same for this object's life.
        gate: Runs the calls.
        scope: Whom the run acts for.
        visible: Which entries the run may see; asked on every search and every call, so it may
            change its mind. None for all of them.
        search_default_limit: Hits of a search without a limit.
        max_search_limit: The most hits of any search.

    Attributes:
        unavailable: Gives what should be in the catalog and is not, owner to a short sentence;
            asked when a search finds nothing (REPORTS SR-12).
        reranker: Puts hits into an order of its own; an error of it fails that search.
        guesses: What a name that does not exist may have meant, among what is visible.
        offered: Whether an entry of the snapshot is still among the run's tools; asked on every
            call, so that a cell with an older catalog cannot use what is gone (REPORTS RS-09).
    """

    def __init__(
        self,
        snapshot: CatalogSnapshot,
        *,
        gate: Gate,
        scope: RunScope,
        visible: Callable[[Entry], bool] | None = None,
        search_default_limit: int = 8,
        max_search_limit: int = 50,
    ) -> None:
        self.snapshot = snapshot
        self.scope = scope
        self._gate = gate
        self._visible = visible
        self.unavailable: Callable[[], Mapping[str, str]] = dict
        self.reranker: Reranker | None = None
        self.guesses = Guesses(self._entries, lambda query: self._found(query, max_search_limit))
        self.offered: Callable[[Entry], bool] = self.holds_same
        self._default_limit = min(search_default_limit, max_search_limit)
        self._max_limit = max_search_limit
        self._counts = {"searchCount": 0, "describeCount": 0, "callCount": 0}
        self._numbers: dict[str, int] = {}
        self._counter_scope = digest(fresh("catalog"))
        self._pending: set[anyio.CancelScope] = set()
        self._all_sizes = _sizes(snapshot.sources())
        self._final_sizes: dict[str, Any] | None = None

    def entries(self) -> tuple[Entry, ...]:
        """Return the visible entries in catalog order.

        Raises:
            CallError: `unavailable`: the catalog was closed.
        """
        self._require_open()
        return self._entries()

    def holds_same(self, entry: Entry) -> bool:
        """Whether the snapshot has a tool of this entry's id, or MCP path, in whatever version."""
        path = entry.mcp_path
        return self.snapshot.get(entry.id) is not None or (
            path is not None and self.snapshot.by_mcp_path(*path) is not None
        )

    def is_visible(self, entry: Entry) -> bool:
        """Whether the run may see this very entry now."""
        return self._final_sizes is None and self._holds(entry) and self._shows(entry)

    def search(self, query: object, *, limit: object = None) -> tuple[Hit, ...]:
        """Return the best visible hits. Counted unless the arguments are wrong.

        Args:
            query: The text; a blank one finds nothing.
            limit: A positive integer, clamped to the maximum; None for the default.

        Raises:
            CallError: `invalid_input`: bad arguments; `unavailable`: the catalog was closed.
        """
        self._require_open()
        if not isinstance(query, str):
            msg = "query must be a string."
            raise _invalid(msg)
        wanted = self._limit(limit)
        self._counts["searchCount"] += 1
        if not query.strip():
            return ()
        try:
            return self._found(query, wanted, self.reranker)
        except Exception as error:
            message = f"the search reranker failed: {error}"
            raise CallError(message, code="tool_error", effect="none") from error

    def require_replay_safe(self, entry: Entry) -> None:
        """Refuse a tool that may not run again after a restart (rule 3.13).

        Raises:
            CallError: `invalid_input`: it is not marked replay-safe, or is not local code.
        """
        if entry.sourced.trusted and entry.sourced.tool.replay_safe:
            return
        message = (
            f'restart-safe code mode cannot call tool "{entry.id}": it is not proven replay-safe.'
        )
        raise _invalid(message)

    def missing(self, query: str, *, empty: bool) -> tuple[str, ...]:
        """Return what should be in the catalog and is not, one sentence each.

        Args:
            query: What was searched for.
            empty: Whether nothing was found; else only what the query speaks of counts, as its
                hits may be poor stand-ins.
        """
        words = [word for word in _WORD.findall(query.casefold()) if len(word) > _SHORT_WORD]
        return tuple(
            sentence
            for owner, sentence in self.unavailable().items()
            if empty or any(word in owner.casefold() for word in words)
        )

    def describe(self, tool_id: object) -> dict[str, Any]:
        """Return the entry with its `parameters` and, when trusted, its `outputSchema`. Counted.

        Raises:
            CallError: `unknown_tool`, `invalid_input` or `unavailable`.
        """
        entry = self.resolve(tool_id)
        self._counts["describeCount"] += 1
        return entry.described()

    def resolve(self, entry_or_id: object) -> Entry:
        """Return the visible entry of an exact id, or the entry itself while it is visible.

        Raises:
            CallError: `unknown_tool`, with at most three visible suggestions; `invalid_input` for
                something that is no id; `unavailable` when the catalog was closed.
        """
        self._require_open()
        if isinstance(entry_or_id, Entry):
            if self.is_visible(entry_or_id):
                return entry_or_id
            raise self._unknown(entry_or_id.id)
        if not isinstance(entry_or_id, str) or not entry_or_id.strip():
            msg = "id must be a non-empty string."
            raise _invalid(msg)
        found = self.snapshot.get(entry_or_id)
        if found is None:
            found = self.snapshot.get(entry_or_id.strip())
        if found is None or not self._shows(found):
            raise self._unknown(entry_or_id)
        return found

    async def call(
        self,
        entry_or_id: object,
        arguments: Any,
        *,
        parent_id: str | None,
        budget: Deadline | None = None,
        on_update: Callable[[Any], None] | None = None,
        replay_safe_only: bool = False,
    ) -> ToolResult:
        """Call a visible tool through the gate. Counted once it is found.

        Args:
            entry_or_id: The entry, or its exact id.
            arguments: Plain JSON; the gate checks it.
            parent_id: The call whose program makes this one.
            budget: Paused while an approval is open.
            on_update: Gets the tool's progress reports.
            replay_safe_only: Refuse a tool that is not proven safe to run again (rule 3.13).

        Raises:
            CallError: as the gate; also `unknown_tool`, `unavailable`, and `aborted` when the
                catalog is closed meanwhile.
        """
        entry = self.resolve(entry_or_id)
        if replay_safe_only:
            self.require_replay_safe(entry)
        self._counts["callCount"] += 1
        number, name = self._number(parent_id), entry.name[:_MAX_NAME_IN_CALL_ID]
        invocation = Invocation(
            sourced=entry.sourced,
            arguments=arguments,
            scope=self.scope,
            call_id=f"tool_search_code:{parent_id or 'direct'}:{name}:{number}",
            parent_id=parent_id,
            budget=budget,
            on_update=on_update,
            input_hint=entry.input,
            authority=lambda: self._require_still(entry),
        )
        cancel = anyio.CancelScope()
        self._pending.add(cancel)
        try:
            with cancel:
                return await self._gate.call(invocation)
        finally:
            self._pending.discard(cancel)
        msg = f'The call of tool "{entry.id}" was aborted.'
        raise CallError(msg, code="aborted")

    @contextmanager
    def numbered(self, parent_id: str) -> Iterator[None]:
        """Number the calls of one parent from 1 while the block runs (BEHAVIOURS 345)."""
        self._numbers[parent_id] = 0
        try:
            yield
        finally:
            self._numbers.pop(parent_id, None)

    def telemetry(self) -> dict[str, Any]:
        """Return sizes and counts (rule 8.4); after `close`, those of that moment."""
        sizes = self._sizes() if self._final_sizes is None else self._final_sizes
        return {
            "catalogSize": sizes["catalogSize"],
            "sources": dict(sizes["sources"]),
            **self._counts,
            "counterScope": self._counter_scope,
        }

    def close(self) -> None:
        """Abort the calls under way and refuse every further one. Safe to call again."""
        if self._final_sizes is None:
            self._final_sizes = self._sizes()
        for scope in tuple(self._pending):
            scope.cancel()

    def _holds(self, entry: Entry) -> bool:
        if self.snapshot.get(entry.id) is entry:
            return True
        return entry.mcp_path is not None and self.snapshot.by_mcp_path(*entry.mcp_path) is entry

    def _shows(self, entry: Entry) -> bool:
        return self._visible is None or self._visible(entry)

    def _entries(self) -> tuple[Entry, ...]:
        if self._visible is None:
            return self.snapshot.entries
        return tuple(filter(self._visible, self.snapshot.entries))

    def _found(self, query: str, limit: int, reranker: Reranker | None = None) -> tuple[Hit, ...]:
        return self.snapshot.search(query, limit=limit, visible=self._visible, reranker=reranker)

    def _number(self, parent_id: str | None) -> int:
        """Return the number in the id of the next call: of its parent's own, else of the run's."""
        if parent_id is None or parent_id not in self._numbers:
            return self._counts["callCount"]
        self._numbers[parent_id] += 1
        return self._numbers[parent_id]

    def _limit(self, limit: object) -> int:
        if limit is None:
            return self._default_limit
        if isinstance(limit, float) and limit.is_integer():
            limit = int(limit)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            msg = "limit must be a positive integer."
            raise _invalid(msg)
        return min(limit, self._max_limit)

    def _sizes(self) -> dict[str, Any]:
        if self._visible is None:
            return self._all_sizes
        return _sizes(Counter(entry.sourced.source for entry in self._entries()))

    def _require_open(self) -> None:
        if self._final_sizes is not None:
            raise CallError(CLOSED, code="unavailable", effect="none")

    def _require_still(self, entry: Entry) -> None:
        self._require_open()
        if not self._shows(entry) or not self.offered(entry):
            msg = f'Tool "{entry.id}" is no longer available to this run.'
            raise CallError(
                msg,
                code="unavailable",
                effect="none",
            )

    def _unknown(self, wanted: str) -> CallError:
        shown = wanted if len(wanted) <= _MAX_SHOWN_ID else f"{wanted[:_MAX_SHOWN_ID]}…"
        guesses = self._guesses(wanted)
        meant = f" Did you mean: {', '.join(guesses)}?" if guesses else ""
        return CallError(f"Unknown tool id: {shown}.{meant}", code="unknown_tool", effect="none")

    def _guesses(self, wanted: str) -> list[str]:
        """Return the labels of what the caller of an unknown id may have meant (330, 331)."""
        name = wanted[:_MAX_SHOWN_ID].rsplit(":", 1)[-1]
        return _labels(self.guesses.near(name), self._entries())


def _sizes(counts: Mapping[SourceName, int]) -> dict[str, Any]:
    sources = {source: counts.get(source, 0) for source in _SOURCES}
    return {"catalogSize": sum(sources.values()), "sources": sources}


def _labels(found: Iterable[Entry], visible: Iterable[Entry]) -> list[str]:
    """Return names, or ids where several visible tools share the name."""
    names = [entry.name for entry in visible]
    return [entry.name if names.count(entry.name) == 1 else entry.id for entry in found]


def _invalid(message: str) -> CallError:
    return CallError(message, code="invalid_input", effect="none")
