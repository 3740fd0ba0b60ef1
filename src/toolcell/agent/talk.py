"""Owns the conversation of one run: what is sent of it, how long that is, what was summarised.

The record keeps every message; here those that a summary stands for are gone.

Above: the loop, `compacting`. Below: `conversation`, `token_estimate`. Refuses to know:
wires, stores.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from toolcell.agent.compaction import Origin
from toolcell.agent.conversation import with_pairs
from toolcell.agent.seeing import MAX_IMAGES
from toolcell.agent.token_estimate import IMAGE_TOKENS, message_tokens
from toolcell.protocol.conversation import Conversation
from toolcell.protocol.messages import Message

_RATIO: Final = (0.75, 3.0)
"""How far a provider's own count may move the guess: some count wrongly, or not at all."""
_MIN_COUNTED: Final = 200
"""Tokens of a request that says anything about the guess."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A message with its size, and its place in the record: of the history, or of the own run."""

    message: Message
    tokens: int
    place: int | None = None
    own: int | None = None


class Talk:
    """One run's conversation. It begins with the history and grows by what the run adds.

    Attributes:
        summary: What earlier messages came to.
        added: Every message of the run, whether or not it is still sent.
        ratio: Real tokens for each guessed one.
    """

    def __init__(self, past: Conversation) -> None:
        places: Sequence[int | None] = past.places or [None] * len(past.messages)
        self._items = [
            _Item(message, message_tokens(message), place)
            for message, place in zip(past.messages, places, strict=True)
        ]
        self._sent = list(with_pairs(past.messages))
        self._cut_off = past.cut_off
        self.through = past.through
        self.summary = past.summary
        self.added: list[Message] = []
        self.ratio = 1.0

    @property
    def sent(self) -> tuple[Message, ...]:
        """What the next model call is sent, behind the system prompt."""
        return tuple(self._sent)

    @property
    def recorded(self) -> tuple[Message, ...]:
        """The same as it is on record: calls that were cut off have no answer."""
        return tuple(item.message for item in self._items)

    def origins(self) -> list[Origin]:
        """Return whose each recorded message is."""
        return [self._origin(item) for item in self._items]

    def _origin(self, item: _Item) -> Origin:
        if item.own is not None:
            return Origin.OWN
        return Origin.CUT_OFF if item.place in self._cut_off else Origin.OVER

    def add(self, message: Message) -> None:
        """Add a message of the run."""
        self._items.append(_Item(message, message_tokens(message), own=len(self.added)))
        self._sent.append(message)
        self.added.append(message)

    def sizes(self, *, images: bool) -> list[int]:
        """Return about how many tokens each recorded message has.

        Args:
            images: Whether the model is sent images; else they are notes.
        """
        each = IMAGE_TOKENS if images else 0
        left, out = MAX_IMAGES, []
        for item in reversed(self._items):
            shown = min(len(item.message.images), left)
            left -= shown
            out.append(round(self.ratio * (item.tokens + each * shown)))
        return out[::-1]

    def scaled(self, guess: int) -> int:
        """Return a guess as the provider would count."""
        return round(self.ratio * guess)

    def counted(self, guessed: int, real: int) -> None:
        """A request of `guessed` tokens, as scaled by now, really had `real`."""
        if real > 0 and guessed >= _MIN_COUNTED:
            low, high = _RATIO
            self.ratio = min(max(self.ratio * real / guessed, low), high)

    def shorten(self, kept: Collection[int], summary: str) -> None:
        """Let a summary stand for all but the messages at the indices `kept` of `recorded`."""
        stays = frozenset(kept)
        self._items = [item for index, item in enumerate(self._items) if index in stays]
        self._sent = list(with_pairs(item.message for item in self._items))
        self.summary = summary

    def kept_places(self) -> tuple[int, ...]:
        """Return where the messages of the history that are still sent stand in the record."""
        return tuple(item.place for item in self._items if item.place is not None)

    def kept_own(self) -> tuple[int, ...]:
        """Return which messages of the run itself are still sent, counted from 0."""
        return tuple(item.own for item in self._items if item.own is not None)
