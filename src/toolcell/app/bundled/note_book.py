"""Owns the file of notes: texts under names, each agent its own, in one SQLite file.

Above: `notes`. Below: `errors`. Refuses to know: tools.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcell.errors import CallError

MAX_NAME: Final = 200
MAX_TEXT: Final = 65_536
MAX_NOTES: Final = 1000
"""Notes of one agent."""
BUSY_SECONDS: Final = 10.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS notes (
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (agent, name)
) WITHOUT ROWID
"""
_LIST: Final = "SELECT name, length(text), updated_at FROM notes WHERE agent = ? ORDER BY name"
_FIND: Final = (
    "SELECT name, length(text), updated_at FROM notes WHERE agent = ?1 "
    "AND (instr(lower(name), lower(?2)) OR instr(lower(text), lower(?2))) ORDER BY name"
)
_READ: Final = "SELECT text, updated_at FROM notes WHERE agent = ? AND name = ?"
_WRITE: Final = (
    "INSERT INTO notes (agent, name, text, updated_at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (agent, name) DO UPDATE SET text = excluded.text, updated_at = excluded.updated_at"
)


@dataclass(frozen=True, slots=True)
class Note:
    """What a list tells of a note."""

    name: str
    chars: int
    updated_at: float


class NoteBook:
    """The notes. Every method blocks and is one transaction; threads and programs may share a file.

    Args:
        path: The file; made, readable by its owner only, with the first note.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def list(self, agent: str, query: str | None) -> list[Note]:
        """Return the notes of an agent by name; with `query` those that hold it."""
        with self._open() as connection:
            if query is None:
                rows = connection.execute(_LIST, (agent,)).fetchall()
            else:
                rows = connection.execute(_FIND, (agent, query)).fetchall()
        return [Note(*row) for row in rows]

    def read(self, agent: str, name: str) -> tuple[str, float] | None:
        """Return a note's text and when it was written; None when there is none."""
        with self._open() as connection:
            found: tuple[str, float] | None = connection.execute(_READ, (agent, name)).fetchone()
        return found

    def write(self, agent: str, name: str, text: str, *, now: float) -> bool:
        """Write a note, over the one of that name; return whether it is new.

        Raises:
            CallError: the agent has as many notes as it may have.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            created = connection.execute(_READ, (agent, name)).fetchone() is None
            count = "SELECT count(*) FROM notes WHERE agent = ?"
            if created and connection.execute(count, (agent,)).fetchone()[0] >= MAX_NOTES:
                connection.rollback()
                msg = f"there are {MAX_NOTES} notes already; remove one first."
                raise CallError(msg, code="tool_error", effect="none")
            connection.execute(_WRITE, (agent, name, text, now))
            connection.commit()
        return created

    def remove(self, agent: str, name: str) -> bool:
        """Remove a note; return whether there was one."""
        with self._open() as connection:
            query = "DELETE FROM notes WHERE agent = ? AND name = ?"
            removed = connection.execute(query, (agent, name)).rowcount
            connection.commit()
        return removed > 0

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if not self._path.exists():
                    self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._path.touch(mode=0o600)
                with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection:
                    connection.execute("PRAGMA secure_delete = ON")
                    connection.execute(_SCHEMA)
                    yield connection
            except (sqlite3.Error, OSError) as error:
                msg = f"the file of notes cannot be used: {error}"
                raise CallError(msg, code="tool_error", effect="unknown") from error
