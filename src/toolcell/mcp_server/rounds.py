"""Owns calls of the 2026 revision that take several requests, because a person is asked between.

Its servers send no requests: a question is the answer to the call, and the client sends the call
again with what its user said. Meanwhile the call itself goes on here.

Above: the protocol server. Below: the MCP SDK's types, `asking`. Refuses to know: what a call does.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolcell.base.spawner import Spawner
from toolcell.mcp_server.asking import ChannelClosedError, NoAnswerError
from toolcell.mcp_server.progress import Report

MAX_ROUNDS: Final = 64
"""Calls of one session that are kept between two requests; the oldest one is given up."""

MAX_ATTENDED: Final = 256
"""Calls of one session with a request open for each; a further one is refused."""

ATTENDED: Final = (
    "another request with this requestState is open; wait for its answer, or cancel that one first"
)
TOO_MANY: Final = f"{MAX_ATTENDED} calls of this session are open; wait until one is over"
UNKNOWN: Final = "this requestState is unknown, or over; call the tool again without it"
OTHER_CALL: Final = "this requestState is of a call with another name or other arguments"

Answer = types.CallToolResult | types.InputRequiredResult
Work = Callable[["Round"], Awaitable[types.CallToolResult]]


class _Question:
    """One question on its way to the person and back."""

    def __init__(self, message: str, form: Mapping[str, Any]) -> None:
        self.request = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=message, requested_schema=dict(form))
        )
        self.settled = anyio.Event()
        self.said: types.ElicitResult | None = None
        self.sent = False


class Round:
    """One call: `asking.Channel` for its work, and what its requests wait for.

    Attributes:
        state: What the client sends back to go on with it.
        scope: Cancels the work.
        attended: Whether a request of the client is open for it.
    """

    def __init__(self, params: types.CallToolRequestParams) -> None:
        self.state = secrets.token_urlsafe(24)
        self.attended = True
        self.scope = anyio.CancelScope()
        self._call = (params.name, params.arguments or {})
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._news = anyio.Event()
        self._result: types.CallToolResult | None = None
        self._over = False
        self._report: Report | None = None

    async def ask(self, message: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask with the answer to the request that is open, or to the next one."""
        if self._over:
            raise ChannelClosedError
        question = _Question(message, form)
        self._asked += 1
        key = f"approval-{self._asked}"
        self._questions[key] = question
        self._news.set()
        try:
            await question.settled.wait()
        finally:
            self._questions.pop(key, None)
        if question.said is not None:
            return {"action": question.said.action, "content": question.said.content}
        raise NoAnswerError if question.sent else ChannelClosedError

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress to the request that is open, where it asked for that."""
        if self._report is not None:
            await self._report(progress, total, message)

    async def work(self, work: Work) -> None:
        """Do the work, and let whoever waits know that it is over."""
        try:
            with self.scope:
                self._result = await work(self)
        finally:
            self._over = True
            for question in self._questions.values():
                # One that was sent may still be answered: a cell waits for it (rule 3.5).
                if not question.sent:
                    question.settled.set()
            self._news.set()

    def give_up(self) -> None:
        """Cancel the work; no question has an answer."""
        self.scope.cancel()
        for question in self._questions.values():
            question.settled.set()

    def is_of(self, params: types.CallToolRequestParams) -> bool:
        """Whether a request asks for this very call."""
        return self._call == (params.name, params.arguments or {})

    def hear(self, responses: Mapping[str, Any]) -> None:
        """Take what the client brings back; a question it leaves out has no answer."""
        for key, question in self._questions.items():
            said = responses.get(key)
            if question.sent and not question.settled.is_set():
                question.said = said if isinstance(said, types.ElicitResult) else None
                question.settled.set()

    async def next(self, report: Report | None) -> Answer:
        """Return the result, or the questions that have come up.

        Raises:
            MCPError: the call was given up.
        """
        self._report, self.attended = report, True
        try:
            while not self._over:
                waiting = {k: q for k, q in self._questions.items() if not q.settled.is_set()}
                if waiting:
                    for question in waiting.values():
                        question.sent = True
                    requests: types.InputRequests = {k: q.request for k, q in waiting.items()}
                    return types.InputRequiredResult(
                        input_requests=requests, request_state=self.state
                    )
                self._news = anyio.Event()
                await self._news.wait()
        finally:
            self._report, self.attended = None, False
        if self._result is None:
            raise MCPError(types.INTERNAL_ERROR, "the call was given up")
        return self._result


class Rounds:
    """The calls of one client session that wait between two requests."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._kept: dict[str, Round] = {}

    async def take(
        self, params: types.CallToolRequestParams, report: Report | None, work: Work
    ) -> Answer:
        """Begin a call, or go on with the one that a request names by its state.

        Raises:
            MCPError: the state is of no call, of another one, or of one that is attended.
        """
        if params.request_state is None:
            if sum(each.attended for each in self._kept.values()) >= MAX_ATTENDED:
                raise MCPError(types.INVALID_PARAMS, TOO_MANY)
            made = Round(params)
            self._keep(made)
            self._spawner.start_soon(made.work, work, name=f"mcp call {params.name[:80]}")
        else:
            found = self._kept.get(params.request_state)
            if found is None:
                raise MCPError(types.INVALID_PARAMS, UNKNOWN)
            if not found.is_of(params):
                raise MCPError(types.INVALID_PARAMS, OTHER_CALL)
            if found.attended:
                raise MCPError(types.INVALID_PARAMS, ATTENDED)
            made = found
            made.hear(params.input_responses or {})
        answer: Answer | None = None
        try:
            answer = await made.next(report)
        finally:
            if not isinstance(answer, types.InputRequiredResult):
                self._kept.pop(made.state, None)
                made.give_up()
        return answer

    def end(self) -> None:
        """The session is over: give up every call."""
        for each in self._kept.values():
            each.give_up()
        self._kept.clear()

    def _keep(self, made: Round) -> None:
        left = [state for state, each in self._kept.items() if not each.attended]
        if len(left) >= MAX_ROUNDS:
            self._kept.pop(left[0]).give_up()
        self._kept[made.state] = made
