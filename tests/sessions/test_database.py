"""The session file: crashes, other processes, migrations, damage."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

import toolcell
from tests.sessions.events import said, scope, started
from toolcell.errors import SessionError
from toolcell.sessions import store as store_module
from toolcell.sessions.database import MIGRATIONS, Database
from toolcell.sessions.records import to_record
from toolcell.sessions.store import SessionStore

pytestmark = pytest.mark.anyio

ROOT = Path(toolcell.__file__).resolve().parents[1]
TESTS = Path(__file__).resolve().parents[2]

WRITER = """
import sys, anyio
from tests.sessions.events import said, scope
from toolcell.sessions.records import to_record
from toolcell.sessions.store import SessionStore

async def main(path, session, count):
    async with SessionStore(path) as store:
        print("open", flush=True)
        for n in range(count):
            store.emit(said(str(n), where=scope(session, session)))
            if n % 5 == 4:
                await store.flush()
                print(n + 1, flush=True)

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def writer(path, session, count):
    env = {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    command = [sys.executable, "-c", WRITER, str(path), session, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def committed(process, at_least):
    for line in process.stdout:
        if line.strip().isdigit() and int(line) >= at_least:
            return int(line)
    raise AssertionError("the writer ended early")


async def texts(path, session):
    async with SessionStore(path) as store:
        return [message.text for message in await store.history(session)]


def sound(path):
    with sqlite3.connect(path) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return answer == "ok"


async def test_what_was_flushed_survives_kill_9_and_writing_goes_on(tmp_path):
    """A process killed at any point loses at most what was not committed yet."""
    path = tmp_path / "s.db"
    total = 0
    for round_number in range(3):
        with writer(path, f"s{round_number}", 1_000_000) as process:
            acknowledged = committed(process, 40 + 30 * round_number)
            process.send_signal(signal.SIGKILL)
            process.wait()
        kept = await texts(path, f"s{round_number}")
        assert kept == [str(n) for n in range(len(kept))]
        assert len(kept) >= acknowledged
        total += len(kept)
    assert sound(path)
    async with SessionStore(path) as store:
        assert sum(info.messages for info in await store.list_sessions()) == total


async def test_two_processes_write_one_file(tmp_path):
    """The file is sound, and each process finds all of its own events in order."""
    path = tmp_path / "s.db"
    with writer(path, "one", 200) as first, writer(path, "two", 200) as second:
        async with SessionStore(path) as store:
            for n in range(50):
                store.emit(said(str(n), where=scope("three", "three")))
                await store.flush()
        assert await anyio.to_thread.run_sync(first.wait) == 0
        assert await anyio.to_thread.run_sync(second.wait) == 0
    assert await texts(path, "one") == [str(n) for n in range(200)]
    assert await texts(path, "two") == [str(n) for n in range(200)]
    assert await texts(path, "three") == [str(n) for n in range(50)]
    assert sound(path)


async def test_emit_never_waits_for_a_file_that_another_process_holds(tmp_path):
    path = tmp_path / "s.db"
    async with SessionStore(path) as store:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with anyio.move_on_after(0.2) as scope_:
            for n in range(100):
                store.emit(said(str(n)))
            await store.flush()
        assert scope_.cancelled_caught
        holder.execute("COMMIT")
        holder.close()
        assert len(await store.history("s1")) == 100


async def test_leaving_the_store_commits_what_is_queued_even_when_cancelled(tmp_path):
    path = tmp_path / "s.db"
    with anyio.CancelScope() as cancelled:
        async with SessionStore(path) as store:
            for n in range(2000):
                store.emit(said(str(n)))
            cancelled.cancel()
            await anyio.sleep_forever()
    assert len(await texts(path, "s1")) == 2000


async def test_the_file_and_its_folder_are_private(tmp_path):
    path = tmp_path / "new" / "s.db"
    async with SessionStore(path) as store:
        store.emit(said("secret"))
        await store.flush()
        files = list(path.parent.iterdir())
    assert path in files
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_schema_version_is_the_number_of_migrations(tmp_path):
    path = tmp_path / "s.db"
    Database(path).close()
    Database(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


async def test_a_file_from_a_newer_toolcell_is_left_alone(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(SessionError, match=r"version 999.*update toolcell"):
        async with SessionStore(path):
            pass
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


async def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database\n" * 100)
    with pytest.raises(SessionError, match=r"notes\.txt.*sessions\.path"):
        async with SessionStore(path):
            pass
    assert path.read_text().startswith("these are my notes")


async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="cannot open session store"):
        async with SessionStore(tmp_path / "file" / "s.db"):
            pass


async def test_lost_events_are_counted_and_told_at_the_next_flush(tmp_path):
    path = tmp_path / "s.db"
    async with SessionStore(path) as store:
        store.emit(said("before"))
        await store.flush()
        breaker = sqlite3.connect(path)
        breaker.execute("ALTER TABLE events RENAME TO gone")
        breaker.commit()
        store.emit(said("lost"))
        with pytest.raises(SessionError, match=r"cannot write.*1 events are not recorded"):
            await store.flush()
        breaker.execute("ALTER TABLE gone RENAME TO events")
        breaker.commit()
        breaker.close()
        store.emit(said("after"))
        assert [m.text for m in await store.history("s1")] == ["before", "after"]


async def test_a_store_that_is_not_open_says_how_to_open_it(tmp_path):
    store = SessionStore(tmp_path / "s.db")
    store.emit(said("early"))
    with pytest.raises(SessionError, match="async with SessionStore"):
        await store.flush()
    async with store:
        assert [m.text for m in await store.history("s1")] == ["early"]


async def test_a_burst_of_events_is_committed_together(tmp_path):
    path = tmp_path / "s.db"
    async with SessionStore(path) as store:
        for n in range(3000):
            store.emit(started(f"c{n}", n + 1))
        assert len(await store.tree("s1")) == 3000


@pytest.mark.parametrize("attempt", range(5))
def test_many_that_open_a_new_file_at_once_make_its_schema_once(tmp_path, attempt):
    path = tmp_path / f"{attempt}.db"
    together = threading.Barrier(8)

    def open_and_write(number):
        together.wait()
        database = Database(path)
        database.write([to_record(said(str(number)), 1000)])
        database.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_and_write, range(8)))
    database = Database(path)
    assert len(database.read("s1")) == 8
    database.close()
    assert sound(path)


async def test_a_flush_does_not_wait_for_more_to_gather(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "GATHER_SECONDS", 60.0)
    async with SessionStore(tmp_path / "s.db") as store:
        for number in range(3):
            store.emit(said(str(number)))
            with anyio.fail_after(20):
                await store.flush()
    assert await texts(tmp_path / "s.db", "s1") == ["0", "1", "2"]


async def test_a_writer_that_died_is_told_to_whoever_waits_and_whoever_comes(tmp_path, monkeypatch):
    store = await SessionStore(tmp_path / "s.db").__aenter__()

    def dies(_database, _records):
        raise MemoryError

    monkeypatch.setattr(Database, "write", dies)
    monkeypatch.setattr(threading, "excepthook", lambda _told: None)
    store.emit(said("lost"))
    for _ in range(2):
        with anyio.fail_after(20), pytest.raises(SessionError, match="stopped writing; open it"):
            await store.flush()
    await store.__aexit__(None, None, None)


async def test_reading_again_opens_no_further_connection(tmp_path, monkeypatch):
    async with SessionStore(tmp_path / "s.db") as store:
        store.emit(said("a"))
        assert len(await store.history("s1")) == 1
        opened = []
        monkeypatch.setattr(store_module, "Database", opened.append)
        store.emit(said("b"))
        assert [message.text for message in await store.history("s1")] == ["a", "b"]
    assert opened == []


OTHER = """
import sys
from pathlib import Path
from toolcell.sessions.database import Database
database = Database(Path(sys.argv[1]))
print(len(database.read("s1")))
database.close()
"""


async def test_another_process_that_opens_and_closes_the_file_takes_nothing_away(tmp_path):
    """The journal stays while somebody writes it, whatever else this process opened of the file."""
    path = tmp_path / "sessions.db"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # noqa: TID251 - a child's environment

    async def seen():
        command = [sys.executable, "-c", OTHER, str(path)]
        return int((await anyio.run_process(command, env=environment)).stdout)

    async with SessionStore(path) as store:
        store.emit(said("before"))
        await store.flush()
        Database(path).close()
        assert await seen() == 1
        store.emit(said("after"))
        await store.flush()
        assert await seen() == 2
