"""Owns the runs that have begun and not ended, by the program that ran them.

Above: the gateway. Below: `database`, `ownership`. Refuses to know: what is done about them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import anyio.to_thread

from toolcell.sessions.database import Database
from toolcell.sessions.ownership import alive

_ALL: Final = "SELECT run_id, session_id, owner FROM open_runs ORDER BY rowid"
_TAKE: Final = "UPDATE open_runs SET owner = ? WHERE run_id = ? AND owner = ?"
_FORGET: Final = "DELETE FROM open_runs WHERE run_id = ?"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that has no end on record."""

    run_id: str
    session_id: str
    owner: str


class OpenRuns:
    """The open runs in the file of the sessions, seen by the program `owner`."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner

    async def left(self) -> Sequence[OpenRun]:
        """Return the runs of programs that are gone, the oldest first.

        Raises:
            SessionError: the file cannot be read.
        """

        def work(connection: sqlite3.Connection) -> Sequence[OpenRun]:
            found = [OpenRun(*row) for row in connection.execute(_ALL)]
            gone = {o: not alive(self._path, o) for o in {each.owner for each in found}}
            return [each for each in found if gone[each.owner]]

        return await self._changed(work)

    async def take_over(self, run: OpenRun) -> bool:
        """Make a run ours; returns False when another program was faster.

        Raises:
            SessionError: the file cannot be written.
        """
        values = (self._owner, run.run_id, run.owner)
        return await self._changed(lambda c: c.execute(_TAKE, values).rowcount == 1)

    async def forget(self, run: OpenRun) -> None:
        """Drop a run whose session is no more.

        Raises:
            SessionError: the file cannot be written.
        """
        await self._changed(lambda c: c.execute(_FORGET, (run.run_id,)))

    async def _changed(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def in_thread() -> T:
            database = Database(self._path)
            try:
                return database.change(work)
            finally:
                database.close()

        return await anyio.to_thread.run_sync(in_thread)
