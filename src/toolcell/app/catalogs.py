"""Owns the snapshots in use: one for each set of tools, shared by all runs that see the same set.

Above: `app.run`. Below: `catalog.snapshot`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.tools.tool import SourcedTool

MAX_SNAPSHOTS: Final = 32


class CatalogShelf:
    """Builds snapshots and keeps the latest ones.

    Tools are frozen, so the same tool objects always make the same snapshot: the key is their
    identity, and holding them keeps the identities unique.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, ...], tuple[Sequence[SourcedTool], CatalogSnapshot]]
        self._kept = OrderedDict()

    def snapshot(self, tools: Sequence[SourcedTool]) -> CatalogSnapshot:
        """Return the snapshot of exactly these tools."""
        key = tuple(map(id, tools))
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found[1]
        made = CatalogSnapshot.build(tools)
        self._kept[key] = (tools, made)
        if len(self._kept) > MAX_SNAPSHOTS:
            self._kept.popitem(last=False)
        return made
