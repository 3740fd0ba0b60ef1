"""Owns how a person is asked: once, with the caller's budget paused, closed when nobody answers.

Above: the gate. Below: `policy.approvals`, `protocol.approvals`, `record`. Refuses to know: who the
person is and how they are reached. (Rule 3.5, BEHAVIOURS 27, PO-06, PO-07.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import anyio

from toolcell.base.identifiers import fresh
from toolcell.base.raised import text_of_error
from toolcell.calls.cancellation import asked_to_stop
from toolcell.calls.hooks import blocked
from toolcell.calls.invocation import Invocation
from toolcell.calls.record import Recorder, detached
from toolcell.policy.approvals import ApprovalRules
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest, Approver
from toolcell.protocol.events import ApprovalAnswered, ApprovalRequested


class ApprovalDesk:
    """Decides by the rules, and asks where they or a hook say so.

    Args:
        approver: Asks the person.
        rules: What needs asking.
        recorder: Where questions and answers are recorded.
    """

    __slots__ = ("_approver", "_open", "_recorder", "_rules")

    def __init__(self, approver: Approver, rules: ApprovalRules, recorder: Recorder) -> None:
        self._approver = approver
        self._rules = rules
        self._recorder = recorder
        self._open = 0

    @property
    def open(self) -> int:
        """How many questions wait for an answer."""
        return self._open

    def reasons(
        self, invocation: Invocation, arguments: Mapping[str, Any], asks: Sequence[str]
    ) -> tuple[str, ...]:
        """Return why a person must be asked; empty when the call may simply run.

        An `allow` rule does not overrule a hook that asks.

        Raises:
            CallError: `blocked`: a rule denies the call.
        """
        rule = self._rules.first(invocation.sourced, arguments, invocation.scope)
        if rule is None or rule.decision == "allow":
            return tuple(asks)
        if rule.decision == "deny":
            raise blocked(invocation, rule.reason or f"approval rule {rule.tool!r} denies it")
        return (rule.reason or f"approval rule {rule.tool!r} asks", *asks)

    async def ask(
        self, invocation: Invocation, arguments: Mapping[str, Any], reasons: Sequence[str]
    ) -> None:
        """Ask once and return when the answer is yes.

        Raises:
            CallError: `blocked`: the answer is no, or there is none.
        """
        request = ApprovalRequest(
            approval_id=fresh("approval"),
            scope=invocation.scope,
            call_id=invocation.call_id,
            parent_id=invocation.parent_id,
            tool_id=invocation.sourced.id,
            tool_name=invocation.sourced.tool.name,
            arguments=detached(arguments),
            reason="; ".join(dict.fromkeys(filter(None, reasons))),
        )
        self._requested(request)
        answer = ApprovalAnswer(approved=False, reason="the call was aborted while it waited")
        self._open += 1
        try:
            with invocation.budget.pause() if invocation.budget else nullcontext():
                answer = await self._answer(invocation, request)
        finally:
            self._open -= 1
            self._answered(request, answer)
        if answer.approved is not True:
            raise blocked(invocation, answer.reason or "approval was denied")

    async def _answer(self, invocation: Invocation, request: ApprovalRequest) -> ApprovalAnswer:
        try:
            answer: object = await self._approver.request(request)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except anyio.get_cancelled_exc_class():
            if asked_to_stop():
                raise
            return _no("the approval was closed without an answer")
        except BaseException as error:  # noqa: BLE001 - whatever an approver raises is a no
            why = f"the approver raised {text_of_error(error)}; this counts as a no"
            self._recorder.warn(invocation, why)
            return _no("approval could not be obtained")
        if isinstance(answer, ApprovalAnswer):
            return answer
        kind = type(answer).__name__
        self._recorder.warn(invocation, f"the approver returned a {kind}; this counts as a no")
        return _no("approval could not be obtained")

    def _requested(self, request: ApprovalRequest) -> None:
        self._recorder.emit(
            ApprovalRequested(
                scope=request.scope,
                at=self._recorder.clock.wall(),
                approval_id=request.approval_id,
                call_id=request.call_id,
                tool_id=request.tool_id,
                reason=self._recorder.redactor.text(request.reason),
            )
        )

    def _answered(self, request: ApprovalRequest, answer: ApprovalAnswer) -> None:
        self._recorder.emit(
            ApprovalAnswered(
                scope=request.scope,
                at=self._recorder.clock.wall(),
                approval_id=request.approval_id,
                call_id=request.call_id,
                approved=answer.approved is True,
                reason=self._recorder.redactor.text(answer.reason),
            )
        )


def _no(reason: str) -> ApprovalAnswer:
    return ApprovalAnswer(approved=False, reason=reason)
