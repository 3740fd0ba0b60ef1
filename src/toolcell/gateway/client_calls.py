"""Owns the calls of one run that its client is to make: asked, handed out, answered.

Above: `live`, `client_tools`. Below: `base`, `protocol.messages`. Refuses to know: HTTP, wires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolcell.base.identifiers import fresh
from toolcell.protocol.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall:
    """A call that the client is to make."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class PendingCall:
    """A client call without a result yet. `outcome` is set once, then `settled`."""

    call: ClientCall
    place: int
    handed: bool = False
    outcome: Message | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)


class ClientCalling:
    """The client's part in one run.

    Attributes:
        handed: Ids of the calls that were handed out, answered ones included.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.handed: set[str] = set()
        self._wake = wake
        self._open: dict[str, PendingCall] = {}
        self._none_open = anyio.Event()

    @property
    def handed_open(self) -> tuple[str, ...]:
        """Ids of the calls that the client has and has not answered."""
        return tuple(call_id for call_id, pending in self._open.items() if pending.handed)

    @property
    def has_new(self) -> bool:
        """Whether there are calls that were not handed out yet."""
        return any(not pending.handed for pending in self._open.values())

    def ask(self, name: str, arguments: Mapping[str, Any], place: int) -> PendingCall:
        """A client tool is called; the id is ours, so that it cannot be guessed.

        `place` orders calls that are handed out together: the gate lets calls overtake each other
        while others are checked.
        """
        call = ClientCall(call_id=fresh("call"), name=name, arguments=arguments)
        pending = self._open[call.call_id] = PendingCall(call, place)
        self._wake()
        return pending

    def close(self, pending: PendingCall) -> None:
        """A call is over, with a result or without one."""
        self._open.pop(pending.call.call_id, None)
        if not self._open:
            self._none_open.set()
            self._none_open = anyio.Event()

    def hand_out(self) -> tuple[ClientCall, ...]:
        """Return the calls that were not handed out yet; now they are."""
        new = [pending for pending in self._open.values() if not pending.handed]
        new.sort(key=lambda pending: pending.place)
        for pending in new:
            pending.handed = True
            self.handed.add(pending.call.call_id)
        return tuple(pending.call for pending in new)

    def answer(self, call_id: str, result: Message) -> bool:
        """Give a handed call its result; False when it waits for none (any more)."""
        pending = self._open.get(call_id)
        if pending is None or not pending.handed or pending.outcome is not None:
            return False
        pending.outcome = result
        pending.settled.set()
        return True

    def give_up(self) -> None:
        """The client cannot answer any more: open calls end without a result."""
        for pending in self._open.values():
            pending.settled.set()

    async def done(self) -> None:
        """Return when no call is open: a model need not be asked before that."""
        while self._open:
            await self._none_open.wait()
