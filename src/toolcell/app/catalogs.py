"""Owns the snapshots and direct plans in use: one for each set of tools, shared by its runs.

Above: `app.run`. Below: `catalog.snapshot`, `surface.plan`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import anyio
import anyio.to_thread

from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.surface.plan import SurfacePlan, plan_direct
from toolcell.tools.tool import SourcedTool

MAX_SETS: Final = 32
BUILT_AT_ONCE: Final = 50
"""Tools whose catalog is built on the loop, in 5 ms at most: a thread costs more than it spares."""

T = TypeVar("T")


class _ByTools(Generic[T]):
    """Makes something of a set of tools, and keeps the latest ones.

    Tools are frozen, so the same tool objects always make the same thing: the key is their
    identity, and holding them keeps the identities unique.
    """

    def __init__(self, make: Callable[[tuple[SourcedTool, ...]], T]) -> None:
        self._make = make
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[SourcedTool, ...], T]] = OrderedDict()

    def of(self, tools: tuple[SourcedTool, ...]) -> T:
        key = tuple(map(id, tools))
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found[1]
        return self.keep(tools, self._make(tools))

    def has(self, tools: tuple[SourcedTool, ...]) -> bool:
        return tuple(map(id, tools)) in self._kept

    def keep(self, tools: tuple[SourcedTool, ...], made: T) -> T:
        self._kept[tuple(map(id, tools))] = (tools, made)
        if len(self._kept) > MAX_SETS:
            self._kept.popitem(last=False)
        return made


class CatalogShelf:
    """Builds snapshots and plans and keeps the latest ones."""

    def __init__(self) -> None:
        self._snapshots = _ByTools(CatalogSnapshot.build)
        self._plans = _ByTools(plan_direct)
        self._building: dict[tuple[int, ...], anyio.Event] = {}

    async def ready(self, tools: tuple[SourcedTool, ...]) -> None:
        """Build the snapshot of these tools, and the hints of its entries, off the event loop.

        Whoever asks for the same tools meanwhile waits for the same snapshot.
        """
        key = tuple(map(id, tools))
        while not self._snapshots.has(tools) and len(tools) > BUILT_AT_ONCE:
            building = self._building.get(key)
            if building is not None:
                await building.wait()
                continue
            over = self._building[key] = anyio.Event()
            try:
                # Not in the pool of the tools: one that hangs there must not hold up new runs.
                made = await anyio.to_thread.run_sync(_with_hints, tools)
                self._snapshots.keep(tools, made)
            finally:
                del self._building[key]
                over.set()

    def snapshot(self, tools: tuple[SourcedTool, ...]) -> CatalogSnapshot:
        """Return the snapshot of exactly these tools."""
        return self._snapshots.of(tools)

    def direct_plan(self, tools: tuple[SourcedTool, ...]) -> SurfacePlan:
        """Return the plan that shows exactly these tools; every schema is gone through for it.

        Raises:
            RequestError: a client tool has a name that is taken (CN-07).
        """
        return self._plans.of(tools)


def _with_hints(tools: tuple[SourcedTool, ...]) -> CatalogSnapshot:
    made = CatalogSnapshot.build(tools)
    for entry in made.entries:
        _ = entry.input, entry.output  # remembered by their schemas
    return made
