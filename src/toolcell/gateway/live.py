"""Owns `LiveRun`: a run while it goes on, and what whoever follows it is told, piece by piece.

A run outlives the HTTP request that began it: when it needs one of the client's own tools, the
request ends with the calls, and a later request with their results goes on with the same run.

    text … → calls of client tools (the response ends) → results → text … → the end

Above: `runs`, the routes. Below: `agent.contract`, `protocol`. Refuses to know: HTTP, wires.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import anyio

from toolcell.agent.contract import RunResult
from toolcell.gateway.client_calls import ClientCall, ClientCalling
from toolcell.gateway.faults import conflict
from toolcell.protocol.events import Event, ModelCalled
from toolcell.protocol.messages import Usage
from toolcell.protocol.scope import RunScope

GATHER_SECONDS: Final = 0.01
"""Calls that a program starts together reach the client together: the response waits until none has
come for this long."""

BETWEEN_TURNS: Final = "\n\n"

Status = Literal["running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The model said something."""

    text: str


@dataclass(frozen=True, slots=True)
class ClientCalls:
    """The run goes on when the client brings the results of these."""

    calls: tuple[ClientCall, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over."""

    status: Status
    finish: str | None = None
    error: Exception | None = None


Item: TypeAlias = TextPiece | ClientCalls | Ended


class LiveRun:
    """One run. Made by `RunDesk`.

    Attributes:
        scope: Whom it acts for.
        created_at: Unix seconds.
        ended_at: Unix seconds; None while it goes on.
        status: How it stands.
        result: What it came to, when it came to something.
        error: Why it failed.
        cancel_scope: Around the whole of it.
        client: The calls that its client is to make.
        told: Whether a client was told of its end.
    """

    def __init__(self, scope: RunScope, *, created_at: float, listening: bool = True) -> None:
        self.scope = scope
        self._listening = listening
        self.created_at = created_at
        self.ended_at: float | None = None
        self.status: Status = "running"
        self.result: RunResult | None = None
        self.error: Exception | None = None
        self.cancel_scope = anyio.CancelScope()
        self.client = ClientCalling(self._wake)
        self.told = False
        self._pieces: list[str] = []
        self._usage = Usage()
        self._changed = anyio.Event()
        self._followed = False
        self._spoken = False
        self._turn_over = False

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.scope.run_id

    @property
    def over(self) -> bool:
        """Whether it ended."""
        return self.status != "running"

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow it for the body of the `with` statement.

        Raises:
            ApiError: another request follows it.
        """
        if self._followed:
            message = f"run {self.run_id!r} is being answered to another request"
            raise conflict(message, "run_busy")
        self._followed = True
        try:
            yield
        finally:
            self._followed = False

    async def next_item(self) -> Item:
        """Return what comes next. `ClientCalls` and `Ended` are the last of one response."""
        while True:
            changed = self._changed
            if self._pieces:
                text = "".join(self._pieces)
                self._pieces.clear()
                return TextPiece(text)
            if self.client.has_new:
                await self._gathered()
                if not self._pieces and (calls := self.client.hand_out()):
                    self._spoken = False
                    return ClientCalls(calls)
                continue
            if self.over:
                finish = self.result.finish if self.result is not None else None
                return Ended(self.status, finish, self.error)
            await changed.wait()

    async def ended(self) -> None:
        """Return when it is over."""
        while not self.over:
            await self._changed.wait()

    def add_text(self, piece: str) -> None:
        """The model said `piece`; words of different turns are kept apart."""
        if not piece or not self._listening:
            return
        if self._turn_over and self._spoken:
            self._pieces.append(BETWEEN_TURNS)
        self._turn_over, self._spoken = False, True
        self._pieces.append(piece)
        self._wake()

    def observe(self, event: Event) -> None:
        """Take an event of this run: it counts tokens and sees turns end."""
        if isinstance(event, ModelCalled):
            self._turn_over = True
            self._usage += event.usage

    def take_usage(self) -> Usage:
        """Return the tokens since the last time it was asked."""
        taken, self._usage = self._usage, Usage()
        return taken

    def end(
        self,
        status: Status,
        *,
        at: float,
        result: RunResult | None = None,
        error: Exception | None = None,
    ) -> None:
        """It is over. Only the first end counts."""
        if self.over:
            return
        self.status, self.ended_at = status, at
        # What was said stays; the messages are in the session's record.
        self.result = None if result is None else replace(result, messages=())
        self.error = error
        self.client.give_up()
        self._wake()

    async def _gathered(self) -> None:
        """Return when nothing has happened for a moment."""
        while True:
            changed = self._changed
            with anyio.move_on_after(GATHER_SECONDS):
                await changed.wait()
                continue
            return

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
