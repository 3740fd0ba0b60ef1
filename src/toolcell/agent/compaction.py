"""Owns which messages of a long conversation stay as they are when the rest is summarised.

A conversation is a row of units: a message of the user, or one of the model with its calls and all
their answers. A unit stays whole or goes whole, so no call is ever parted from its answer, and what
stays keeps its order. What stays:

- the last message of the user;
- the newest units, as many as fit; the very newest even when it is larger, where there is room;
- `exec` and the latest `wait` of each cell that still waits: without them a model cannot go on with
  it (BEHAVIOURS 358);
- with each unit the message of the user that began its turn: a conversation begins with one.

Above: `compacting`. Below: `protocol.messages`. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.protocol.messages import Message

_CONTROLS: Final = frozenset({"exec", "wait"})


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that belong together: those from `start` to before `end`.

    `head` is the index of the unit that began the turn; a unit of the user begins its own.
    """

    start: int
    end: int
    head: int | None


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


def kept(messages: Sequence[Message], tokens: Sequence[int], room: Room) -> tuple[int, ...]:
    """Return the indices of the messages that stay, in order.

    Args:
        messages: The conversation.
        tokens: About how many each has.
        room: How much may stay.
    """
    units = units_of(messages)
    stay = _Staying(units, [sum(tokens[unit.start : unit.end]) for unit in units])
    users = [i for i, unit in enumerate(units) if messages[unit.start].role == "user"]
    if users:
        stay.take(users[-1])
    if units and stay.cost(len(units) - 1) <= room.most - stay.used:
        stay.take(len(units) - 1)
    recent = stay.used
    for index in waiting_units(messages, units):
        if stay.used + stay.cost(index) <= room.most:
            stay.take(index)
    for index in range(len(units) - 1, -1, -1):
        cost = stay.cost(index)
        if cost and (recent + cost > room.keep or stay.used + cost > room.most):
            break
        recent += cost
        stay.take(index)
    return tuple(i for n in sorted(stay.units) for i in range(units[n].start, units[n].end))


def waiting_units(messages: Sequence[Message], units: Sequence[Unit]) -> tuple[int, ...]:
    """Return the units of cells that still wait, the newest cell first.

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
        for cell in found["waiting"] - over:
            first = open_cells.get(cell, [index])[0]
            open_cells[cell] = [first, index]
    newest = sorted(open_cells.values(), key=lambda both: -both[0])
    return tuple(dict.fromkeys(index for both in newest for index in both))


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
    """Return the cells that a unit's controls say are waiting, completed or failed."""
    found: dict[str, set[str]] = {"waiting": set(), "completed": set(), "failed": set()}
    answers = {message.tool_call_id: message.text for message in unit[1:]}
    for call in unit[0].tool_calls:
        if call.name not in _CONTROLS or call.id not in answers:
            continue
        # The envelope is the first line; wrapped text may follow it.
        result = _object(answers[call.id].split("\n", 1)[0])
        cell, status = result.get("runId"), result.get("status")
        if call.name == "wait" and status in {"completed", "failed"}:
            cell = _object(call.arguments).get("runId")
        if isinstance(cell, str) and isinstance(status, str) and status in found:
            found[status].add(cell)
    return found


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
