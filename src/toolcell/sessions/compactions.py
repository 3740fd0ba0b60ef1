"""Owns what a compaction on record means: which messages its summary stands for.

Nothing is deleted: the record keeps every message, and the history shows them all. The next run
takes up the conversation with the latest summary and what that does not cover.

Above: `projections`, `taking_up`. Below: `records`. Refuses to know: when one is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from toolcell.protocol.conversation import Conversation
from toolcell.sessions.records import Record, to_message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Covered:
    """What the latest compaction covers, as `Compacted` says it; at first nothing."""

    seq: int = 0
    run_id: str | None = None
    summary: str | None = None
    through: int = 0
    own: int = 0
    kept: frozenset[int] = frozenset()
    kept_own: frozenset[int] = frozenset()


def needed_from(compactions: Sequence[Record]) -> int:
    """Return behind which place of the record the messages of `conversation` begin."""
    latest = _latest(compactions)
    return min([latest.through, *(place - 1 for place in latest.kept)])


def conversation(
    compactions: Sequence[Record], messages: Iterable[Record], ends: Iterable[Record] = ()
) -> Conversation:
    """Return the conversation as the next run takes it up.

    Runs that overlapped in time are told one after the other, as in the history; what another run
    added behind the back of the one that compacted is not covered.

    Args:
        compactions: The `compacted` records, in order.
        messages: The `message` records, in order: all, or those behind `needed_from`.
        ends: The `run_ended` records behind the same place.
    """
    latest = _latest(compactions)
    runs: dict[str | None, list[Record]] = {}
    own, last = 0, max(latest.through, latest.seq)
    for record in messages:
        last = max(last, record.seq)
        covered, stays = record.seq <= latest.through, record.seq in latest.kept
        if not covered and latest.seq and record.run_id == latest.run_id:
            covered, stays = own < latest.own, own in latest.kept_own
            own += 1
        if stays or not covered:
            runs.setdefault(record.run_id, []).append(record)
    found = [record for records in runs.values() for record in records]
    return Conversation(
        messages=tuple(map(to_message, found)),
        places=tuple(record.seq for record in found),
        summary=latest.summary,
        cut_off=_cut_off(found, ends),
        through=last,
    )


def _cut_off(messages: Sequence[Record], ends: Iterable[Record]) -> frozenset[int]:
    """Return the places of the last run's messages, when that has no end of its own.

    One that was cut off and is rebuilt has an end that names the run that goes on with it.
    """
    if not messages:
        return frozenset()
    last = max(messages, key=lambda record: record.seq).run_id
    for end in ends:
        if end.run_id == last and end.data().get("continued_by") is None:
            return frozenset()
    return frozenset(record.seq for record in messages if record.run_id == last)


def compaction(record: Record) -> dict[str, Any]:
    """Return what people are told of a `compacted` record, as plain JSON data."""
    data = record.data()
    return {
        "trigger": data.get("trigger"),
        "model": data.get("model"),
        "messages": data.get("messages"),
        "tokensBefore": data.get("tokens_before"),
        "tokensAfter": data.get("tokens_after"),
        "summary": data.get("summary"),
    }


def _latest(compactions: Sequence[Record]) -> _Covered:
    """Return the last one that speaks of the session's own messages."""
    for record in reversed(compactions):
        data = record.data()
        if data.get("through") is not None:
            return _Covered(
                seq=record.seq,
                run_id=record.run_id,
                summary=data["summary"],
                through=data["through"],
                own=data["own"],
                kept=frozenset(data["kept"]),
                kept_own=frozenset(data["kept_own"]),
            )
    return _Covered()
