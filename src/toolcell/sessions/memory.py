"""Owns the session store that forgets: for tests and one-off runs.

Above: whoever needs no file. Below: `records`, `projections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolcell.protocol.events import ContentKept, Event
from toolcell.protocol.messages import Message
from toolcell.sessions.contract import MAX_VALUE_BYTES
from toolcell.sessions.listing import (
    SessionInfo,
    Trace,
    children_of,
    content_keys,
    shown,
    unknown_session,
)
from toolcell.sessions.projections import CallNode, call_tree, history
from toolcell.sessions.records import Record, to_message, to_record
from toolcell.sessions.search import Found, Wanted


class MemorySessions:
    """Keeps events in a list."""

    def __init__(self, *, max_value_bytes: int = MAX_VALUE_BYTES) -> None:
        self._limit = max_value_bytes
        self._records: list[Record] = []
        self._contents: dict[str, str] = {}
        self._last = 0

    def emit(self, event: Event) -> None:
        """Take one event."""
        self._last += 1
        record = to_record(event, self._limit, seq=self._last)
        if isinstance(event, ContentKept) and record.content is not None:
            kept = self._contents.setdefault(event.key, record.content)
            record = replace(record, content=kept)
        self._records.append(record)

    async def flush(self) -> None:
        """Nothing is pending."""

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return the conversation; empty for an unknown session."""
        return history(self._of(session_id))

    async def events(
        self,
        session_id: str,
        *,
        types: Sequence[str] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Record]:
        """Return records in order, from behind the record `after`; only of `types`, where given."""
        found = (r for r in self._of(session_id) if r.seq > after)
        return tuple(r for r in found if types is None or r.type in types)[:limit]

    async def tree(self, session_id: str) -> tuple[CallNode, ...]:
        """Return the tool calls of a session, nested ones under their parent."""
        return call_tree(self._of(session_id))

    async def list_sessions(self, *, limit: int = 100) -> Sequence[SessionInfo]:
        """Return sessions, the last used first."""
        by_id: dict[str, list[Record]] = {}
        for record in self._records:
            if record.session_id is not None:
                by_id.setdefault(record.session_id, []).append(record)
        last_first = sorted(by_id.values(), key=lambda records: -records[-1].seq)
        return tuple(_info(records) for records in last_first[:limit])

    async def info(self, session_id: str) -> SessionInfo | None:
        """Return what a listing says of one session; None when there is no such session."""
        records = self._of(session_id)
        return _info(records) if records else None

    async def trace(self, session_id: str) -> Trace:
        """Return everything that is kept of a session.

        Raises:
            SessionError: there is no such session.
        """
        records = self._of(session_id)
        if not records:
            raise unknown_session(session_id)
        contents = {key: self._contents[key] for key in content_keys(records)}
        return Trace(info=_info(records), records=records, contents=contents)

    async def search(self, wanted: Wanted) -> Found:
        """Return sessions in which one message holds all of some words."""
        own = [
            each
            for each in await self.list_sessions(limit=len(self._records))
            if each.agent_id == wanted.agent_id
        ]
        found = [each.session_id for each in own if self._holds(each.session_id, wanted.words)]
        return Found(found[: wanted.limit], len(own), True)

    async def delete(self, session_id: str) -> Sequence[str]:
        """Forget a session and those of its children; returns the ids of what was forgotten.

        Raises:
            SessionError: there is no such session.
        """
        if not self._of(session_id):
            raise unknown_session(session_id)
        gone = [session_id]
        for each in gone:
            gone += [one for one in children_of(self._of(each)) if one not in gone]
        self._records = [r for r in self._records if r.session_id not in gone]
        kept = content_keys(self._records)
        self._contents = {key: self._contents[key] for key in kept}
        return gone

    async def show(self, session_id: str) -> dict[str, Any]:
        """Return `{session, transcript, calls}` as plain JSON data.

        Raises:
            SessionError: there is no such session.
        """
        records = self._of(session_id)
        if not records:
            raise unknown_session(session_id)
        return shown(_info(records), records)

    def _holds(self, session_id: str, words: Sequence[str]) -> bool:
        said = (to_message(r).text.casefold() for r in self._of(session_id) if r.type == "message")
        return any(all(word in text for word in words) for text in said)

    def _of(self, session_id: str) -> list[Record]:
        return [record for record in self._records if record.session_id == session_id]


def _info(records: Sequence[Record]) -> SessionInfo:
    first, last = records[0], records[-1]
    return SessionInfo(
        session_id=first.session_id or "",
        session_key=first.session_key or "",
        agent_id=first.agent_id or "",
        created_at=first.at,
        updated_at=last.at,
        messages=sum(record.type == "message" for record in records),
        runs=len({record.run_id for record in records}),
    )
