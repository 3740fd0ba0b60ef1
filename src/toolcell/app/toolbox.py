"""Owns every source of tools of a runtime, as one list that has a version.

Above: `app.run`, `app.runtime`. Below: `sources.contract`.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from toolcell.sources.contract import Source, Unavailable
from toolcell.tools.tool import SourcedTool


class Toolbox:
    """Several sources as one. Runs ask `version` before each use and rebuild when it changed."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._seen: list[int] | None = None
        self._version = 0
        self._tools: tuple[SourcedTool, ...] = ()

    @property
    def version(self) -> int:
        """Grows whenever `tools()` would give something else."""
        self._collect()
        return self._version

    def tools(self) -> tuple[SourcedTool, ...]:
        """Return every tool, before policy."""
        self._collect()
        return self._tools

    def unavailable(self) -> tuple[Unavailable, ...]:
        """Return what should be here and is not."""
        return tuple(each for source in self._sources for each in source.unavailable())

    async def start(self) -> None:
        """Start every source at once."""
        async with anyio.create_task_group() as group:
            for source in self._sources:
                group.start_soon(source.start)

    async def aclose(self) -> None:
        """Close every source, the last one first; each gets its turn whatever the others do."""
        for source in reversed(self._sources):
            await source.aclose()

    def _collect(self) -> None:
        seen = [
            source.version for source in self._sources
        ]  # three times for each call: no generator
        if seen != self._seen:
            self._seen = seen
            self._version += 1
            self._tools = tuple(each for source in self._sources for each in source.tools())
