"""Owns the questions that wait for a person: asked by the gate, answered over the API.

Each is answered once; an answer may hold for the rest of the session. When nobody answers in time,
or the gateway shuts down, the answer is no (rule 3.5; the gate puts each on record).

Above: the routes, `service`. Below: `protocol.approvals`. Refuses to know: HTTP, rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import anyio

from toolcell.base.clock import Clock
from toolcell.calls.redaction import Redactor
from toolcell.gateway.faults import conflict, not_found
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest

MAX_REMEMBERED: Final = 1024
"""How many closed questions are told apart from unknown ones."""
MAX_GRANTS: Final = 4096
MAX_SHOWN_CHARS: Final = 16_384

Reach = Literal["once", "session"]


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question nobody has answered yet."""

    request: ApprovalRequest
    asked_at: float
    expires_at: float
    answer: ApprovalAnswer | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


class PendingApprovals:
    """An `Approver` that waits for the API.

    Args:
        clock: Dates the questions.
        ttl_seconds: How long each waits.
        redactor: Masks secrets in what a person is shown.
    """

    def __init__(self, *, clock: Clock, ttl_seconds: float, redactor: Redactor) -> None:
        self._clock = clock
        self._ttl = ttl_seconds
        self._redactor = redactor
        self._open: OrderedDict[str, OpenQuestion] = OrderedDict()
        self._closed: OrderedDict[str, str] = OrderedDict()
        self._grants: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._shutting_down = False

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer of whoever gives one; no when nobody does."""
        if self._grant(request) in self._grants:
            return ApprovalAnswer(approved=True, reason="approved before, for the session")
        if self._shutting_down:
            return ApprovalAnswer(approved=False, reason="the gateway is shutting down")
        now = self._clock.wall()
        question = OpenQuestion(request, asked_at=now, expires_at=now + self._ttl)
        self._open[request.approval_id] = question
        how = "closed without an answer"
        try:
            with anyio.move_on_after(self._ttl):
                await question.answered.wait()
            if question.answer is None:
                how = "expired"
                reason = f"nobody answered within {self._ttl:g} seconds"
                return ApprovalAnswer(approved=False, reason=reason)
            how = "answered"
            return question.answer
        finally:
            self._open.pop(request.approval_id, None)
            self._remember(request.approval_id, how)

    def pending(self) -> list[dict[str, Any]]:
        """Return the open questions, the oldest first, as plain JSON data with secrets masked."""
        return [self._shown(each) for each in self._open.values() if each.answer is None]

    def show(self, approval_id: str) -> dict[str, Any]:
        """Return one open question.

        Raises:
            ApiError: 404, or 409 when it is closed.
        """
        return self._shown(self._find(approval_id))

    def answer(
        self, approval_id: str, *, approved: bool, reach: Reach = "once", reason: str = ""
    ) -> None:
        """Answer a question. A yes for the session holds for this tool, whatever its arguments.

        Raises:
            ApiError: 404: there is no such question; 409: it has its answer already.
        """
        question = self._find(approval_id)
        if approved and reach == "session":
            self._grants[self._grant(question.request)] = None
            if len(self._grants) > MAX_GRANTS:
                self._grants.popitem(last=False)
        told = reason or ("approved" if approved else "denied by a person")
        self._settle(question, ApprovalAnswer(approved=approved, reason=told))

    def forget(self, session_ids: Collection[str]) -> None:
        """These sessions are no more: a later one of the same name has no yes of theirs."""
        for grant in [each for each in self._grants if each[1] in session_ids]:
            del self._grants[grant]

    def shut(self) -> None:
        """Answer every question with no, those to come too."""
        self._shutting_down = True
        for question in list(self._open.values()):
            no = ApprovalAnswer(approved=False, reason="the gateway is shutting down")
            if question.answer is None:
                self._settle(question, no)

    def _find(self, approval_id: str) -> OpenQuestion:
        question = self._open.get(approval_id)
        if question is not None and question.answer is None:
            return question
        how = "answered" if question is not None else self._closed.get(approval_id)
        if how is None:
            raise not_found(
                "no such approval; `toolcell approvals list`, GET /api/approvals show the open ones"
            )
        message = f"this approval is {how} already"
        raise conflict(message, "approval_closed", retry=False)

    def _settle(self, question: OpenQuestion, answer: ApprovalAnswer) -> None:
        question.answer = answer
        question.answered.set()

    def _remember(self, approval_id: str, how: str) -> None:
        self._closed[approval_id] = how
        if len(self._closed) > MAX_REMEMBERED:
            self._closed.popitem(last=False)

    def _grant(self, request: ApprovalRequest) -> tuple[str, str, str]:
        return (request.scope.agent_id, request.scope.session_id, request.tool_id)

    def _shown(self, question: OpenQuestion) -> dict[str, Any]:
        request = question.request
        return {
            "id": request.approval_id,
            "agentId": request.scope.agent_id,
            "sessionId": request.scope.session_id,
            "runId": request.scope.run_id,
            "callId": request.call_id,
            "parentToolCallId": request.parent_id,
            "toolId": request.tool_id,
            "toolName": request.tool_name,
            "arguments": _bounded(self._redactor.value(dict(request.arguments))),
            "reason": self._redactor.text(request.reason),
            "sender": request.scope.sender,
            "channel": request.scope.channel,
            "askedAt": question.asked_at,
            "expiresAt": question.expires_at,
        }


def _bounded(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with long texts cut; what a person cannot see whole says so."""
    return {
        name: (
            f"{value[:MAX_SHOWN_CHARS]}… ({len(value)} characters in all)"
            if isinstance(value, str) and len(value) > MAX_SHOWN_CHARS
            else value
        )
        for name, value in arguments.items()
    }
