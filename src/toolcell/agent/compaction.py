"""Owns which messages of a long conversation stay as they are when the rest is summarised.

A conversation is a row of units: a message of the user, or one of the model with its calls and all
their answers. A unit stays whole or goes whole, so no call is ever parted from its answer, and what
stays keeps its order. What stays:

- the last message of the user;
- the newest units, as many as fit; the very newest even when it is larger, where there is room;
- `exec` and the latest `wait` of each cell that still waits and that somebody can go on with
  (BEHAVIOURS 358): a cell of this run, or a restart-safe one of a run that may be rebuilt. A cell
  is resumed within its own run only (rule 3.7), so other runs' are history like the rest;
- with each unit the message of the user that began its turn: a conversation begins with one.

Above: `compacting`. Below: `protocol.messages`. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.protocol.messages import Message

_CONTROLS: Final = frozenset({"exec", "wait"})
_STATUSES: Final = ("waiting", "completed", "failed")
_REPLAY_SAFE: Final = "replay-safe"


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that belong together: those from `start` to before `end`.

    `head` is the index of the unit that began the turn; a unit of the user begins its own.
    """

    start: int
    end: int
    head: int | None


class Origin(StrEnum):
    """Whose a message is, which says whether anybody can go on with a cell that waits in it.

    `CUT_OFF` is the last run on record that has no end: its turn may be rebuilt (rule 3.13).
    """

    OWN = "own"
    CUT_OFF = "cut-off"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much may stay, in tokens: `keep` of the newest units, `most` of all."""

    keep: int
    most: int


def units_of(messages: Sequence[Message]) -> tuple[Unit, ...]:
    """Return the units of a conversation, in order."""
    units: list[Unit] = []
    head: int | None = None
    start = 0
    for end in range(1, len(messages) + 1):
        if end < len(messages) and messages[end].role == "tool":
            continue
        if messages[start].role == "user":
            head = len(units)
        units.append(Unit(start, end, head))
        start = end
    return tuple(units)


def kept(
    messages: Sequence[Message], tokens: Sequence[int], room: Room, origins: Sequence[Origin]
) -> tuple[int, ...]:
    """Return the indices of the messages that stay, in order.

    Args:
        messages: The conversation.
        tokens: About how many each has.
        room: How much may stay.
        origins: Whose each is.
    """
    units = units_of(messages)
    stay = _Staying(units, [sum(tokens[unit.start : unit.end]) for unit in units])
    users = [i for i, unit in enumerate(units) if messages[unit.start].role == "user"]
    if users:
        stay.take(users[-1])
    if units and stay.cost(len(units) - 1) <= room.most - stay.used:
        stay.take(len(units) - 1)
    recent = stay.used
    for index in waiting_units(messages, units, origins):
        if stay.used + stay.cost(index) <= room.most:
            stay.take(index)
    for index in range(len(units) - 1, -1, -1):
        cost = stay.cost(index)
        if cost and (recent + cost > room.keep or stay.used + cost > room.most):
            break
        recent += cost
        stay.take(index)
    return tuple(i for n in sorted(stay.units) for i in range(units[n].start, units[n].end))


def waiting_units(
    messages: Sequence[Message], units: Sequence[Unit], origins: Sequence[Origin]
) -> tuple[int, ...]:
    """Return the units of cells that wait for somebody who can go on, the newest cell first.

    Of each cell that is the unit that began it and the one that looked at it last: what came
    between says nothing more.
    """
    open_cells: dict[str, list[int]] = {}
    for index, unit in enumerate(units):
        found = _outcomes(messages[unit.start : unit.end])
        # A second `wait` at the same time is refused, and the cell waits all the same.
        over = found["completed"] | (found["failed"] - found["waiting"])
        for cell in over:
            open_cells.pop(cell, None)
        for cell in _held(found, origins[unit.start]) - over:
            first = open_cells.get(cell, [index])[0]
            open_cells[cell] = [first, index]
    newest = sorted(open_cells.values(), key=lambda both: -both[0])
    return tuple(dict.fromkeys(index for both in newest for index in both))


def _held(found: Mapping[str, set[str]], origin: Origin) -> set[str]:
    match origin:
        case Origin.OWN:
            return found["waiting"]
        case Origin.CUT_OFF:
            return found["waiting"] & found[_REPLAY_SAFE]
        case Origin.OVER:
            return set()


class _Staying:
    """Units chosen so far, each with the one that began its turn."""

    def __init__(self, units: Sequence[Unit], tokens: Sequence[int]) -> None:
        self._units = units
        self._tokens = tokens
        self.units: set[int] = set()
        self.used = 0

    def cost(self, index: int) -> int:
        """Return what taking a unit adds."""
        return sum(self._tokens[each] for each in self._missing(index))

    def take(self, index: int) -> None:
        """Let a unit stay."""
        self.used += self.cost(index)
        self.units |= self._missing(index)

    def _missing(self, index: int) -> set[int]:
        head = self._units[index].head
        return ({index} if head is None else {index, head}) - self.units


def _outcomes(unit: Sequence[Message]) -> Mapping[str, set[str]]:
    """Return the cells that a unit's controls say are waiting, completed or failed.

    Those of the waiting ones that may run again after a restart are `replay-safe`.
    """
    found: dict[str, set[str]] = {status: set() for status in (*_STATUSES, _REPLAY_SAFE)}
    answers = {message.tool_call_id: message.text for message in unit[1:]}
    for call in unit[0].tool_calls:
        if call.name not in _CONTROLS or call.id not in answers:
            continue
        # The envelope is the first line; wrapped text may follow it.
        result = _object(answers[call.id].split("\n", 1)[0])
        cell, status = result.get("runId"), result.get("status")
        if call.name == "wait" and status in {"completed", "failed"}:
            cell = _object(call.arguments).get("runId")
        if isinstance(cell, str) and status in _STATUSES:
            found[status].add(cell)
            if result.get("replaySafe") is True:
                found[_REPLAY_SAFE].add(cell)
    return found


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
