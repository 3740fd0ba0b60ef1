"""Owns the gate: the only doorway through which any tool runs (rules 8.1, 8.3; DESIGN, knot 1).

    admit → before hooks → input contract → approval → turn → body → after hooks → output contract

and one start and one end on record for each admitted call, however it ends.

Above: `RunCatalog`, code mode, the agent loop. Below: the steps, each in a file of its own.
Refuses to know: catalogs, cells, providers. Control tools get hooks and a record; they check their
own arguments, match no approval rule and take no turn, so a nested call never waits for its cell.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import anyio

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import dumps
from toolcell.base.raised import text_of_error
from toolcell.calls.approvals import ApprovalDesk
from toolcell.calls.contracts import Contracts, OutputContract, check_object, check_output
from toolcell.calls.hooks import NO_HOOKS, HookRunner, hook_view
from toolcell.calls.invocation import Invocation
from toolcell.calls.passage import Passage
from toolcell.calls.record import CallRecord, Recorder, Status, detached
from toolcell.calls.redaction import NO_SECRETS, Redactor
from toolcell.calls.results import error_text, plain_details
from toolcell.calls.schedule import RunSchedule
from toolcell.errors import CallError
from toolcell.policy.approvals import ApprovalRules
from toolcell.protocol.approvals import Approver, NoApprover
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.sink import NullSink, Sink
from toolcell.tools.content import MISSING, TextContent, ToolResult

MAX_IDLE_RUNS: Final = 4096
"""How many runs' numbering is remembered; the least recently used idle run is forgotten first."""

NO_RULES: Final = ApprovalRules()
NOBODY: Final = NoApprover()
NOWHERE: Final = NullSink()


class Gate:
    """Runs tool calls. One per runtime; safe to use from many tasks of one event loop.

    Args:
        hooks: The operator's hooks; None when they could not be had: every call is then blocked.
        approver: Asks a person; by default nobody answers, which is a no.
        approvals: Which calls need asking.
        sink: Takes the events.
        clock: For durations and timestamps.
        redactor: Masks secrets in the events, never in what the caller gets.
    """

    def __init__(
        self,
        *,
        hooks: Hooks | None = NO_HOOKS,
        approver: Approver = NOBODY,
        approvals: ApprovalRules = NO_RULES,
        sink: Sink = NOWHERE,
        clock: Clock = SYSTEM_CLOCK,
        redactor: Redactor = NO_SECRETS,
    ) -> None:
        self._recorder = Recorder(sink, clock, redactor)
        self._hooks = HookRunner(hooks, self._recorder)
        self._desk = ApprovalDesk(approver, approvals, self._recorder)
        self._contracts = Contracts()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._active = 0
        self._calls = 0

    async def call(self, invocation: Invocation) -> ToolResult:
        """Run one call.

        A result that reports failure as a value (`is_error`) is returned, not raised. Cancelling
        the caller cancels the tool body, and the record says `aborted`.

        Raises:
            CallError: there is no result; `code` and `effect` say why and whether the body ran.
        """
        run = self._run(invocation.scope.run_id)
        run.started += 1
        passage = Passage(invocation, CallRecord(invocation, run.started, self._recorder))
        self._active += 1
        run.active += 1
        try:
            return await self._passed(passage, run)
        except CallError as error:
            await self._failed(passage, error)
            raise
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt, GeneratorExit):
            await self._over(passage, "aborted", "the call was aborted", "aborted")
            raise
        except BaseException as error:
            failure = self._unexpected(passage, error)
            await self._failed(passage, failure)
            raise failure from error
        finally:
            run.active -= 1
            self._active -= 1

    def statistics(self) -> Mapping[str, int]:
        """Return counts: calls so far, calls under way, open approvals, waiting turns, runs."""
        return {
            "calls": self._calls,
            "active": self._active,
            "open_approvals": self._desk.open,
            "waiting_turns": sum(run.schedule.waiting for run in self._runs.values()),
            "runs": len(self._runs),
        }

    def _run(self, run_id: str) -> _Run:
        self._calls += 1
        run = self._runs.get(run_id)
        if run is not None:
            self._runs.move_to_end(run_id)
            return run
        if len(self._runs) >= MAX_IDLE_RUNS:
            idle = next((key for key, old in self._runs.items() if not old.active), None)
            if idle is not None:
                del self._runs[idle]
        run = self._runs[run_id] = _Run()
        return run

    async def _passed(self, passage: Passage, run: _Run) -> ToolResult:
        """Take a call through every step; the record is ended here only when it completes."""
        invocation = passage.invocation
        contract = await self._prepared(passage)
        if invocation.control:
            result = await passage.run_body()
        else:
            async with run.schedule.turn(alone=_alone(invocation)):
                passage.authorise()
                result = await passage.run_body()
        # From here on the tool has run: the record is not to say that the call was aborted.
        await passage.pace.step(shielded=True)
        if self._hooks.has_after:
            result = await self._after(passage, result)
        if contract is not None:
            result = _checked(invocation, contract, result)
            await passage.pace.step(shielded=True)
        passage.authorise()
        self._completed(passage, result)
        await passage.pace.step(shielded=True)
        return result

    async def _prepared(self, passage: Passage) -> OutputContract | None:
        """Do all that comes before the body; return what checks its details."""
        invocation = passage.invocation
        passage.authorise()
        passage.take_arguments()
        await passage.pace.step()
        check_object(invocation)
        asked = passage.arguments
        asks: tuple[str, ...] = ()
        if self._hooks.has_before:
            verdict = await self._hooks.before(invocation, passage.arguments)
            passage.view, asks = verdict.view, verdict.asks
            passage.arguments = detached(verdict.view.arguments)
        elif self._hooks.has_after:
            passage.view = hook_view(invocation, detached(passage.arguments))
        if invocation.control:
            contract, reasons = None, asks
        else:
            self._contracts.check_input(invocation, passage.arguments)
            contract = self._contracts.output(invocation, asked, passage.arguments)
            reasons = self._desk.reasons(invocation, passage.arguments, asks)
            await passage.pace.step()
        passage.begin()
        await passage.pace.step()
        if reasons:
            await self._desk.ask(invocation, passage.arguments, reasons)
        return contract

    async def _after(self, passage: Passage, result: ToolResult) -> ToolResult:
        """Show the `after` hooks a result; replaced details replace what a model reads too."""
        passage.after_seen = True
        status: Status = "failed" if result.is_error else "completed"
        error = error_text(result) if result.is_error else None
        details = None if result.details is MISSING else result.details
        seen = passage.outcome(status, details=details, error=error)
        replaced = await self._hooks.after(passage.invocation, seen)
        if replaced is None:
            return result
        details = plain_details(replaced.details, passage.invocation.subject)
        return replace(result, details=details, content=(TextContent(dumps(details)),))

    def _completed(self, passage: Passage, result: ToolResult) -> None:
        if result.is_error:
            passage.record.end("failed", result=result, error=error_text(result), code="tool_error")
        else:
            passage.record.end("completed", result=result)

    def _unexpected(self, passage: Passage, error: BaseException) -> CallError:
        """Return the error for a fault in a step itself: the call fails, the operator is told."""
        self._recorder.warn(passage.invocation, f"the gate failed: {text_of_error(error)}")
        return CallError(
            f"Tool {passage.invocation.subject!r} could not be called: an internal error.",
            code="tool_error",
            effect="unknown" if passage.ran else "none",
        )

    async def _failed(self, passage: Passage, error: CallError) -> None:
        status: Status = "failed"
        if error.code == "aborted":
            status = "aborted"
        elif error.code == "blocked" and not passage.ran:
            status = "blocked"
        await self._over(passage, status, error.message, error.code)

    async def _over(self, passage: Passage, status: Status, error: str, code: str) -> None:
        """Show the `after` hooks a call without a result, and end its record whatever they do."""
        passage.begin()
        try:
            if self._hooks.has_after and not passage.after_seen:
                seen = passage.outcome(status, error=error)
                await self._hooks.after_failure(passage.invocation, seen)
        finally:
            passage.record.end(status, error=error, code=code)


class _Run:
    """What the gate remembers of one run."""

    __slots__ = ("active", "schedule", "started")

    def __init__(self) -> None:
        self.schedule = RunSchedule()
        self.started = 0
        self.active = 0


def _alone(invocation: Invocation) -> bool:
    return invocation.sourced.tool.execution_mode == "sequential"


def _checked(invocation: Invocation, contract: OutputContract, result: ToolResult) -> ToolResult:
    """Hold a result to its output contract; a bare failure becomes an error instead.

    A program that was promised a type never gets an error envelope in its place.
    """
    if result.is_error and result.details is MISSING:
        raise CallError(error_text(result), code="tool_error", untrusted=result.untrusted)
    check_output(invocation, contract, result.details)
    return result
