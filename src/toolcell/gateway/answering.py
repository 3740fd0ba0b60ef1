"""Owns the way from an `Ask` to a run that is followed: a new one, or one that has results now.

Above: `openai_routes`. Below: `runs`, `client_tools`, `agents`. Refuses to know: wires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import anyio

from toolcell.app.conversation import Turn
from toolcell.app.routes import RunExtras
from toolcell.calls.redaction import Redactor
from toolcell.gateway.agents import agent_of
from toolcell.gateway.asking import Ask
from toolcell.gateway.client_calls import ClientCall
from toolcell.gateway.faults import conflict, invalid
from toolcell.gateway.live import ClientCalls, Ended, Item, LiveRun
from toolcell.gateway.masking import StreamMask
from toolcell.gateway.service import Service
from toolcell.protocol.messages import Usage

FIRST_SECONDS: Final = 5.0
"""A stream's status waits this long for the run to say anything, so that a run that fails at once
gets the status of its error."""

CANCELLED: Final = "the run was cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one response to a client comes to."""

    text: str
    calls: tuple[ClientCall, ...]
    finish: str | None
    usage: Usage


async def opened(service: Service, ask: Ask) -> LiveRun:
    """Return the run that answers: a new one, or the one whose client calls have results here.

    Raises:
        ApiError: it cannot be started, or it cannot go on.
    """
    agent = agent_of(service.config, ask.model)
    if ask.prompt is None:
        return _continued(service, ask, agent)
    source = service.clients.source(ask.app, ask.tools) if ask.tools else None
    session = ask.session
    scope = service.runtime.scope(
        session_id=session, agent_id=agent, channel="http", sender=ask.sender
    )
    turn = Turn(
        scope=scope,
        prompt=ask.prompt,
        images=ask.images,
        # A named session has its own record of what was said.
        history=ask.history if session is None else None,
        instructions=ask.instructions,
        extras=RunExtras(
            options=ask.options,
            sources=(source,) if source is not None else (),
            tools_disabled=ask.tools_disabled,
        ),
    )
    return await service.runs.start(turn)


def _continued(service: Service, ask: Ask, agent: str) -> LiveRun:
    found = {service.runs.of_call(call_id) for call_id in ask.results}
    live = next(iter(found), None)
    if live is None or len(found) != 1:
        message = (
            "these tool results belong to no run that waits for them: it has gone on without "
            "them, or the gateway was started anew; send the user's message again"
        )
        raise invalid(message, param="messages", code="unknown_tool_call")
    scope = live.scope
    if scope.agent_id != agent or ask.session not in (None, scope.session_id):
        message = "these tool results belong to a run of another agent or session"
        raise invalid(message, param="model", code="unknown_tool_call")
    missing = [call_id for call_id in live.client.handed_open if call_id not in ask.results]
    if missing:
        message = f"results are missing for the tool calls {', '.join(missing[:10])}"
        raise invalid(message, param="messages", code="missing_tool_results")
    brought = [live.client.answer(call_id, result) for call_id, result in ask.results.items()]
    if not any(brought) and live.over and live.told:
        message = f"run {live.run_id!r} is {live.status}, and its answer was sent"
        raise conflict(message, "run_over", retry=False)
    return live


class Following:
    """One response's view of a run: secrets masked, pieces put together.

    Attributes:
        text: All that was said in this response.
    """

    def __init__(self, live: LiveRun, redactor: Redactor) -> None:
        self.live = live
        self._redactor = redactor
        self._mask = StreamMask(redactor)
        self._first: Item | None = None

    async def begin(self) -> None:
        """Wait a moment for the run to say something.

        Raises:
            Exception: it failed before that.
        """
        with anyio.move_on_after(FIRST_SECONDS):
            self._first = await self.live.next_item()
        if isinstance(self._first, Ended):
            self.check(self._first)

    async def next(self) -> str | ClientCalls | Ended:
        """Return the next piece of text, the calls, or the end. Text may be empty."""
        item, self._first = self._first, None
        if item is None:
            item = await self.live.next_item()
        match item:
            case ClientCalls(calls):
                return ClientCalls(tuple(self._masked(call) for call in calls))
            case Ended():
                self.live.told = True
                return item
            case _:
                return self._mask.add(item.text)

    def rest(self) -> str:
        """Return the text that was held back; nothing comes after it."""
        return self._mask.rest()

    async def whole(self) -> Answer:
        """Follow it to the end of this response.

        Raises:
            Exception: why it failed.
        """
        pieces: list[str] = []
        while True:
            item = await self.next()
            if isinstance(item, str):
                pieces.append(item)
                continue
            if isinstance(item, Ended):
                self.check(item)
            return Answer(
                text="".join(pieces) + self.rest(),
                calls=item.calls if isinstance(item, ClientCalls) else (),
                finish=item.finish if isinstance(item, Ended) else None,
                usage=self.live.take_usage(),
            )

    def check(self, ended: Ended) -> None:
        """Raise for a run that did not complete."""
        if ended.error is not None:
            raise ended.error
        if ended.status == "cancelled":
            raise conflict(CANCELLED, "run_cancelled", retry=False)

    def gone(self) -> None:
        """The client went away: nobody hears the rest, unless it holds calls to answer."""
        if not self.live.over and not self.live.client.handed_open:
            self.live.cancel_scope.cancel()

    def _masked(self, call: ClientCall) -> ClientCall:
        return ClientCall(
            call_id=call.call_id,
            name=call.name,
            arguments=self._redactor.value(dict(call.arguments)),
        )
