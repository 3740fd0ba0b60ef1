"""A person is asked: once, with the budget paused, and silence is a no."""

from typing import Any

import anyio
import pytest

from tests.calls.kit import NUMBERS, Counted, ManualClock, core, gate, invocation
from toolcell.base.deadline import Deadline
from toolcell.errors import CallError
from toolcell.policy.approvals import ApprovalRule, ApprovalRules
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest
from toolcell.protocol.events import ApprovalAnswered, ApprovalRequested, CallStarted, Diagnostic
from toolcell.protocol.hooks import Ask, Hooks

pytestmark = pytest.mark.anyio

ASK_PAY = ApprovalRules((ApprovalRule(tool="pay", decision="ask", reason="it costs money"),))


class Desk:
    """An approver that waits until a test answers."""

    def __init__(self, answer: Any = None) -> None:
        self.requests: list[ApprovalRequest] = []
        self.asked = anyio.Event()
        self.answered = anyio.Event()
        self.answer = answer

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.requests.append(request)
        self.asked.set()
        await self.answered.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def asked_with(answer: Any) -> tuple[CallError, Counted, list[Any]]:
    """Call `pay`, answer, and return the error, the body and the answers on record."""
    desk, body = Desk(answer), Counted({})
    desk.answered.set()
    made, sink = gate(approver=desk, approvals=ASK_PAY)
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("pay", body), {"amt": 5}))
    assert len(desk.requests) == 1
    assert sink.only_end().status == "blocked"
    return caught.value, body, sink.of(ApprovalAnswered)


async def test_an_approved_call_runs_after_exactly_one_question() -> None:
    """PO-07, rule 3.5: tool and arguments are shown; the question stands between start and end."""
    desk, body = Desk(ApprovalAnswer(approved=True)), Counted({"paid": True})
    made, sink = gate(approver=desk, approvals=ASK_PAY)
    results: list[Any] = []

    async def caller() -> None:
        results.append(await made.call(invocation(core("pay", body), {"amt": 5})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller)
        with anyio.fail_after(5):
            await desk.asked.wait()
        assert (body.count, made.statistics()["open_approvals"]) == (0, 1)
        desk.answered.set()
    assert results[0].details == {"paid": True}
    (request,) = desk.requests
    assert (request.tool_id, request.tool_name) == ("openclaw:core:pay", "pay")
    assert (request.arguments, request.reason) == ({"amt": 5}, "it costs money")
    assert (request.call_id, request.parent_id) == ("c1", "exec1")
    kinds = [type(event) for event in sink.events]
    assert kinds[:3] == [CallStarted, ApprovalRequested, ApprovalAnswered]
    asked, answered = sink.events[1:3]
    assert asked.approval_id == answered.approval_id == request.approval_id  # type: ignore[union-attr]
    assert len(request.approval_id) > 32
    assert answered.approved  # type: ignore[union-attr]


async def test_the_callers_budget_stands_still_while_a_question_is_open() -> None:
    """BEHAVIOURS 27, rule 3.5, PO-07: three seconds of waiting cost a budget of two nothing."""
    clock = ManualClock()
    budget = Deadline(2.0, clock=clock)
    desk = Desk(ApprovalAnswer(approved=True))
    made, _ = gate(approver=desk, approvals=ASK_PAY, clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.call, invocation(core("pay", Counted({})), {}, budget=budget))
        with anyio.fail_after(5):
            await desk.asked.wait()
        assert budget.paused
        clock.now += 3.0
        desk.answered.set()
    assert not budget.paused
    assert budget.remaining == 2.0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ApprovalAnswer(approved=False, reason="too dear"), "too dear"),
        (ApprovalAnswer(approved=False), "approval was denied"),
        (ApprovalAnswer(approved="yes"), "approval was denied"),  # type: ignore[arg-type]
        (RuntimeError("the channel is down"), "approval could not be obtained"),
        (True, "approval could not be obtained"),
        (None, "approval could not be obtained"),
    ],
)
async def test_anything_but_a_clear_yes_is_a_no(answer: Any, reason: str) -> None:
    """PO-07, SE-07: a no, a broken approver and nonsense all leave the tool unrun."""
    error, body, answers = await asked_with(answer)
    assert error.message == f'Tool "openclaw:core:pay" was blocked before execution: {reason}'
    assert (error.code, error.effect, body.count) == ("blocked", "none", 0)
    assert [event.approved is True for event in answers] == [False]


async def test_when_nobody_is_there_to_ask_the_answer_is_no() -> None:
    """PO-07: without an approver, closed."""
    body = Counted()
    made, sink = gate(approvals=ASK_PAY)
    with pytest.raises(CallError, match="needs approval and nobody can be asked"):
        await made.call(invocation(core("pay", body)))
    assert body.count == 0
    assert len(sink.of(ApprovalRequested)) == len(sink.of(ApprovalAnswered)) == 1


async def test_the_operator_learns_why_an_approver_failed() -> None:
    """SE-07: the caller is told that, the operator is told why."""
    desk = Desk(RuntimeError("smtp refused"))
    desk.answered.set()
    made, sink = gate(approver=desk, approvals=ASK_PAY)
    with pytest.raises(CallError) as caught:
        await made.call(invocation(core("pay", Counted())))
    assert "smtp" not in caught.value.message
    assert "smtp refused" in sink.of(Diagnostic)[0].message


async def test_a_rule_denies_a_nested_shell_call_with_its_reason() -> None:
    """PO-06: nobody is asked."""
    rules = ApprovalRules(
        (ApprovalRule(tool="exec", decision="deny", arguments={"command": "rm "}, reason="no rm"),)
    )
    desk, body = Desk(), Counted({})
    made, sink = gate(approver=desk, approvals=rules)
    with pytest.raises(CallError, match="was blocked before execution: no rm"):
        await made.call(invocation(core("exec", body), {"command": "rm x"}))
    await made.call(invocation(core("exec", body), {"command": "ls"}))
    assert (body.count, desk.requests) == (1, [])
    assert [end.status for end in sink.ended] == ["blocked", "completed"]


async def test_an_allow_rule_does_not_overrule_a_hook_that_asks() -> None:
    """PO-07: the stricter word counts."""
    rules = ApprovalRules((ApprovalRule(tool="*", decision="allow"),))
    made, _ = gate(approvals=rules, hooks=Hooks(before=[lambda _: Ask(reason="sure?")]))
    with pytest.raises(CallError, match="nobody can be asked"):
        await made.call(invocation(core("pay", Counted())))


async def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    """PO-07: contracts come first."""
    desk = Desk()
    made, _ = gate(approver=desk, approvals=ASK_PAY)
    for tool in (
        core("pay", Counted(), parameters=NUMBERS),
        core("pay", Counted(), output_schema={"type": "no-such-type"}),
    ):
        with pytest.raises(CallError):
            await made.call(invocation(tool, {}))
    assert desk.requests == []


async def test_an_approver_cannot_change_what_was_approved() -> None:
    """PO-07: it is shown a copy."""

    class Meddler:
        async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
            request.arguments["amt"] = 500  # type: ignore[index]
            return ApprovalAnswer(approved=True)

    body = Counted({})
    made, _ = gate(approver=Meddler(), approvals=ASK_PAY)
    await made.call(invocation(core("pay", body), {"amt": 5}))
    assert body.seen == [{"amt": 5}]


async def test_authority_lost_while_a_person_thinks_stops_the_call() -> None:
    """rule 8.1: a yes does not outlive the run it was given to."""
    desk, body, lost = Desk(ApprovalAnswer(approved=True)), Counted({}), []

    def authority() -> None:
        if lost:
            raise CallError("gone", code="unavailable", effect="none")

    errors: list[CallError] = []
    made, _ = gate(approver=desk, approvals=ASK_PAY)

    async def caller() -> None:
        with pytest.raises(CallError) as caught:
            await made.call(invocation(core("pay", body), authority=authority))
        errors.append(caught.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller)
        with anyio.fail_after(5):
            await desk.asked.wait()
        lost.append(True)
        desk.answered.set()
    assert (errors[0].code, body.count) == ("unavailable", 0)
