"""Owns a session's conversation as the next run takes it up: what is left of it, and a summary.

Above: sessions, which read it; the agent loop, which goes on with it. Below: `messages`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcell.protocol.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The messages that are sent again, and what stands for those that are not.

    Attributes:
        messages: In order, as they are on record.
        places: Where each is in the session's record; rising within a run.
        summary: What earlier messages came to; None when all of them are here.
        cut_off: Those of `places` that are of the last run, when it may be rebuilt: it has no end.
        through: The last place of the record that was read; None when the messages are of no
            session's record (a client brought them along).
    """

    messages: tuple[Message, ...] = ()
    places: tuple[int, ...] = ()
    summary: str | None = None
    cut_off: frozenset[int] = frozenset()
    through: int | None = 0
