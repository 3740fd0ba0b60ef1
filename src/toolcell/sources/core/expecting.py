"""Owns the turns of conversations whose reply may come in as a message of its own.

A turn waits in the order it was asked; a message that names the turn's message answers that turn,
one that names none answers the turn that waits longest in its conversation.

Above: `conversations`, a gateway's inbound side. Below: nothing. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from toolcell.errors import CallError

MAX_EXPECTED: Final = 1024
"""Turns that wait at one time."""


class Expected:
    """One turn that waits."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.reply: str | None = None
        self._over = anyio.Event()

    @property
    def over(self) -> bool:
        """Whether it waits no longer."""
        return self._over.is_set()

    async def wait(self) -> None:
        """Return when it has a reply, or is to wait no longer."""
        await self._over.wait()

    def give(self, text: str) -> bool:
        """Answer it; returns whether it still waited."""
        if self.over:
            return False
        self.reply = text
        self._over.set()
        return True

    def give_up(self) -> None:
        """Have it wait no longer."""
        self._over.set()


class ExpectedReplies:
    """Every turn that waits, by channel and conversation."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], list[Expected]] = {}
        self._count = 0
        self._shut = False

    @contextmanager
    def expecting(self, channel: str, conversation: str, message_id: str) -> Iterator[Expected]:
        """Wait for the body of the `with` statement.

        Raises:
            CallError: too many turns wait; nothing was sent.
        """
        if self._count >= MAX_EXPECTED:
            message = f"{MAX_EXPECTED} turns wait for replies already; try again later."
            raise CallError(message, code="tool_error", effect="none")
        place, expected = (channel, conversation), Expected(message_id)
        if self._shut:
            expected.give_up()
        self._count += 1
        self._waiting.setdefault(place, []).append(expected)
        try:
            yield expected
        finally:
            self._count -= 1
            expected.give_up()
            line = self._waiting[place]
            line.remove(expected)
            if not line:
                del self._waiting[place]

    def find(self, channel: str, conversation: str, reply_to: str | None) -> Expected | None:
        """Return the turn that a message answers; None when it answers none."""
        line = self._waiting.get((channel, conversation), ())
        open_ones = (each for each in line if not each.over)
        if reply_to is not None:
            return next((each for each in open_ones if each.message_id == reply_to), None)
        return next(open_ones, None)

    def shut(self) -> None:
        """Have nobody wait any more: the program ends."""
        self._shut = True
        for line in self._waiting.values():
            for each in line:
                each.give_up()
