"""Owns who goes next in a session: one run at a time, the others in the order they came.

Above: `runs`. Below: nothing.
"""

from __future__ import annotations

import anyio


class SessionLines:
    """Every session with a run, and the runs that wait behind it."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, anyio.Event]] = {}

    def holder(self, session_id: str) -> str | None:
        """Return the run that goes on in a session; None when none does."""
        return next(iter(self._lines.get(session_id, ())), None)

    def waiting(self, session_id: str) -> int:
        """Return how many runs wait behind it."""
        return max(0, len(self._lines.get(session_id, ())) - 1)

    def enter(self, session_id: str, run_id: str) -> anyio.Event:
        """Put a run at the end; what is returned is set when its turn has come."""
        line = self._lines.setdefault(session_id, {})
        turn = line[run_id] = anyio.Event()
        if len(line) == 1:
            turn.set()
        return turn

    def leave(self, session_id: str, run_id: str) -> None:
        """Take a run out, wherever it stands."""
        line = self._lines[session_id]
        del line[run_id]
        if not line:
            del self._lines[session_id]
            return
        line[next(iter(line))].set()
