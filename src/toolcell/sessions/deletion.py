"""Owns forgetting a session: its records, those of its children, and texts that nobody else names.

Above: `store`. Below: `database`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from toolcell.sessions.database import Database
from toolcell.sessions.listing import children_of, unknown_session
from toolcell.sessions.search import unindex

_KEYS: Final = (
    "SELECT DISTINCT json_extract(body, '$.key') FROM events "
    "WHERE session_id = ? AND type = 'content_kept'"
)
_KEPT: Final = "SELECT DISTINCT json_extract(body, '$.key') FROM events WHERE type = 'content_kept'"


def delete_session(database: Database, session_id: str) -> Sequence[str]:
    """Delete a session and those of its children, and theirs; returns the ids of what was there.

    What is deleted is overwritten in the file, not only unlinked.

    Raises:
        SessionError: there is no such session, or the file cannot be written.
    """
    if not database.sessions(session_id=session_id):
        raise unknown_session(session_id)
    gone = [session_id]
    for each in gone:
        told = database.read(each, types=("child_changed",))
        gone += [child for child in children_of(told) if child not in gone]

    def work(connection: sqlite3.Connection) -> None:
        keys: set[str] = set()
        for each in gone:
            keys.update(key for (key,) in connection.execute(_KEYS, (each,)))
            unindex(connection, each)
            connection.execute("DELETE FROM events WHERE session_id = ?", (each,))
            connection.execute("DELETE FROM sessions WHERE session_id = ?", (each,))
            connection.execute("DELETE FROM open_runs WHERE session_id = ?", (each,))
        if keys:
            keys.difference_update(key for (key,) in connection.execute(_KEPT))
        connection.executemany("DELETE FROM contents WHERE key = ?", [(key,) for key in keys])

    database.change(work, overwrite=True)
    return gone
