"""Owns what becomes of runs and messages that a killed gateway left behind (rule 3.13).

A run goes on when it was cut off while a restart-safe cell was parked: from its transcript, as the
same sender in the same channel, with replay-safe tools only, and once. Every other run gets an end
that says that it was cut off: what it did is not known to be safe to do again. A message that was
taken and whose run never began is answered now; one whose run ended gets its reply.

Runs and messages of programs that are alive are theirs, and two gateways never take the same.

Above: `service`. Below: `app.recovery`, `sessions.open_runs`, `messaging`. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from toolcell.app.conversation import Turn
from toolcell.app.recovery import can_be_rebuilt
from toolcell.app.routes import RunExtras
from toolcell.app.runtime import Runtime
from toolcell.errors import ConfigError
from toolcell.gateway.api_models import InboundBody
from toolcell.gateway.faults import ApiError
from toolcell.gateway.inbound import answer_to
from toolcell.gateway.inbound_replies import Answered, RunOutcome
from toolcell.gateway.messaging import Messaging
from toolcell.gateway.runs import RunDesk
from toolcell.protocol.events import Diagnostic, RunEnded
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sessions.deliveries import Unanswered
from toolcell.sessions.open_runs import OpenRun, OpenRuns
from toolcell.sessions.records import Record, to_message

CUT_OFF: Final = "the gateway that ran it ended before it was over"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPorts:
    """What recovery asks of a gateway."""

    runtime: Runtime
    sessions: Sessions
    runs: RunDesk
    messages: Messaging


class Recovery:
    """One start of a gateway."""

    def __init__(self, ports: RecoveryPorts, left: OpenRuns) -> None:
        self._ports = ports
        self._left = left

    async def run(self) -> None:
        """See to everything that was left.

        Raises:
            SessionError: the record cannot be read or written; the supervisor tells the operator.
        """
        for run in await self._left.left():
            if await self._left.take_over(run):
                await self._see_to(run)
        for message in await self._ports.messages.book.left():
            await self._answer(message)

    async def _see_to(self, run: OpenRun) -> None:
        """Go on with a run, or give it its end."""
        sessions, runtime = self._ports.sessions, self._ports.runtime
        info = await sessions.info(run.session_id)
        ends = await sessions.events(run.session_id, types=("run_started", "run_ended"))
        began = next((r for r in ends if r.run_id == run.run_id and r.type == "run_started"), None)
        if info is None or began is None:
            await self._left.forget(run)
            return
        told = began.data()
        old = RunScope(
            agent_id=info.agent_id,
            session_id=run.session_id,
            session_key=info.session_key,
            run_id=run.run_id,
            sender=told.get("sender"),
            channel=told.get("channel"),
        )
        scope = await self._goes_on(old, ends)
        now = runtime.host.clock.wall()
        goes_on = None if scope is None else scope.run_id
        runtime.sink.emit(
            RunEnded(scope=old, at=now, status="aborted", error=CUT_OFF, continued_by=goes_on)
        )
        if scope is not None:
            extras = RunExtras(replay_safe_only=True)
            try:
                turn = Turn(scope=scope, prompt=None, extras=extras)
                await self._ports.runs.start(turn, listening=False)
            except ApiError as error:
                self._tell(old, f"was cut off and cannot go on: {error.message}")
                return
        what = "its session says how far it came" if scope is None else f"run {goes_on} goes on"
        self._tell(old, f"was cut off with its gateway; {what}")

    async def _goes_on(self, old: RunScope, ends: Sequence[Record]) -> RunScope | None:
        """Return the scope of the run that goes on with `old`; None when none may."""
        second = any(r.data().get("continued_by") == old.run_id for r in ends)
        # A child agent has no channel, and its parent is gone.
        if second or old.channel is None:
            return None
        if not await can_be_rebuilt(self._ports.sessions, old.session_id, run_id=old.run_id):
            return None
        try:
            return self._ports.runtime.scope(
                session_id=old.session_id,
                agent_id=old.agent_id,
                channel=old.channel,
                sender=old.sender,
            )
        except ConfigError:  # the agent is no longer configured
            return None

    async def _answer(self, message: Unanswered) -> None:
        """Begin the run of a message that never began, or send the reply of one that did."""
        book, inbound = self._ports.messages.book, self._ports.messages.inbound
        found = inbound.channel(message.delivery.channel)
        body = _body(message.message)
        if found is None or body is None or message.outcome.get("status") != "started":
            await book.answered(message.delivery)
            return
        answered = answer_to(found, body)
        run_id, session_id = str(message.outcome["runId"]), str(message.outcome["sessionId"])
        ends = await self._ports.sessions.events(session_id, types=("run_started", "run_ended"))
        if any(r.run_id == run_id and r.type == "run_started" for r in ends):
            await self._reply(run_id, session_id, ends, answered)
            return
        scope = replace(inbound.scope(found, body), run_id=run_id, session_id=session_id)
        try:
            live = await inbound.begin(scope, body)
        except ApiError as error:
            self._tell(scope, f"could not be begun after a restart: {error.message}")
            outcome = RunOutcome(run_id=run_id, agent_id=scope.agent_id, status="failed")
            self._ports.messages.replies.send(outcome, answered)
        else:
            self._ports.messages.replies.follow(live, answered)

    async def _reply(
        self, run_id: str, session_id: str, ends: Sequence[Record], answered: Answered
    ) -> None:
        """Send what the run of a message, or the one that goes on with it, came to."""
        over = {r.run_id: r.data() for r in ends if r.type == "run_ended"}
        end: Mapping[str, Any] | None = over.get(run_id)
        while end is not None and (after := end.get("continued_by")) is not None:
            run_id, end = str(after), over.get(str(after))
        replies = self._ports.messages.replies
        live = self._ports.runs.live(run_id)
        if live is not None:
            replies.follow(live, answered)
            return
        info = await self._ports.sessions.info(session_id)
        completed = end is not None and end.get("status") == "completed"
        said = await self._ports.sessions.events(session_id, types=("message",))
        outcome = RunOutcome(
            run_id=run_id,
            agent_id="" if info is None else info.agent_id,
            status="completed" if completed else "failed",
            text=_last_words(said, run_id) if completed else "",
        )
        replies.send(outcome, answered)

    def _tell(self, scope: RunScope, what: str) -> None:
        told = Diagnostic(
            at=self._ports.runtime.host.clock.wall(),
            level="warning",
            subject="recovery",
            message=f"run {scope.run_id!r} of session {scope.session_id!r} {what}",
            scope=scope,
        )
        self._ports.runtime.sink.emit(told)


def _body(value: Any) -> InboundBody | None:
    try:
        return InboundBody.model_validate(value)
    except ValidationError:  # another version's
        return None


def _last_words(records: Sequence[Record], run_id: str) -> str:
    mine = [each for each in records if each.run_id == run_id]
    said = [m.text for m in map(to_message, mine) if m.role == "assistant" and m.text]
    return said[-1] if said else ""
