"""Owns the SQLite file: opening it, its schema and migrations, reading and writing records.

Several processes may have one file open: WAL, immediate transactions, a busy time-out. A commit
that returned survives the death of the process at any point (`synchronous=NORMAL`: only a power cut
may take back the last commits; the file is sound in any case).

Above: `store`. Below: `sqlite3`, `records`. Refuses to know: threads, asyncio.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from toolcell.errors import SessionError
from toolcell.sessions.listing import SessionInfo
from toolcell.sessions.records import Record

T = TypeVar("T")

BUSY_SECONDS: Final = 30.0
"""How long to wait for another process that is writing."""

_PAUSE_SECONDS: Final = 0.02
OPEN_TRIES: Final = 250

MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        last_seq INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT,
        run_id TEXT,
        type TEXT NOT NULL,
        at REAL NOT NULL,
        call_id TEXT,
        parent_id TEXT,
        body TEXT NOT NULL
    );
    CREATE INDEX events_by_session ON events (session_id, seq);
    CREATE INDEX events_by_type ON events (session_id, type, seq);
    """,
    """
    CREATE TABLE contents (
        key TEXT PRIMARY KEY,
        text TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE deliveries (
        channel TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        digest TEXT NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (channel, id)
    ) WITHOUT ROWID;
    CREATE INDEX deliveries_by_age ON deliveries (at);
    """,
    """
    CREATE TABLE open_runs (
        run_id TEXT PRIMARY KEY,
        session_id TEXT NOT NULL,
        owner TEXT NOT NULL
    );
    ALTER TABLE deliveries ADD COLUMN message TEXT;
    ALTER TABLE deliveries ADD COLUMN owner TEXT;
    CREATE INDEX deliveries_open ON deliveries (at) WHERE message IS NOT NULL;
    """,
    """
    CREATE TABLE search_state (through INTEGER NOT NULL);
    """,
)
"""Each brings the file from version n to n + 1 (`PRAGMA user_version`). Append only."""

_INSERT = (
    "INSERT INTO events (session_id, run_id, type, at, call_id, parent_id, body) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_BEGUN = "INSERT OR REPLACE INTO open_runs (run_id, session_id, owner) VALUES (?, ?, ?)"
_OVER = "DELETE FROM open_runs WHERE run_id = ?"
_KEEP = "INSERT OR IGNORE INTO contents (key, text) VALUES (?, ?)"
_TOUCH = (
    "INSERT INTO sessions (session_id, session_key, agent_id, created_at, updated_at, last_seq) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (session_id) DO UPDATE SET "
    "updated_at = max(updated_at, ?5), last_seq = max(last_seq, ?6)"
)
_LIST = (
    "SELECT s.session_id, s.session_key, s.agent_id, s.created_at, s.updated_at, "
    "(SELECT count(*) FROM events e WHERE e.session_id = s.session_id AND e.type = 'message'), "
    "(SELECT count(DISTINCT e.run_id) FROM events e WHERE e.session_id = s.session_id) "
    "FROM sessions s WHERE ?1 IS NULL OR s.session_id = ?1 ORDER BY s.last_seq DESC LIMIT ?2"
)


class Database:
    """One connection. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file, making it and bringing its schema up to date where needed.

        Raises:
            SessionError: it cannot be opened, is no database, or is from a newer toolcell.
        """
        self._path = path
        with self._errors("open"):
            _make_private(path)
            for left in reversed(range(OPEN_TRIES)):
                try:
                    self._connection = self._opened()
                except sqlite3.OperationalError as error:
                    if not left or not _passing(error):
                        raise
                    time.sleep(_PAUSE_SECONDS)
                else:
                    return

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._connection = connection
            self._migrate()
        except BaseException:
            connection.close()
            raise
        return connection

    def write(self, records: Sequence[Record], *, owner: str = "") -> None:
        """Write records in one transaction: all or none.

        Args:
            records: What happened.
            owner: The program whose runs these are; open runs of no program are not listed.

        Raises:
            SessionError: the file cannot be written.
        """
        with self._errors("write"), self._transaction():
            touched: dict[str, tuple[Record, float, int]] = {}
            for record in records:
                row = (
                    record.session_id,
                    record.run_id,
                    record.type,
                    record.at,
                    record.call_id,
                    record.parent_id,
                    record.body,
                )
                seq = self._connection.execute(_INSERT, row).lastrowid or 0
                if record.type == "run_started" and owner:
                    opened = (record.run_id, record.session_id, owner)
                    self._connection.execute(_BEGUN, opened)
                elif record.type == "run_ended":
                    self._connection.execute(_OVER, (record.run_id,))
                if record.content is not None:
                    key = str(record.data().get("key"))
                    self._connection.execute(_KEEP, (key, record.content))
                if record.session_id is not None:
                    first, *_ = touched.get(record.session_id, (record,))
                    touched[record.session_id] = (first, record.at, seq)
            for session_id, (first, at, seq) in touched.items():
                self._connection.execute(
                    _TOUCH, (session_id, first.session_key, first.agent_id, first.at, at, seq)
                )

    def read(
        self,
        session_id: str,
        *,
        types: Iterable[str] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[Record, ...]:
        """Return records of a session in order."""
        wanted = tuple(types) if types is not None else None
        of_type = f"AND type IN ({', '.join('?' * len(wanted))})" if wanted is not None else ""
        query = (
            "SELECT seq, session_id, run_id, type, at, call_id, parent_id, body FROM events "  # noqa: S608 - only question marks are put in
            f"WHERE session_id = ? AND seq > ? {of_type} ORDER BY seq LIMIT ?"
        )
        values = (session_id, after, *(wanted or ()), -1 if limit is None else limit)
        with self._errors("read"):
            rows = self._connection.execute(query, values).fetchall()
        return tuple(
            Record(
                seq=seq,
                session_id=session,
                run_id=run,
                type=kind,
                at=at,
                call_id=call,
                parent_id=parent,
                body=body,
            )
            for seq, session, run, kind, at, call, parent, body in rows
        )

    def contents(self, keys: Iterable[str]) -> dict[str, str]:
        """Return kept texts by key; unknown keys are left out."""
        found = {}
        with self._errors("read"):
            for key in keys:
                query = "SELECT text FROM contents WHERE key = ?"
                for (text,) in self._connection.execute(query, (key,)):
                    found[key] = text
        return found

    def sessions(self, *, session_id: str | None = None, limit: int = 100) -> list[SessionInfo]:
        """Return sessions, the last used first; only `session_id` where it is given."""
        with self._errors("read"):
            rows = self._connection.execute(_LIST, (session_id, limit)).fetchall()
        return [
            SessionInfo(
                session_id=row[0],
                session_key=row[1],
                agent_id=row[2],
                created_at=row[3],
                updated_at=row[4],
                messages=row[5],
                runs=row[6],
            )
            for row in rows
        ]

    def change(self, work: Callable[[sqlite3.Connection], T], *, overwrite: bool = False) -> T:
        """Do something in one transaction: all of it or nothing.

        Args:
            work: What to do.
            overwrite: Whether what it deletes is overwritten with zeros; the journal is
                emptied too, unless another connection reads it just now.

        Raises:
            SessionError: the file cannot be read or written.
        """
        with self._errors("write"):
            if overwrite:
                self._connection.execute("PRAGMA secure_delete = ON")
            with self._transaction():
                done = work(self._connection)
            if overwrite:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return done

    def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something, all of it as it stands at one moment.

        Raises:
            SessionError: the file cannot be read.
        """
        with self._errors("read"):
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; the last one to close folds the WAL back in."""
        self._connection.close()

    def _migrate(self) -> None:
        if self._version() == len(MIGRATIONS):
            return
        with self._transaction():
            # Read again under the lock: another process may have just done it.
            version = self._version()
            if version > len(MIGRATIONS):
                message = (
                    f"session store {str(self._path)!r} has version {version}, made by a newer "
                    f"toolcell (this one knows {len(MIGRATIONS)}); update toolcell, or name "
                    "another file in sessions.path"
                )
                raise SessionError(message)
            for script in MIGRATIONS[version:]:
                for statement in filter(str.strip, script.split(";")):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            place = f"session store {str(self._path)!r}"
            message = f"cannot {doing} {place}: {error}; {_remedy(error)}"
            raise SessionError(message) from error


def _passing(error: sqlite3.OperationalError) -> bool:
    """Whether opening again may work.

    SQLite refuses to switch the journal while others do the same, and answers with an I/O error
    when the last connection of another process folds its journal in and deletes it meanwhile.
    """
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR"))


def _make_private(path: Path) -> None:
    """Make the file, readable by its owner only: it holds conversations.

    A file that is there is not opened: closing it would take away the locks that SQLite holds on it
    in this process, and the next process to close it would delete the journal under its writer.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _remedy(error: sqlite3.Error | OSError) -> str:
    text = str(error)
    if "not a database" in text:
        return "the file is something else; name another one in sessions.path"
    if "malformed" in text:
        return "the file is damaged; move it away, a new one is made"
    if "locked" in text:
        return f"another process has been writing for {BUSY_SECONDS:.0f} seconds; try again"
    if "full" in text:
        return "free some disk space"
    return "check the folder and its permissions, or name another file in sessions.path"
