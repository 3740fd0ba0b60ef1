"""Owns the stream of a session's recorded events, from any place on.

Above: `api_routes`. Below: `service` (the record and its bell). What is streamed is what is on
record, so a follower that comes back with the last number it saw misses nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import anyio

from toolcell.base.jsontext import dumps
from toolcell.gateway.service import Service
from toolcell.sessions.records import Record

MAX_BATCH: Final = 500
AT_MOST_EVERY: Final = 0.02
"""Seconds between two looks at the record, which cost a thread each."""


@dataclass(frozen=True, slots=True, kw_only=False)
class EventFeed:
    """What is followed: a session, behind the record `after`; one run of it, to its end."""

    session_id: str
    after: int = 0
    run_id: str | None = None


async def feed_of(service: Service, feed: EventFeed) -> AsyncIterator[bytes]:
    """Yield the events as frames; ends with the run, or when the gateway shuts down."""
    after = feed.after
    while True:
        bell = service.bell.bell(feed.session_id)
        records = await service.sessions.events(feed.session_id, after=after, limit=MAX_BATCH)
        for record in records:
            after = record.seq
            if feed.run_id is None or record.run_id == feed.run_id:
                yield _frame(record)
                if feed.run_id is not None and record.type == "run_ended":
                    return
        if len(records) == MAX_BATCH:
            continue
        if service.bell.closed:
            return
        if feed.run_id is not None and service.runs.live(feed.run_id) is None and not records:
            return
        await bell.wait()
        await anyio.sleep(AT_MOST_EVERY)


def _frame(record: Record) -> bytes:
    body = {
        "seq": record.seq,
        "type": record.type,
        "at": record.at,
        "sessionId": record.session_id,
        "runId": record.run_id,
        "callId": record.call_id,
        "parentToolCallId": record.parent_id,
        "data": record.data(),
    }
    text = f"id: {record.seq}\nevent: {record.type}\ndata: {dumps(body)}\n\n"
    return text.encode("utf-8", "replace")
