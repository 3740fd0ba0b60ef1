"""Owns `tool_search_code`: one body, its bridge to the catalog, and what comes of it (rule 10.2).

BEHAVIOURS 337 to 346. Above: the runtime. Below: `child`, `selection`, `rendering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcell.base.clock import Clock
from toolcell.base.deadline import Deadline
from toolcell.errors import CallError, RuntimeUnavailableError
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import ToolContext
from toolcell.toolsearch.child.launch import Launcher
from toolcell.toolsearch.child.process import BodyEnd, run_body
from toolcell.toolsearch.rendering import data_result, envelope
from toolcell.toolsearch.repair import SELECTORS
from toolcell.toolsearch.selection import Selection, bad_input

NO_CODE: Final = "code must be a non-empty string."
TIMED_OUT: Final = "tool_search_code timed out"
STUCK: Final = (
    "tool_search_code never ends: it awaits a promise that nothing settles. There are no timers; "
    "await openclaw.tools.search, describe or call, or return a value."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSeat:
    """What every body of a run works with."""

    selection: Selection
    launcher: Launcher
    clock: Clock
    timeout_ms: int


@dataclass(slots=True, kw_only=True)
class _Bridge:
    """Answers one body's requests.

    Attributes:
        untrusted: Whether anything from the network reached the body.
        terminate: Whether a tool it called said that the turn is over.
    """

    seat: CodeSeat
    context: ToolContext
    budget: Deadline
    untrusted: bool = field(default=False)
    terminate: bool = field(default=False)

    async def answer(self, method: str, args: list[Any]) -> Any:
        """Answer one request; raises CallError."""
        first = args[0] if args else None
        second = args[1] if len(args) > 1 else None
        match method:
            case "search":
                return self._search(first, second)
            case "describe":
                return self._describe(first)
            case _:
                return await self._call(first, second)

    def _search(self, query: Any, options: Any) -> Any:
        if options is not None and not isinstance(options, Mapping):
            msg = "search takes (query, {limit})."
            raise bad_input(msg)
        limit = options.get("limit") if isinstance(options, Mapping) else None
        catalog = self.seat.selection.catalog
        hits = [hit.entry for hit in catalog.search(query, limit=limit)]
        self.untrusted = self.untrusted or any(not entry.sourced.trusted for entry in hits)
        return [entry.compact() for entry in hits]

    def _describe(self, wanted: Any) -> Any:
        selection = self.seat.selection
        entry = selection.require(_id_of(wanted))
        self.untrusted = self.untrusted or not entry.sourced.trusted
        return selection.catalog.describe(entry)

    async def _call(self, wanted: Any, arguments: Any) -> Any:
        selection = self.seat.selection
        entry = selection.require(_id_of(wanted))
        try:
            result = await selection.catalog.call(
                entry,
                {} if arguments is None else arguments,
                parent_id=self.context.call_id,
                budget=self.budget,
                on_update=self.context.update,
            )
        except CallError as error:
            self.untrusted = self.untrusted or error.untrusted
            raise
        self.untrusted = self.untrusted or result.untrusted
        self.terminate = self.terminate or result.terminate
        return envelope(entry, result)


async def run_code(
    seat: CodeSeat,
    given: Mapping[str, Any],
    context: ToolContext,
    telemetry: Any,
) -> ToolResult:
    """Run one body; what it did wrong is in the result, with its log.

    Args:
        seat: What it works with.
        given: The arguments of the control.
        context: The control's call.
        telemetry: Called at the end for the counts.

    Raises:
        CallError: `invalid_input`: there is no code; `unavailable`: no child can be started.
    """
    code = given.get("code")
    if not isinstance(code, str) or not code.strip():
        raise bad_input(NO_CODE)
    async with seat.launcher.turns:
        budget = Deadline(seat.timeout_ms / 1000, clock=seat.clock)
        bridge = _Bridge(seat=seat, context=context, budget=budget)
        try:
            with seat.selection.catalog.numbered(context.call_id):
                end = await run_body(seat.launcher, code, bridge.answer, budget)
        except RuntimeUnavailableError as error:
            raise CallError(error.message, code="unavailable", effect="none") from error
    return data_result(
        _outcome(end) | {"logs": end.logs, "telemetry": telemetry()},
        untrusted=bridge.untrusted,
        is_error=end.kind != "done",
        terminate=end.kind == "done" and bridge.terminate,
    )


def _outcome(end: BodyEnd) -> dict[str, Any]:
    match end.kind:
        case "done":
            return {"ok": True, "value": end.value}
        case "timeout":
            return {"ok": False, "error": TIMED_OUT}
        case "stuck":
            return {"ok": False, "error": STUCK}
        case _:
            return {"ok": False, "error": end.error}


def _id_of(wanted: Any) -> Any:
    """Take a hit in place of its id, as models write `call(hit, …)`."""
    if isinstance(wanted, Mapping):
        return next((wanted[key] for key in SELECTORS if key in wanted), None)
    return wanted
