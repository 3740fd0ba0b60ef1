"""Owns `Passage`: where one call stands on its way through the gate, and its body being run.

Above: the gate. Below: `record`, `failures`, `results`. Refuses to know: hooks, approvals, turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from toolcell.base.jsontext import dumps, loads
from toolcell.calls.cancellation import asked_to_stop
from toolcell.calls.failures import tool_failure
from toolcell.calls.hooks import hook_view
from toolcell.calls.invocation import Invocation
from toolcell.calls.pace import Pace
from toolcell.calls.record import CallRecord, Status
from toolcell.calls.results import accepted
from toolcell.errors import CallError
from toolcell.protocol.hooks import AfterToolCall, BeforeToolCall
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import ToolContext


class Passage:
    """One call on its way.

    Attributes:
        invocation: The call.
        record: Its start and end.
        arguments: Data of the call's own: what the caller gave, then what the hooks left.
        view: What the last `before` hook was shown, when there are hooks.
        ran: Whether the body was started.
        after_seen: Whether the `after` hooks have been shown the outcome.
    """

    __slots__ = ("after_seen", "arguments", "invocation", "pace", "ran", "record", "view")

    def __init__(self, invocation: Invocation, record: CallRecord) -> None:
        self.invocation = invocation
        self.record = record
        self.arguments: Any = None
        self.view: BeforeToolCall | None = None
        self.ran = False
        self.after_seen = False
        self.pace = Pace()

    def take_arguments(self) -> None:
        """Copy the caller's arguments.

        Raises:
            CallError: `invalid_input`: they are not JSON.
        """
        given = self.invocation.arguments
        try:
            self.arguments = loads(dumps(dict(given) if isinstance(given, Mapping) else given))
        except (TypeError, ValueError, RecursionError) as error:
            subject = self.invocation.subject
            msg = f'Invalid arguments for tool "{subject}": they are not JSON: {error}.'
            raise CallError(msg, code="invalid_input", effect="none") from error

    def begin(self) -> None:
        """Record the start."""
        self.record.begin(self.arguments)

    def authorise(self) -> None:
        """Ask the caller's authority again (rule 8.1): it may have ended while the call waited.

        Raises:
            CallError: it has.
        """
        if self.invocation.authority is None:
            return
        try:
            self.invocation.authority()
        except CallError as error:
            if self.ran:
                error.effect = "unknown"
            raise

    async def run_body(self) -> ToolResult:
        """Run the tool's own code and take its result over.

        Raises:
            CallError: it raised, or gave something that is no result.
        """
        invocation = self.invocation
        context = ToolContext(
            scope=invocation.scope,
            call_id=invocation.call_id,
            parent_id=invocation.parent_id,
            deadline=invocation.budget,
            update=self.record.reporter(),
        )
        self.ran = True
        try:
            returned = await invocation.sourced.tool.execute(self.arguments, context)
        except (CallError, KeyboardInterrupt, GeneratorExit):
            raise
        except anyio.get_cancelled_exc_class() as error:
            if asked_to_stop():
                raise
            stray = RuntimeError("the tool was cancelled from within")
            raise tool_failure(stray, invocation, self.arguments) from error
        except BaseException as error:  # a panic of an extension module is no Exception
            await checkpoint_if_cancelled()
            raise tool_failure(error, invocation, self.arguments) from error
        self.pace.restart()
        return accepted(returned, invocation.subject, trusted=invocation.sourced.trusted)

    def outcome(
        self, status: Status, *, details: Any = None, error: str | None = None
    ) -> AfterToolCall:
        """Return what `after` hooks are shown."""
        shown = self.arguments if isinstance(self.arguments, dict) else {}
        return AfterToolCall(
            before=self.view or hook_view(self.invocation, shown),
            status=status,
            details=details,
            error=error,
            duration_ms=self.record.elapsed_ms,
        )
