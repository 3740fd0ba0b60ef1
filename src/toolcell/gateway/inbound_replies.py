"""Owns sending what a run said back through the channel its message came from.

A reply keeps its id however often it is sent, so that a receiver can tell a second one.

Above: `inbound`. Below: `live`, `sources.core.webhook`. Refuses to know: how runs begin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from toolcell.app.runtime import Runtime
from toolcell.errors import CallError
from toolcell.gateway.live import LiveRun
from toolcell.protocol.events import Diagnostic
from toolcell.sessions.deliveries import Delivery, DeliveryBook
from toolcell.sources.core.http_types import Http
from toolcell.sources.core.webhook import Outgoing, WebhookChannel, post

MAX_PAUSE_SECONDS: Final = 60.0
_TRY_AGAIN: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The message that a run answers, and how its reply gets back.

    Attributes:
        channel: Where it came from.
        delivery: Which message it is.
        conversation: The conversation's key there.
        attempts: How often the reply is sent until it is taken.
        pause: Seconds before the second attempt; each further one is twice as long.
    """

    channel: WebhookChannel
    delivery: Delivery
    conversation: str
    attempts: int
    pause: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to."""

    run_id: str
    agent_id: str
    status: str
    text: str = ""


class ReplySender:
    """Sends the replies of runs.

    Args:
        http: Sends.
        runtime: For tasks, the time and diagnostics.
        book: Told when a message is answered.
    """

    def __init__(self, http: Http, runtime: Runtime, book: DeliveryBook) -> None:
        self._http = http
        self._runtime = runtime
        self._book = book
        self._open = 0
        self._idle = anyio.Event()

    @property
    def open(self) -> int:
        """How many replies are still to be taken, those of runs that go on included."""
        return self._open

    def follow(self, live: LiveRun, answered: Answered) -> None:
        """Send what a run comes to when it is over."""
        self._begin(self._followed, live, answered)

    def send(self, outcome: RunOutcome, answered: Answered) -> None:
        """Send what a run came to."""
        self._begin(self._sent, outcome, answered)

    async def drained(self, seconds: float) -> None:
        """Return when every reply was taken or given up, or time is up."""
        with anyio.move_on_after(seconds):
            while self._open:
                await self._idle.wait()

    def _begin(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        self._open += 1
        self._runtime.supervisor.start_soon(self._counted, work, args, name="webhook reply")

    async def _counted(self, work: Callable[..., Awaitable[None]], args: Sequence[object]) -> None:
        try:
            await work(*args)
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()
                self._idle = anyio.Event()

    async def _followed(self, live: LiveRun, answered: Answered) -> None:
        await live.ended()
        done = live.result if live.status == "completed" else None
        outcome = RunOutcome(
            run_id=live.run_id,
            agent_id=live.scope.agent_id,
            status=live.status,
            # Why it failed is for the operator; whoever wrote in the channel may be anybody.
            text="" if done is None else done.text,
        )
        await self._sent(outcome, answered)

    async def _sent(self, outcome: RunOutcome, answered: Answered) -> None:
        """Send it until it is taken or given up; a shutdown leaves it to the next start."""
        if not await self._taken(outcome, answered):
            self._tell(outcome, answered)
        await self._book.answered(answered.delivery)

    async def _taken(self, outcome: RunOutcome, answered: Answered) -> bool:
        reply = Outgoing(
            id=f"reply_{outcome.run_id}",  # also after a restart, so that a second one is known
            type="reply",
            conversation=answered.conversation,
            text=self._runtime.redactor.text(outcome.text),
            agent_id=outcome.agent_id,
            seconds=answered.channel.seconds,
            more={
                "replyTo": answered.delivery.id,
                "status": outcome.status,
                "runId": outcome.run_id,
            },
        )
        pause = answered.pause
        for attempt in range(answered.attempts):
            if attempt:
                await anyio.sleep(min(pause, MAX_PAUSE_SECONDS))
                pause *= 2
            try:
                clock = self._runtime.host.clock
                status = (await post(self._http, answered.channel, reply, clock)).status
            except CallError:
                continue
            if 200 <= status < 300:
                return True
            if status < 500 and status not in _TRY_AGAIN:
                return False
        return False

    def _tell(self, outcome: RunOutcome, answered: Answered) -> None:
        told = Diagnostic(
            at=self._runtime.host.clock.wall(),
            level="error",
            subject=f"channel {answered.channel.id}",
            message=(
                f"the reply of run {outcome.run_id!r} to message {answered.delivery.id!r} was not "
                "taken by the channel's receiver; the run's session holds it"
            ),
        )
        self._runtime.sink.emit(told)
