"""Owns which messages of webhook channels were taken, so that none is taken twice.

Above: the gateway. Below: `database`, `ownership`. Refuses to know: what is done about them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

import anyio.to_thread

from toolcell.base.identifiers import digest
from toolcell.base.jsontext import JsonObject, canonical, dumps, loads
from toolcell.sessions.database import Database
from toolcell.sessions.ownership import alive

KEEP_SECONDS: Final = 7 * 86_400
"""How long a message is known; senders give up sooner."""

_CLAIM: Final = (
    "INSERT OR IGNORE INTO deliveries (channel, id, at, digest, outcome, message, owner) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_OPEN: Final = (
    "SELECT channel, id, owner, message, outcome FROM deliveries "
    "WHERE message IS NOT NULL ORDER BY at"
)
_TAKE: Final = "UPDATE deliveries SET owner = ? WHERE channel = ? AND id = ?"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message.

    Attributes:
        channel: Its channel.
        id: The sender's id of it.
    """

    channel: str
    id: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A message that was taken by a program that is gone, and not answered.

    Attributes:
        delivery: Which one.
        message: What it says.
        outcome: What came of it.
    """

    delivery: Delivery
    message: JsonObject
    outcome: JsonObject


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of claiming one: `new`; `known` with what came of it then; or `other` content."""

    status: Literal["new", "known", "other"]
    outcome: JsonObject


class DeliveryBook:
    """The taken messages, in the file of the sessions. Each call is one committed transaction.

    Args:
        path: The file.
        owner: The program that takes them.
    """

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner

    async def claim(
        self, delivery: Delivery, message: JsonObject, outcome: JsonObject, *, now: float
    ) -> Claim:
        """Take a message, unless it was taken before. The same id may not say something else.

        Args:
            delivery: Which one.
            message: What it says; kept until it is answered.
            outcome: What is to come of it.
            now: Unix seconds.

        Raises:
            SessionError: the file cannot be written.
        """

        def work(connection: sqlite3.Connection) -> Claim:
            connection.execute("DELETE FROM deliveries WHERE at < ?", (now - KEEP_SECONDS,))
            said = canonical(message)
            hashed = digest(said, length=64)
            row = (
                *(delivery.channel, delivery.id, now, hashed),
                *(dumps(outcome), said, self._owner),
            )
            if connection.execute(_CLAIM, row).rowcount:
                return Claim("new", outcome)
            query = "SELECT digest, outcome FROM deliveries WHERE channel = ? AND id = ?"
            found, text = connection.execute(query, (delivery.channel, delivery.id)).fetchone()
            return Claim("known" if found == hashed else "other", loads(text))

        return await self._changed(work)

    async def answered(self, delivery: Delivery) -> None:
        """Say that nothing is owed to its sender; what it said is forgotten.

        Raises:
            SessionError: the file cannot be written.
        """
        query = "UPDATE deliveries SET message = NULL WHERE channel = ? AND id = ?"
        values = (delivery.channel, delivery.id)
        await self._changed(lambda connection: connection.execute(query, values))

    async def left(self) -> Sequence[Unanswered]:
        """Make the unanswered messages of programs that are gone ours, the oldest first.

        Raises:
            SessionError: the file cannot be written.
        """

        def work(connection: sqlite3.Connection) -> Sequence[Unanswered]:
            rows = connection.execute(_OPEN).fetchall()
            gone = {each: not alive(self._path, each) for each in {row[2] for row in rows}}
            found = [row for row in rows if gone[row[2]]]
            for channel, key, *_ in found:
                connection.execute(_TAKE, (self._owner, channel, key))
            return [
                Unanswered(Delivery(channel=channel, id=key), loads(message), loads(outcome))
                for channel, key, _, message, outcome in found
            ]

        return await self._changed(work)

    async def release(self, delivery: Delivery) -> None:
        """Forget it: nothing came of it, and it may come again.

        Raises:
            SessionError: the file cannot be written.
        """
        query = "DELETE FROM deliveries WHERE channel = ? AND id = ?"
        values = (delivery.channel, delivery.id)
        await self._changed(lambda connection: connection.execute(query, values))

    async def _changed(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def in_thread() -> T:
            database = Database(self._path)
            try:
                return database.change(work)
            finally:
                database.close()

        return await anyio.to_thread.run_sync(in_thread)
