"""Owns which messages of webhook channels were taken, so that none is taken twice.

Above: the gateway. Below: `database`. Refuses to know: what a message says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

import anyio.to_thread

from toolcell.base.jsontext import JsonObject, dumps, loads
from toolcell.sessions.database import Database

KEEP_SECONDS: Final = 7 * 86_400
"""How long a message is known; senders give up sooner."""

_CLAIM: Final = (
    "INSERT OR IGNORE INTO deliveries (channel, id, at, digest, outcome) VALUES (?, ?, ?, ?, ?)"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message.

    Attributes:
        channel: Its channel.
        id: The sender's id of it.
        digest: Of what it says: the same id may not say something else.
    """

    channel: str
    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of claiming one: `new`; `known` with what came of it then; or `other` content."""

    status: Literal["new", "known", "other"]
    outcome: JsonObject


class DeliveryBook:
    """The taken messages, in the file of the sessions. Each call is one committed transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def claim(self, delivery: Delivery, outcome: JsonObject, *, now: float) -> Claim:
        """Take a message, unless it was taken before.

        Raises:
            SessionError: the file cannot be written.
        """

        def work(connection: sqlite3.Connection) -> Claim:
            connection.execute("DELETE FROM deliveries WHERE at < ?", (now - KEEP_SECONDS,))
            row = (delivery.channel, delivery.id, now, delivery.digest, dumps(outcome))
            if connection.execute(_CLAIM, row).rowcount:
                return Claim("new", outcome)
            query = "SELECT digest, outcome FROM deliveries WHERE channel = ? AND id = ?"
            digest, text = connection.execute(query, (delivery.channel, delivery.id)).fetchone()
            return Claim("known" if digest == delivery.digest else "other", loads(text))

        return await self._changed(work)

    async def settle(self, delivery: Delivery, outcome: JsonObject) -> None:
        """Say that something else came of it.

        Raises:
            SessionError: the file cannot be written.
        """
        query = "UPDATE deliveries SET outcome = ? WHERE channel = ? AND id = ?"
        values = (dumps(outcome), delivery.channel, delivery.id)
        await self._changed(lambda connection: connection.execute(query, values))

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
