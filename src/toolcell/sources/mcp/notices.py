"""Owns what a source tells the people who run it: diagnostics and start-up progress.

Above: connections. Below: `protocol`. Refuses to know: how either is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolcell.base.clock import Clock
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.sink import Sink
from toolcell.sources.mcp.listing import Listing
from toolcell.sources.mcp.status import Oddity

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Reports to a sink and, while starting, to a progress line."""

    clock: Clock
    sink: Sink
    progress: Callable[[str], None] | None = None

    def failure(self, server: str, reason: str, log: Sequence[str]) -> None:
        """A server failed; its last words help."""
        tail = f" (it said: {' | '.join(log)})" if log else ""
        self._emit("error", server, f"{reason}{tail}; it is tried again")

    def oddities(self, server: str, found: Sequence[Oddity], before: Listing | None) -> None:
        """A listing holds entries that are not as they should be; known ones are not repeated."""
        known = frozenset(before.oddities) if before is not None else frozenset()
        news = [each for each in found if each not in known and each.outcome != "filtered"]
        for each in news[:_SHOWN]:
            how = "left out" if each.outcome == "rejected" else "kept without its schema"
            self._emit("warning", server, f"tool {each.tool}: {each.reason}; {how}")
        if len(news) > _SHOWN:
            self._emit("warning", server, f"{len(news) - _SHOWN} more such tools")

    def say(self, text: str) -> None:
        """Show how far the start is."""
        if self.progress is not None:
            self.progress(text)

    def _emit(self, level: str, server: str, message: str) -> None:
        self.sink.emit(
            Diagnostic(
                at=self.clock.wall(),
                level="error" if level == "error" else "warning",
                subject=f"mcp.servers.{server}",
                message=message,
            )
        )
