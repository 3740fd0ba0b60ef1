"""Owns one cell: drives an executor's steps, hands requests to the bridge, and ends exactly once.

    start → settle → … → Finished | Faulted | parked → resume → settle → …

Above: the runtime. Below: `bridge`, `faults`, `output`, `execution.contract`, `continuations`.
Refuses to know: which executor it is, what a request means, arguments of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import anyio

from toolcell.base.clock import Clock
from toolcell.base.deadline import Deadline
from toolcell.base.spawner import Spawner
from toolcell.base.untrusted import wrapped
from toolcell.calls.pace import Pace
from toolcell.codemode.absent import hint
from toolcell.codemode.bridge import Bridge
from toolcell.codemode.budget import CellBudget
from toolcell.codemode.continuations.store import ContinuationStore
from toolcell.codemode.extensions.contract import CellContext, Handler
from toolcell.codemode.faults import ABORTED, Bounds, Verdict, verdict
from toolcell.codemode.output import Ledger
from toolcell.codemode.results import Completed, Failed, Outcome, Reason, Waiting
from toolcell.errors import CallError, CellError, RuntimeUnavailableError
from toolcell.execution.contract import (
    Continuation,
    Executor,
    Faulted,
    Finished,
    GuestError,
    Limits,
    OutputFrame,
    Program,
    Step,
    Suspended,
)
from toolcell.protocol.scope import RunScope

# An answer that comes this late is kept for `wait`, which has a budget of its own, rather than
# given to a program that has no time left to use it.
_LAST_MOMENT: Final = 0.02
# How much longer than its budget an executor may take to report before the cell is given up.
_GRACE_SECONDS: Final = 1.0
_LINES_AT_ONCE: Final = 256
# Child agents take longer than tools: a cell parked on nothing else lives this many TTLs.
_CHILD_WINDOWS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """What a cell is made of."""

    cell_id: str
    call_id: str
    scope: RunScope
    executor: Executor
    program: Program
    limits: Limits
    handlers: Mapping[str, Handler]
    timeout_ms: int
    ttl_seconds: float
    slots: int
    inbox_bytes: int
    show_aborted: bool = True
    takes_typescript: bool = False
    remap: Callable[[str], str] | None = None
    replay_id: str | None = None


class CellListener(Protocol):
    """Hears of every turn of its run's cells, whoever waits for them."""

    def concluded(self, cell: Cell, outcome: Outcome) -> Outcome:
        """Put a park or an end on record; return the outcome with its telemetry."""
        ...

    def cancelled(self, cell: Cell) -> None:
        """Put on record that the cell is over because its caller was cancelled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPorts:
    """What a cell is lent."""

    clock: Clock
    spawner: Spawner
    store: ContinuationStore
    listener: CellListener


class Cell:
    """One program from `exec` to its end. `run` and `resume` are called one at a time."""

    def __init__(
        self, plan: CellPlan, context: CellContext, ledger: Ledger, ports: CellPorts
    ) -> None:
        self.plan = plan
        self.context = context
        self._ledger = ledger
        self._ports = ports
        self._bridge = Bridge(
            plan.handlers,
            context,
            ports.spawner,
            slots=plan.slots,
            inbox_bytes=plan.inbox_bytes,
        )
        self._continuation: Continuation | None = None
        self._scope: anyio.CancelScope | None = None
        self._reply_at = 0.0
        self._abort_reason: str | None = None
        self.bytes_at_rest = 0
        self.over = False

    @property
    def cell_id(self) -> str:
        """Its `runId`."""
        return self.plan.cell_id

    @property
    def scope(self) -> RunScope:
        """Whose it is."""
        return self.plan.scope

    @property
    def life(self) -> Deadline:
        """Its time to live while parked."""
        return self._budget.life

    @property
    def _budget(self) -> CellBudget:
        budget = self.context.budget
        if not isinstance(budget, CellBudget):
            msg = "a cell's context carries a CellBudget"
            raise TypeError(msg)
        return budget

    async def run(self) -> Outcome:
        """Start the program and drive it until there is a result for `exec`."""
        return await self._heard(first=True)

    async def resume(self) -> Outcome:
        """Drive the parked program on until there is a result for `wait`."""
        return await self._heard(first=False)

    async def give_up(self, reason: str) -> None:
        """End the cell: abort its calls once each, interrupt the guest, free its state."""
        if self.over:
            return
        self._abort_reason = reason
        if self._scope is not None:
            self._scope.cancel()
            return
        await self._close()
        self._ports.listener.concluded(self, self._failed(self._aborted()))

    async def _heard(self, *, first: bool) -> Outcome:
        outcome: Outcome | None = None
        try:
            outcome = await self._guarded(first=first)
        finally:
            self.context.on_update = None
            if outcome is None:
                self._ports.listener.cancelled(self)
        return self._ports.listener.concluded(self, outcome)

    async def _guarded(self, *, first: bool) -> Outcome:
        seconds = self.plan.timeout_ms / 1000
        self._budget.restart(seconds)
        self._reply_at = self._ports.clock.monotonic() + seconds
        outcome: Outcome | None = None
        try:
            ends_at = anyio.current_time() + seconds + _GRACE_SECONDS
            with anyio.CancelScope(deadline=ends_at) as self._scope:
                outcome = await self._driven(first=first)
        finally:
            self._scope = None
            if outcome is None or outcome.status != "waiting" or self._abort_reason is not None:
                await self._close()
        if self._abort_reason is not None:
            return self._failed(self._aborted())
        if outcome is None:
            late = Faulted(kind="timeout", error=GuestError(name="", message=""))
            return self._failed(self._verdict(late))
        return outcome

    async def _driven(self, *, first: bool) -> Outcome:
        try:
            step: Step | None = None
            if first:
                step = await self._stepped(None)
            else:
                self._bridge.resume_yields()
            return await self._drained(step)
        except RuntimeUnavailableError as error:
            return self._failed(
                Verdict(error=error.message, code="runtime_unavailable", phase="host")
            )
        except CellError as error:
            return self._failed(_own(error))

    async def _drained(self, step: Step | None) -> Outcome:
        """Settle and resume until the program ends or has to be parked."""
        while True:
            if step is not None:
                # Before anything may fail: a continuation that is not kept could not be disposed.
                self._continuation = step.continuation if isinstance(step, Suspended) else None
                await self._noted(step.output)
                match step:
                    case Finished(value=value):
                        return self._completed(value)
                    case Faulted():
                        return self._failed(self._verdict(step))
                    case Suspended():
                        self._bridge.withdraw(step.withdrawn)
                        await self._bridge.submit(step.requests)
            reason = await self._awaited(parking=step is not None)
            if reason is not None:
                return await self._parked(reason)
            step = await self._stepped(self._continuation)

    async def _noted(self, output: Sequence[OutputFrame]) -> None:
        """Put output in the ledger, a program's hundred thousand lines in slices."""
        pace = Pace()
        for at in range(0, len(output), _LINES_AT_ONCE):
            self._ledger.add(output[at : at + _LINES_AT_ONCE])
            await pace.step()

    async def _awaited(self, *, parking: bool) -> Reason | None:
        """Wait for answers; return why the cell must be parked instead, if it must."""
        bridge = self._bridge
        if bridge.yielding:
            return "pending_tools" if bridge.pending() else "yield"
        if not bridge.outstanding:
            raise CellError(
                "code mode program is pending without host work: it awaits a promise that nothing "
                "will settle.",
                code="internal_error",
                phase="guest",
            )
        if parking and self.context.restart_safe and not bridge.refused_at_once:
            return "pending_tools"
        if not bridge.has_answers:
            left = self._reply_at - self._ports.clock.monotonic()
            with anyio.move_on_after(max(left, 0)):
                await bridge.changed()
        late = self._budget.remaining <= min(_LAST_MOMENT, self.plan.timeout_ms / 10_000)
        return "pending_tools" if late or not bridge.has_answers else None

    async def _stepped(self, continuation: Continuation | None) -> Step:
        """Run the guest for the rest of its budget."""
        seconds = self._budget.remaining
        if self._scope is not None:
            # One scope for the whole drive; only an approval that paused the budget moves it.
            latest = anyio.current_time() + seconds + _GRACE_SECONDS
            if latest - self._scope.deadline > _GRACE_SECONDS / 2:
                self._scope.deadline = latest
        if continuation is None:
            return await self.plan.executor.start(self.plan.program, self.plan.limits, seconds)
        return await continuation.resume(self._bridge.take(), seconds)

    async def _parked(self, reason: Reason) -> Outcome:
        if self._continuation is None:
            raise CellError("the cell has nothing to park")
        self._ports.store.reserve(self)
        size = await self._continuation.park()
        if isinstance(size, Faulted):
            self._continuation = None
            return self._failed(self._verdict(size))
        self.bytes_at_rest = size
        reply = self._ledger.reply()
        windows = _CHILD_WINDOWS if self._bridge.only_queued else 1
        self._ports.store.park(self, self.plan.ttl_seconds * windows)
        return Waiting(
            cell_id=self.cell_id,
            reason=reason,
            pending=self._bridge.pending(),
            output=reply.output,
            omitted_bytes=reply.omitted_bytes,
            replay_safe=self.context.restart_safe,
            replay_id=self.plan.replay_id if self.context.restart_safe else None,
            untrusted=self.context.untrusted,
        )

    def _completed(self, value: str) -> Completed:
        reply = self._ledger.reply(value=value)
        return Completed(
            value=self._with_reference(value, reply.value) if reply.value_cut else reply.value,
            output=reply.output,
            omitted_bytes=reply.omitted_bytes,
            replay_safe=self.context.restart_safe,
            untrusted=self.context.untrusted,
            terminate=self.context.terminate,
        )

    def _with_reference(self, value: str, marker: dict[str, Any]) -> dict[str, Any]:
        """Keep a cut object or array, so that a later cell can load it (BEHAVIOURS 365)."""
        context = self.context
        if value[:1] not in "[{":
            return marker
        try:
            kept = context.saved.save(
                context.scope,
                value,
                untrusted=context.untrusted,
                allowance=context.saved_allowance,
            )
        except CallError:
            return marker
        return {**marker, "reference": kept["id"]}

    def _failed(self, found: Verdict) -> Failed:
        outside = self.context.untrusted if found.untrusted is None else found.untrusted
        try:
            reply = self._ledger.reply(error=found.error + found.hint)
        except CellError as error:
            found, outside = _own(error), False
            reply = self._ledger.reply(error=found.error)
        hidden = found.code == "aborted" and not self.plan.show_aborted
        return Failed(
            error=_wrapped(reply.error, found.hint) if outside else reply.error,
            code=None if hidden else found.code,
            phase=found.phase,
            dispatched=self._bridge.dispatched,
            output=reply.output,
            omitted_bytes=reply.omitted_bytes,
            replay_safe=self.context.restart_safe,
            untrusted=self.context.untrusted,
        )

    def _verdict(self, fault: Faulted) -> Verdict:
        limits = self.plan.limits
        bounds = Bounds(
            timeout_ms=self.plan.timeout_ms,
            memory_bytes=limits.memory_bytes,
            snapshot_bytes=limits.snapshot_bytes,
            takes_typescript=self.plan.takes_typescript,
        )
        found = verdict(
            fault, program=self.plan.program, bounds=bounds, refusals=self._bridge.refusals
        )
        if fault.kind == "error" and found.phase == "guest":
            found = replace(found, hint=hint(fault.error, self.plan.program.source, self.context))
        return (
            found if self.plan.remap is None else replace(found, error=self.plan.remap(found.error))
        )

    def _aborted(self) -> Verdict:
        why = f": {self._abort_reason}" if self._abort_reason else ""
        return Verdict(error=ABORTED + why, code="aborted", phase="host")

    async def _close(self) -> None:
        """Free everything. Safe to call again."""
        self.over = True
        with anyio.CancelScope(shield=True):
            self._ports.store.release(self)
            continuation, self._continuation = self._continuation, None
            if continuation is not None:
                await continuation.dispose()
            await self._bridge.aclose()


def _wrapped(error: str, hint: str) -> str:
    """Mark what may come from outside; the host's own hint stands after it (rule 4.9)."""
    body = error.removesuffix(hint)
    return wrapped(body) + error[len(body) :]


def _own(error: CellError) -> Verdict:
    code: Any = error.code
    return Verdict(error=error.message, code=code, phase=error.phase)
