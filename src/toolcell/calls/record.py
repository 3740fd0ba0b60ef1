"""Owns `CallRecord`: one start and one end for each admitted call, whatever happens (rule 8.3).

Above: the gate. Below: `protocol.events`, `redaction`. Refuses to know: why a call ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, Literal

from toolcell.base.clock import Clock
from toolcell.base.images import decoded_bytes
from toolcell.base.jsontext import dumps, loads, utf8_length
from toolcell.calls.invocation import Invocation
from toolcell.calls.redaction import Redactor
from toolcell.protocol.events import CallEnded, CallStarted, CallUpdated, Diagnostic, Event
from toolcell.protocol.sink import Sink, diagnostics_only
from toolcell.tools.content import MISSING, Content, ImageContent, ToolResult

Status = Literal["completed", "failed", "blocked", "aborted"]

MAX_UPDATE_BYTES: Final = 65_536
MAX_UPDATE_START: Final = 8_192
MAX_OMITTED_NOTE: Final = 200
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


class Recorder:
    """Where facts go: the sink, the clock that stamps them, the redactor that masks them.

    Attributes:
        quiet: Whether starts, reports and ends of calls are told to nobody, and so are not made.
    """

    __slots__ = ("clock", "quiet", "redactor", "sink")

    def __init__(self, sink: Sink, clock: Clock, redactor: Redactor) -> None:
        self.sink = sink
        self.clock = clock
        self.redactor = redactor
        self.quiet = diagnostics_only(sink)

    def emit(self, event: Event) -> None:
        """Hand an event, already masked, to the sink."""
        self.sink.emit(event)

    def warn(self, invocation: Invocation, message: str) -> None:
        """Tell the operator about something that the caller is not told in full."""
        self.emit(
            Diagnostic(
                at=self.clock.wall(),
                level="error",
                subject=invocation.subject,
                message=self.redactor.text(message),
                scope=invocation.scope,
            )
        )


class CallRecord:
    """The record of one call. Ending it again changes nothing.

    Args:
        invocation: The call.
        number: Its number in dispatch order within the run, from 1.
        recorder: Where facts go.
    """

    __slots__ = ("_began", "_ended", "_invocation", "_number", "_recorder", "_t0")

    def __init__(self, invocation: Invocation, number: int, recorder: Recorder) -> None:
        self._invocation = invocation
        self._number = number
        self._recorder = recorder
        self._began = False
        self._ended = False
        self._t0 = recorder.clock.monotonic()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the call was admitted, waiting for a person or a slot included."""
        return (self._recorder.clock.monotonic() - self._t0) * 1000.0

    def begin(self, arguments: Any) -> None:
        """Record the start, with a copy of the arguments that the tool cannot reach."""
        if self._began:
            return
        self._began = True
        invocation, recorder = self._invocation, self._recorder
        if recorder.quiet:
            return
        recorder.emit(
            CallStarted(
                scope=invocation.scope,
                at=recorder.clock.wall(),
                call_id=invocation.call_id,
                parent_id=invocation.parent_id,
                tool_id=invocation.sourced.id,
                tool_name=invocation.sourced.tool.name,
                source=invocation.sourced.source,
                arguments=recorder.redactor.value(detached(arguments)),
                started=self._number,
            )
        )

    def reporter(self) -> Callable[[Any], None]:
        """Return what a tool reports progress with; it may be called from any thread.

        It never raises: what is not JSON, or over 64 KiB, is replaced by a note. Once the call is
        over it does nothing.
        """
        loop, home = asyncio.get_running_loop(), threading.get_ident()

        def report(value: Any) -> None:
            if self._ended:
                return
            text = _update_text(value)
            if threading.get_ident() == home:
                self._updated(text)
            else:
                loop.call_soon_threadsafe(self._updated, text)

        return report

    def _updated(self, text: str) -> None:
        if self._ended:
            return
        invocation, recorder = self._invocation, self._recorder
        if not recorder.quiet:
            recorder.emit(
                CallUpdated(
                    scope=invocation.scope,
                    at=recorder.clock.wall(),
                    call_id=invocation.call_id,
                    parent_id=invocation.parent_id,
                    update=recorder.redactor.value(loads(text)),
                )
            )
        if invocation.on_update is not None:
            invocation.on_update(loads(text))

    def end(
        self,
        status: Status,
        *,
        result: ToolResult | None = None,
        error: str | None = None,
        code: str | None = None,
    ) -> None:
        """Record the end, with a copy of the result that the caller cannot reach."""
        if self._ended:
            return
        self._ended = True
        invocation, recorder = self._invocation, self._recorder
        if recorder.quiet:
            return
        redactor = recorder.redactor
        recorder.emit(
            CallEnded(
                scope=invocation.scope,
                at=recorder.clock.wall(),
                call_id=invocation.call_id,
                parent_id=invocation.parent_id,
                tool_id=invocation.sourced.id,
                tool_name=invocation.sourced.tool.name,
                status=status,
                duration_ms=self.elapsed_ms,
                result=None if result is None else redactor.value(_shown(result)),
                error=None if error is None else redactor.text(error),
                code=code,
            )
        )


def _shown(result: ToolResult) -> Any:
    """Return the caller's view as JSON of its own: `details`, or the whole result without any.

    Images are described: a record of calls is read, and its values are cut.
    """
    if result.details is MISSING:
        return {**result.to_dict(), "content": [_without_image(b) for b in result.content]}
    return detached(result.details)


def _without_image(block: Content) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        size = decoded_bytes(block.data)
        return {"type": "image", "mimeType": block.mime_type, "bytes": size}
    return block.to_dict()


def _update_text(value: Any) -> str:
    """Return JSON text of a progress report, or of a note in its place.

    A report is a courtesy: one that is too large or no JSON must never fail the work it is about.
    """
    try:
        text = dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        return dumps({"omitted": f"not JSON: {error}"[:MAX_OMITTED_NOTE]})
    if utf8_length(text) > MAX_UPDATE_BYTES:
        return dumps({"omitted": f"{utf8_length(text)} bytes", "start": text[:MAX_UPDATE_START]})
    return text


def detached(value: Any) -> Any:
    """Return a copy of plain JSON, for someone who might change it or keep it."""
    try:
        return _copied(value)
    except RecursionError:
        return loads(dumps(value))


def _copied(value: Any) -> Any:
    # A leaf costs no call: a list of a million numbers is copied in tens of milliseconds.
    if isinstance(value, dict):
        return {
            key: item if item.__class__ in _LEAVES else _copied(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [item if item.__class__ in _LEAVES else _copied(item) for item in value]
    return value
