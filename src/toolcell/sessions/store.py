"""Owns the session store on disk: a sink whose writes happen in a thread of its own.

`emit` only puts into a queue. The writer waits a moment for more, takes whatever is there, makes
records of it and commits them together: a burst costs one commit and few changes of thread, and the
event loop never waits for a disk. A flush does not wait for that moment.

Above: `app`, the CLI, tests. Below: `database`, `records`, `projections`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import anyio.to_thread

from toolcell.errors import SessionError
from toolcell.protocol.events import CallStarted, CallUpdated, Event
from toolcell.protocol.messages import Message
from toolcell.sessions.contract import MAX_VALUE_BYTES
from toolcell.sessions.database import Database
from toolcell.sessions.deletion import delete_session
from toolcell.sessions.listing import SessionInfo, Trace, content_keys, shown, unknown_session
from toolcell.sessions.projections import CallNode, call_tree, history
from toolcell.sessions.records import Record, to_record
from toolcell.sessions.search import Found, Wanted, search

MAX_BATCH: Final = 512
"""Events in one commit; more wait for the next one, so that a flush is never far away."""

MAX_UPDATES: Final = 100
"""Progress reports recorded of one call; a tool may send thousands."""

GATHER_SECONDS: Final = 0.005
"""How long an event may wait for others before it is written; what a crash may take with it."""

MAX_READERS: Final = 4
"""Connections kept open for reading."""

T = TypeVar("T")


class _Flush:
    """A mark in the queue; answered when all before it is committed, or could not be."""

    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    async def wait(self) -> None:
        """Return when it is answered.

        Raises:
            SessionError: as it was answered.
        """
        await self._future

    def answer(self, error: SessionError | None) -> None:
        """Answer it, from the writer's thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, error)

    def _settle(self, error: SessionError | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)


class _Stop:
    """The last thing in the queue."""


class SessionStore:
    """Events in one SQLite file. Use it as `async with SessionStore(path) as store`."""

    def __init__(
        self, path: Path | str, *, max_value_bytes: int = MAX_VALUE_BYTES, owner: str = ""
    ) -> None:
        self._path = Path(path)
        self._owner = owner
        self._limit = max_value_bytes
        self._queue: queue.SimpleQueue[Event | Record | _Flush | _Stop] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: SessionError | None = None
        self._lost = 0
        self._updates: dict[tuple[str, str], int] = {}
        self._hurry = threading.Event()
        self._stopped = False
        self._readers: list[Database] = []

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    async def __aenter__(self) -> SessionStore:
        """Open the file and start the writer.

        Raises:
            SessionError: the file cannot be opened.
        """
        database = await anyio.to_thread.run_sync(Database, self._path)
        self._thread = threading.Thread(
            target=self._write_all, args=(database,), name="toolcell-sessions", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit what is queued and close the file, even when the task is being cancelled."""
        thread = self._thread
        if thread is None:
            return
        self._thread = None
        self._queue.put(_Stop())
        self._hurry.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join)
        while self._readers:
            self._readers.pop().close()
        if self._error is not None and kind is None:
            raise self._error

    def emit(self, event: Event) -> None:
        """Take one event; never blocks, never raises. Before the store is open they wait."""
        if isinstance(event, CallUpdated) and not self._wants(event):
            return
        if isinstance(event, CallStarted):
            # The tool gets these very arguments and may change them; later is too late.
            self._queue.put(to_record(event, self._limit))
        else:
            self._queue.put(event)

    async def flush(self) -> None:
        """Return when everything emitted so far is committed.

        Raises:
            SessionError: events were lost; says how many and why. Later ones are tried again.
        """
        if self._thread is None:
            message = "the session store is not open; use `async with SessionStore(path)`"
            raise SessionError(message)
        mark = _Flush()
        self._queue.put(mark)
        self._hurry.set()
        if self._stopped:
            self._refuse_marks()
        await mark.wait()

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return the conversation; empty for an unknown session."""
        return await self._read(lambda db: history(db.read(session_id, types=("message",))))

    async def events(
        self,
        session_id: str,
        *,
        types: Sequence[str] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Record]:
        """Return records in order, from behind the record `after`; only of `types`, where given."""
        return await self._read(
            lambda db: db.read(session_id, types=types, after=after, limit=limit)
        )

    async def tree(self, session_id: str) -> tuple[CallNode, ...]:
        """Return the tool calls of a session, nested ones under their parent (rule 8.3)."""
        types = ("call_started", "call_ended", "run_ended")
        return await self._read(lambda db: call_tree(db.read(session_id, types=types)))

    async def list_sessions(self, *, limit: int = 100) -> Sequence[SessionInfo]:
        """Return sessions, the last used first."""
        return await self._read(lambda db: db.sessions(limit=limit))

    async def info(self, session_id: str) -> SessionInfo | None:
        """Return what a listing says of one session; None when there is no such session."""
        found = await self._read(lambda db: db.sessions(session_id=session_id))
        return found[0] if found else None

    async def trace(self, session_id: str) -> Trace:
        """Return everything that is kept of a session.

        Raises:
            SessionError: there is no such session.
        """

        def read(database: Database) -> Trace:
            infos = database.sessions(session_id=session_id)
            if not infos:
                raise unknown_session(session_id)
            records = database.read(session_id)
            contents = database.contents(content_keys(records))
            return Trace(info=infos[0], records=records, contents=contents)

        return await self._read(read)

    async def search(self, wanted: Wanted) -> Found:
        """Return sessions in which one message holds all of some words."""
        return await self._read(lambda db: search(db, wanted))

    async def delete(self, session_id: str) -> Sequence[str]:
        """Forget a session and those of its children; returns the ids of what was forgotten.

        Raises:
            SessionError: there is no such session, or it cannot be deleted.
        """
        return await self._read(lambda db: delete_session(db, session_id))

    async def show(self, session_id: str) -> dict[str, Any]:
        """Return `{session, transcript, calls}` as plain JSON data.

        Raises:
            SessionError: there is no such session.
        """

        def read(database: Database) -> dict[str, Any]:
            infos = database.sessions(session_id=session_id)
            if not infos:
                raise unknown_session(session_id)
            return shown(infos[0], database.read(session_id))

        return await self._read(read)

    async def _read(self, read: Callable[[Database], T]) -> T:
        """Read through a connection of its own, in a worker thread, after what was emitted."""
        await self.flush()

        def work() -> T:
            try:
                database = self._readers.pop()
            except IndexError:
                database = Database(self._path)
            try:
                found = read(database)
            except BaseException:
                database.close()
                raise
            if self._thread is None or len(self._readers) >= MAX_READERS:
                database.close()
            else:
                self._readers.append(database)
            return found

        return await anyio.to_thread.run_sync(work)

    def _wants(self, event: CallUpdated) -> bool:
        key = (event.scope.run_id, event.call_id)
        seen = self._updates.get(key, 0)
        if seen >= MAX_UPDATES:
            return False
        if len(self._updates) >= MAX_BATCH:
            # Bounds the table itself; calls of long ago have stopped reporting.
            self._updates.pop(next(iter(self._updates)))
        self._updates[key] = seen + 1
        return True

    def _write_all(self, database: Database) -> None:
        """The writer thread."""
        mark: _Flush | _Stop | None = None
        try:
            while True:
                batch, mark = self._take()
                if batch:
                    self._commit(database, batch)
                if isinstance(mark, _Flush):
                    error, self._error = self._error, None
                    mark.answer(error)
                    mark = None
                elif isinstance(mark, _Stop):
                    return
        finally:
            database.close()
            # Whoever asks from now on sees this, and whoever asked before is in the queue.
            self._stopped = True
            self._refuse_marks(mark)

    def _refuse_marks(self, item: object = None) -> None:
        """Answer whoever waits for a writer that is gone: `item`, and what is in the queue."""
        with suppress(queue.Empty):
            while True:
                if isinstance(item, _Flush):
                    message = "the session store has stopped writing; open it again"
                    item.answer(SessionError(message))
                item = self._queue.get_nowait()

    def _take(self) -> tuple[list[Record], _Flush | _Stop | None]:
        """Wait for one thing and take what else is there, up to a mark."""
        batch: list[Record] = []
        item = self._queue.get()
        if not isinstance(item, _Flush | _Stop):
            self._hurry.wait(GATHER_SECONDS)
            self._hurry.clear()
        while True:
            if isinstance(item, _Flush | _Stop):
                return batch, item
            batch.append(item if isinstance(item, Record) else to_record(item, self._limit))
            if len(batch) >= MAX_BATCH:
                return batch, None
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, None

    def _commit(self, database: Database, batch: list[Record]) -> None:
        try:
            database.write(batch, owner=self._owner)
        except SessionError as error:
            self._lost += len(batch)
            message = f"{error.message} ({self._lost} events are not recorded)"
            self._error = SessionError(message)
