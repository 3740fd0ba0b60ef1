"""Owns the requests of one cell: dispatch, slots, queue, real settle order, withdrawal, abort.

It looks handlers up by method and has no special cases. A request is JSON and bounded; so is its
reply (rules 8.2, 8.5; BEHAVIOURS 184 to 192). Answers wait here until the cell takes them, also
while it is parked.

Above: cells. Below: `extensions.contract`, `base.spawner`. Refuses to know: what a request means.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio

from toolcell.base.jsontext import Json, dumps, loads, utf8_length
from toolcell.base.spawner import Spawner
from toolcell.calls.pace import Pace
from toolcell.codemode.extensions.contract import (
    Answering,
    Calling,
    CellContext,
    GiveUp,
    Handler,
    Queueing,
    Settle,
    Sleeping,
    Yielding,
)
from toolcell.errors import CallError, CellError
from toolcell.execution.contract import Answer, Refusal, Request, Settled

QUEUE_SLOTS: Final = 128
MAX_SLEEPS: Final = 1000
MAX_ARGUMENT_BYTES: Final = 4 << 20
INBOX_FULL: Final = (
    "Code Mode program-data budget exceeded. Paginate or narrow the tool request, or consume "
    "pending replies before requesting more data."
)
ARGUMENTS_FULL: Final = (
    "Code Mode program-data budget exceeded: the open requests of this program carry more than "
    "{limit} bytes of arguments. Await some of them before you send more."
)
HOST_FAULT: Final = "The host could not carry out this request; it is not the program's fault."
_CLOSING_SECONDS: Final = 5.0


@dataclass(slots=True, eq=False)
class _Open:
    """A request without an answer yet."""

    request: Request
    handler: Handler
    arguments: list[Any]
    size: int
    scope: anyio.CancelScope | None = None
    give_up: GiveUp | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """What the host remembers of a refusal, to judge the end of a cell (BEHAVIOURS 143 to 147)."""

    code: str
    untrusted: bool


class Bridge:
    """The host's side of one cell's requests."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        cell: CellContext,
        spawner: Spawner,
        *,
        slots: int,
        inbox_bytes: int,
    ) -> None:
        self._handlers = handlers
        self._cell = cell
        self._spawner = spawner
        self._slots = slots
        self._inbox_bytes = inbox_bytes
        self._open: dict[int, _Open] = {}
        self._queue: deque[_Open] = deque()
        self._ready: list[Settled] = []
        self._ready_bytes = 0
        self._argument_bytes = 0
        self._in_flight = 0
        self._sleeping = 0
        self._tasks = 0
        self._changed: anyio.Event | None = None
        self.refusals: dict[int, Refused] = {}
        self.dispatched = False
        self.refused_at_once = False

    @property
    def has_answers(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._ready)

    @property
    def outstanding(self) -> bool:
        """Whether any request is without an answer, or an answer not taken."""
        return bool(self._open or self._ready)

    @property
    def yielding(self) -> bool:
        """Whether the program asked to be parked."""
        return any(isinstance(item.handler, Yielding) for item in self._open.values())

    @property
    def only_queued(self) -> bool:
        """Whether all it waits for stands in queues of their own: children, not tool calls."""
        waits = [i for i in self._open.values() if not isinstance(i.handler, Yielding)]
        return bool(waits) and all(isinstance(item.handler, Queueing) for item in waits)

    def pending(self) -> tuple[dict[str, str], ...]:
        """Return unsettled requests other than yields as `{id, method}` (BEHAVIOURS 138)."""
        return tuple(
            {"id": _location(item.request), "method": item.request.method}
            for _, item in sorted(self._open.items())
            if not isinstance(item.handler, Yielding)
        )

    async def submit(self, requests: Sequence[Request]) -> None:
        """Take the requests of one step, a flood of them in slices.

        Raises:
            CellError: `invalid_input`: they overflow the queue; none of them was sent.
        """
        if not requests:
            return
        self._admit(requests)
        pace = Pace()
        for request in requests:
            if pace.due:
                self._fill_slots()
                await pace.step()
            opened = self._prepared(request)
            if opened is None:
                continue
            self._open[request.id] = opened
            self._argument_bytes += opened.size
            self._dispatch(opened)
        self._fill_slots()

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Give up requests whose answer the program no longer wants."""
        for number in numbers:
            item = self._closed(number)
            if item is not None:
                self._drop(item)

    def resume_yields(self) -> None:
        """Answer every yield: the cell is resumed."""
        for item in list(self._open.values()):
            if isinstance(item.handler, Yielding):
                self._settle(
                    item, Answer(item.request.id, dumps(item.handler.answer(item.arguments)))
                )

    def take(self) -> list[Settled]:
        """Return the answers that came in, in the order in which they really came in."""
        taken, self._ready = self._ready, []
        self._ready_bytes = 0
        return taken

    async def changed(self) -> None:
        """Wait until there is an answer to take."""
        while not self._ready:
            self._changed = anyio.Event()
            await self._changed.wait()

    async def aclose(self) -> None:
        """Abort what is running, once each, and wait a bounded time for it to end."""
        for item in list(self._open.values()):
            self._drop(item)
        self._open.clear()
        self._argument_bytes = 0
        self._queue.clear()
        if self._tasks:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSING_SECONDS):
                while self._tasks:
                    self._changed = anyio.Event()
                    await self._changed.wait()

    def _dispatch(self, opened: _Open) -> None:
        match opened.handler:
            case Answering() as handler:
                self._answer_now(opened, handler)
            case Calling(check=check):
                if not self._refused(opened, check):
                    self.dispatched = True
                    self._queue.append(opened)
            case Queueing(enter):
                self._enter(opened, enter)
            case Sleeping(seconds):
                self._sleep(opened, seconds(opened.arguments))
            case Yielding():
                pass

    def _admit(self, requests: Sequence[Request]) -> None:
        ordinary = sum(1 for r in requests if isinstance(self._handlers.get(r.method), Calling))
        free = self._slots - self._in_flight + QUEUE_SLOTS - len(self._queue)
        if ordinary > free:
            message = (
                f"code mode bridge queue limit exceeded ({QUEUE_SLOTS} ordinary requests queued; "
                f"{self._slots} in-flight slots). Nothing of this burst was sent; start fewer "
                "calls at once."
            )
            raise CellError(message, code="invalid_input", phase="bridge")

    def _prepared(self, request: Request) -> _Open | None:
        handler = self._handlers.get(request.method)
        if handler is None:
            self._refuse_early(request, f"Unknown bridge request: {request.method[:64]}.")
            return None
        size = utf8_length(request.args)
        if size > MAX_ARGUMENT_BYTES:
            text = f"the arguments have {size} bytes; at most {MAX_ARGUMENT_BYTES} are taken."
            self._refuse_early(request, text)
            return None
        if size + self._argument_bytes > self._inbox_bytes and self._open:
            self._refuse_early(request, ARGUMENTS_FULL.format(limit=self._inbox_bytes))
            return None
        try:
            arguments = loads(request.args)
        except (ValueError, RecursionError):
            self._refuse_early(request, "the arguments are nested too deeply for JSON.")
            return None
        return _Open(request, handler, arguments, size)

    def _refuse_early(self, request: Request, message: str) -> None:
        self._ready.append(
            self._refusal(request, CallError(message, code="invalid_input", effect="none"))
        )

    def _refused(self, item: _Open, check: Callable[[list[Any], CellContext], None]) -> bool:
        """Settle a request that must not be queued; return whether it was one."""
        try:
            check(item.arguments, self._cell)
        except CallError as error:
            self._settle(item, self._refusal(item.request, error))
            self.refused_at_once = True
            return True
        return False

    def _enter(
        self, item: _Open, enter: Callable[[list[Any], CellContext, str, Settle], GiveUp]
    ) -> None:
        def settle(answer: Callable[[], str]) -> None:
            if not item.dropped:
                self._answered(item, answer)

        try:
            item.give_up = enter(item.arguments, self._cell, _location(item.request), settle)
        except CallError as error:
            self._settle(item, self._refusal(item.request, error))
            self.refused_at_once = True
            return
        self.dispatched = True

    def _answer_now(self, item: _Open, handler: Answering) -> None:
        self._answered(item, lambda: dumps(handler.answer(item.arguments, self._cell)))

    def _answered(self, item: _Open, answer: Callable[[], str]) -> None:
        try:
            self._reply(item, answer())
        except CallError as error:
            self._settle(item, self._refusal(item.request, error))
        except Exception as fault:  # noqa: BLE001 - the border of the bridge, told to the operator
            self._settle(item, self._refusal(item.request, CallError(HOST_FAULT)))
            self._spawner.start_soon(_tell, fault, name=f"bridge:{item.request.method}")

    def _sleep(self, item: _Open, seconds: float) -> None:
        if seconds <= 0:
            self._settle(item, Answer(item.request.id, "null"))
        elif self._sleeping >= MAX_SLEEPS:
            error = CallError(
                f"more than {MAX_SLEEPS} timers are open.", code="invalid_input", effect="none"
            )
            self._settle(item, self._refusal(item.request, error))
        else:
            self._sleeping += 1
            self._start(self._run_sleep, item, seconds)

    def _fill_slots(self) -> None:
        while self._queue and self._in_flight < self._slots:
            item = self._queue.popleft()
            if not item.dropped:
                self._in_flight += 1
                self._start(self._run_call, item)

    def _start(self, function: Any, item: _Open, *rest: Any) -> None:
        self._tasks += 1
        self._spawner.start_soon(function, item, *rest, name=f"bridge:{item.request.method}")

    async def _run_sleep(self, item: _Open, seconds: float) -> None:
        try:
            with anyio.CancelScope() as item.scope:
                if not item.dropped:
                    await anyio.sleep(seconds)
                    self._settle(item, Answer(item.request.id, "null"))
        finally:
            self._sleeping -= 1
            self._task_over(item)

    async def _run_call(self, item: _Open) -> None:
        try:
            with anyio.CancelScope() as item.scope:
                if not item.dropped and isinstance(item.handler, Calling):
                    run = item.handler.run
                    await self._settled_by(item, lambda: run(item.arguments, self._cell))
        finally:
            self._in_flight -= 1
            self._task_over(item)
            self._fill_slots()

    async def _settled_by(self, item: _Open, answer: Callable[[], Awaitable[str]]) -> None:
        try:
            text = await answer()
        except CallError as error:
            self._settle(item, self._refusal(item.request, error))
        except Exception:
            # The border of the bridge: the guest gets plain data, the spawner reports the fault.
            fault = CallError(HOST_FAULT, code="tool_error")
            self._settle(item, self._refusal(item.request, fault))
            raise
        else:
            self._reply(item, text)

    def _task_over(self, item: _Open) -> None:
        self._tasks -= 1
        if item.request.id in self._open:
            stopped = CallError("the call was aborted.", code="aborted")
            self._settle(item, self._refusal(item.request, stopped))
        self._wake()

    def _reply(self, item: _Open, text: str) -> None:
        size = utf8_length(text)
        if size + self._ready_bytes > self._inbox_bytes:
            full = CallError(INBOX_FULL, code="invalid_input", effect="unknown")
            self._settle(item, self._refusal(item.request, full))
            return
        self._ready_bytes += size
        self._settle(item, Answer(item.request.id, text))

    def _settle(self, item: _Open, settled: Settled) -> None:
        if self._closed(item.request.id) is None:
            return
        self._ready.append(settled)
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _refusal(self, request: Request, error: CallError) -> Refusal:
        self.refusals[request.id] = Refused(error.code, error.untrusted)
        return Refusal(request.id, dumps(self._error_data(request, error)))

    def _error_data(self, request: Request, error: CallError) -> dict[str, Json]:
        return {
            "message": self._cell.view.with_guest_names(error.message),
            "code": error.code,
            "effectStatus": error.effect,
            "location": _location(request),
        }

    def _closed(self, number: int) -> _Open | None:
        item = self._open.pop(number, None)
        if item is not None:
            self._argument_bytes -= item.size
        return item

    def _drop(self, item: _Open) -> None:
        item.dropped = True
        if item.scope is not None:
            item.scope.cancel()
        if item.give_up is not None:
            item.give_up()


async def _tell(fault: Exception) -> None:
    """Raise `fault` in a task of its own: the spawner contains and reports it."""
    raise fault


def _location(request: Request) -> str:
    return f"bridge:{request.method}:{request.id}"
