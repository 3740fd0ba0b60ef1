"""Owns finding messages by what they say, in every session of an agent.

An FTS5 index of three-character pieces, so that any part of a word is found in any language, with
or without spaces between words. It holds no texts, and is made and brought up to date by searches:
who never searches pays nothing. What it proposes is read and checked, so that a hit is a hit.

Where SQLite has no FTS5 or no trigram tokenizer (before 3.34) every message is read instead.

Above: `store`. Below: `database`. Refuses to know: who may see what.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.sessions.database import Database

PIECE: Final = 3
BATCH: Final = 1000
"""Messages put into the index in one transaction, so that writers wait for a moment only."""

MAX_TERMS: Final = 300
"""Pieces that begin with a word shorter than they are; with more, the word narrows nothing down."""

_NOTHING: Final = '"\x7f\x7f\x7f" AND "\x7f\x7f\x01"'
_PAD: Final = "\n" * (PIECE - 1)
_LOOK_EVERY: Final = 64
_MAKE: Final = (
    "CREATE VIRTUAL TABLE message_index USING fts5("
    "text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1')"
)
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.message_terms "
    "USING fts5vocab('main', 'message_index', 'row')"
)
_NEXT: Final = (
    "SELECT seq, body FROM events WHERE seq > ? AND type = 'message' ORDER BY seq LIMIT ?"
)
_ADD: Final = "INSERT INTO message_index (rowid, text) VALUES (?, ?)"
_SET: Final = "INSERT INTO message_index (message_index, rank) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', ?, ?)"
_INDEXED: Final = (
    "SELECT e.seq, e.session_id FROM message_index i JOIN events e ON e.seq = i.rowid "
    "JOIN sessions s ON s.session_id = e.session_id WHERE s.agent_id = ? "
    "AND message_index MATCH ? ORDER BY s.last_seq DESC, e.seq DESC"
)
_PARTLY: Final = (
    "SELECT e.seq, e.session_id FROM sessions s JOIN events e ON e.session_id = s.session_id "
    "WHERE s.agent_id = ?1 AND e.type = 'message' AND (e.seq > ?3 OR e.seq IN "
    "(SELECT rowid FROM message_index WHERE message_index MATCH ?2)) "
    "ORDER BY s.last_seq DESC, e.seq DESC"
)
_EACH: Final = (
    "SELECT e.seq, e.session_id FROM sessions s JOIN events e ON e.session_id = s.session_id "
    "WHERE s.agent_id = ? AND e.type = 'message' ORDER BY s.last_seq DESC, e.seq DESC"
)


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions in which one message holds all the words, the last used first.

    Attributes:
        session_ids: The sessions.
        searched: How many sessions there were to look through.
        complete: Whether everything was looked through, or as many found as were asked for.
    """

    session_ids: Sequence[str]
    searched: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to find.

    Attributes:
        words: Parts of words, casefolded; a message must hold all.
        agent_id: Whose sessions.
        limit: Sessions at most.
        time_is_up: Whether to come back with what there is.
        indexed_enough: Whether to put no more into the index; the rest is read.
    """

    words: Sequence[str]
    agent_id: str
    limit: int
    time_is_up: Callable[[], bool]
    indexed_enough: Callable[[], bool]


def search(database: Database, wanted: Wanted) -> Found:
    """Search.

    Raises:
        SessionError: the file cannot be read or written.
    """
    indexed = database.look(_usable)
    if indexed is None:
        indexed = database.change(_made)
    if indexed:
        _catch_up(database, wanted.indexed_enough)
    return database.look(partial(_found, wanted, indexed))


def unindex(connection: sqlite3.Connection, session_id: str) -> None:
    """Take the messages of a session out of the index; part of its deletion."""
    through = _through(connection)
    if through is None:
        return
    query = "SELECT seq, body FROM events WHERE session_id = ? AND type = 'message' AND seq <= ?"
    for seq, body in connection.execute(query, (session_id, through)).fetchall():
        connection.execute(_REMOVE, (seq, _folded(body)))


def _usable(connection: sqlite3.Connection) -> bool | None:
    """Whether the index can be used here; None when there is none."""
    if _through(connection) is None:
        return None
    try:
        connection.execute("SELECT rowid FROM message_index LIMIT 0")
    except sqlite3.OperationalError:  # made by a program whose SQLite can do more
        return False
    return True


def _made(connection: sqlite3.Connection) -> bool:
    """Make the index; returns whether SQLite can."""
    if (made := _usable(connection)) is not None:  # by another program, just now
        return made
    connection.execute("SAVEPOINT trying")
    try:
        connection.execute(_MAKE)
    except sqlite3.OperationalError:
        connection.execute("ROLLBACK TO trying")
        return False
    # Merged later and less often: made twice as fast, and writers wait half as long.
    for name, value in (("automerge", 16), ("crisismerge", 32)):
        connection.execute(_SET, (name, value))
    connection.execute("INSERT INTO search_state (through) VALUES (0)")
    return True


def _through(connection: sqlite3.Connection) -> int | None:
    row = connection.execute("SELECT through FROM search_state").fetchone()
    return None if row is None else int(row[0])


def _catch_up(database: Database, enough: Callable[[], bool]) -> None:
    """Put new messages into the index."""
    if database.look(_current):
        return
    while not enough() and database.change(_add_some):
        pass


def _current(connection: sqlite3.Connection) -> bool:
    return connection.execute(_NEXT, (_through(connection), 1)).fetchone() is None


def _add_some(connection: sqlite3.Connection) -> bool:
    """Index the next messages; returns whether there may be more."""
    rows = connection.execute(_NEXT, (_through(connection), BATCH)).fetchall()
    connection.executemany(_ADD, ((seq, _folded(body)) for seq, body in rows))
    if rows:
        connection.execute("UPDATE search_state SET through = ?", (rows[-1][0],))
    return len(rows) == BATCH


def _found(wanted: Wanted, indexed: bool, connection: sqlite3.Connection) -> Found:
    count = "SELECT count(*) FROM sessions WHERE agent_id = ?"
    (searched,) = connection.execute(count, (wanted.agent_id,)).fetchone()
    found: dict[str, None] = {}
    for number, (seq, session_id) in enumerate(_candidates(wanted, indexed, connection)):
        if session_id in found:
            continue
        if number % _LOOK_EVERY == 0 and wanted.time_is_up():
            return Found(tuple(found), searched, False)
        (body,) = connection.execute("SELECT body FROM events WHERE seq = ?", (seq,)).fetchone()
        text = _folded(body)
        if all(word in text for word in wanted.words):
            found[session_id] = None
            if len(found) >= wanted.limit:
                break
    return Found(tuple(found), searched, True)


def _candidates(
    wanted: Wanted, indexed: bool, connection: sqlite3.Connection
) -> Iterator[tuple[int, str]]:
    """Yield messages that may hold all the words."""
    query = _query(wanted.words, connection) if indexed else None
    if query is None:
        yield from connection.execute(_EACH, (wanted.agent_id,)).fetchall()
    elif _current(connection):
        yield from connection.execute(_INDEXED, (wanted.agent_id, query)).fetchall()
    else:
        values = (wanted.agent_id, query, _through(connection))
        yield from connection.execute(_PARTLY, values).fetchall()


def _query(words: Sequence[str], connection: sqlite3.Connection) -> str | None:
    """Return the query of the index; None when it narrows nothing down."""
    parts: list[str] = []
    for word in map(_clean, words):
        pieces = {word[at : at + PIECE] for at in range(len(word) - PIECE + 1)}
        if pieces:
            parts += [_quoted(each) for each in sorted(pieces)]
            continue
        connection.execute(_VOCABULARY)
        terms = "SELECT term FROM temp.message_terms WHERE term >= ? AND term < ? LIMIT ?"
        values = (word, word + "\U0010ffff", MAX_TERMS + 1)
        beginning = [_quoted(term) for (term,) in connection.execute(terms, values)]
        if not beginning:
            return _NOTHING
        if len(beginning) <= MAX_TERMS:
            parts.append(f"({' OR '.join(beginning)})")
    return " AND ".join(dict.fromkeys(parts)) or None


def _quoted(piece: str) -> str:
    doubled = piece.replace('"', '""')
    return f'"{doubled}"'


def _folded(body: str) -> str:
    """Return what a message says, as it is compared; padded so that each end begins a piece."""
    message: Any = loads(body).get("message")
    text = message.get("text", "") if isinstance(message, dict) else ""
    return _clean(str(text).casefold()) + _PAD


def _clean(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
