"""Owns sending what a run said back through the channel its message came from.

A reply keeps its id however often it is sent, so that a receiver can tell a second one.

Above: `inbound`. Below: `live`, `sources.core.webhook`. Refuses to know: how runs begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import anyio

from toolcell.app.runtime import Runtime
from toolcell.base.identifiers import fresh
from toolcell.errors import CallError
from toolcell.gateway.live import LiveRun
from toolcell.protocol.events import Diagnostic
from toolcell.sources.core.http_types import Http
from toolcell.sources.core.webhook import Outgoing, WebhookChannel, post

MAX_PAUSE_SECONDS: Final = 60.0
_TRY_AGAIN: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The message that a run answers, and how its reply gets back.

    Attributes:
        channel: Where it came from.
        conversation: The conversation's key there.
        message_id: The sender's id of it.
        attempts: How often the reply is sent until it is taken.
        pause: Seconds before the second attempt; each further one is twice as long.
    """

    channel: WebhookChannel
    conversation: str
    message_id: str
    attempts: int
    pause: float


class ReplySender:
    """Sends the replies of runs."""

    def __init__(self, http: Http, runtime: Runtime) -> None:
        self._http = http
        self._runtime = runtime
        self._open = 0
        self._idle = anyio.Event()

    @property
    def open(self) -> int:
        """How many replies are still to be taken, those of runs that go on included."""
        return self._open

    def follow(self, live: LiveRun, answered: Answered) -> None:
        """Send what a run comes to when it is over."""
        self._open += 1
        self._runtime.supervisor.start_soon(self._follow, live, answered, name="webhook reply")

    async def drained(self, seconds: float) -> None:
        """Return when every reply was taken or given up, or time is up."""
        with anyio.move_on_after(seconds):
            while self._open:
                await self._idle.wait()

    async def _follow(self, live: LiveRun, answered: Answered) -> None:
        taken = False
        try:
            await live.ended()
            taken = await self._sent(answered, self._reply(live, answered))
        finally:
            if not taken:
                self._tell(live, answered)
            self._open -= 1
            if not self._open:
                self._idle.set()
                self._idle = anyio.Event()

    def _reply(self, live: LiveRun, answered: Answered) -> Outgoing:
        done = live.result if live.status == "completed" else None
        return Outgoing(
            id=fresh("msg"),
            type="reply",
            conversation=answered.conversation,
            # Why it failed is for the operator; whoever wrote in the channel may be anybody.
            text="" if done is None else self._runtime.redactor.text(done.text),
            agent_id=live.scope.agent_id,
            seconds=answered.channel.seconds,
            more={"replyTo": answered.message_id, "status": live.status, "runId": live.run_id},
        )

    async def _sent(self, answered: Answered, reply: Outgoing) -> bool:
        """Send it until it is taken; returns whether it was."""
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

    def _tell(self, live: LiveRun, answered: Answered) -> None:
        told = Diagnostic(
            at=self._runtime.host.clock.wall(),
            level="error",
            subject=f"channel {answered.channel.id}",
            message=(
                f"the reply of run {live.run_id!r} to message {answered.message_id!r} was not "
                "taken by the channel's receiver; the run's session holds it"
            ),
            scope=live.scope,
        )
        self._runtime.sink.emit(told)
