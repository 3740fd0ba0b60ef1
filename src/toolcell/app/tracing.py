"""Owns OpenTelemetry spans: of runs, model calls, tool calls and cells, made from events.

Names and attributes follow the GenAI conventions (`invoke_agent`, `chat`, `execute_tool`); what
they have no word for begins with `toolcell.`. No content unless OpenTelemetry's own variable asks
for it.

Above: `app.runtime`. Below: `protocol.events`, the `opentelemetry` API, which is imported only when
the surrounding program has done so: without that nobody collects spans, and nothing is paid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from toolcell.base.jsontext import clip_utf8, dumps, utf8_length
from toolcell.base.masking import Masker
from toolcell.config.env import capture_content
from toolcell.protocol.events import (
    CallEnded,
    CallStarted,
    CellEnded,
    CellParked,
    CellStarted,
    Event,
    ModelCalled,
    RunEnded,
    RunStarted,
)
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Guarded, Sink

MAX_CONTENT_BYTES: Final = 8 << 10
"""Of one attribute that holds content."""

_API: Final = "opentelemetry.trace"


def tracing(secrets: Iterable[str]) -> tuple[Sink, ...]:
    """Return the sink that makes spans; none when no tracer provider is configured."""
    api = sys.modules.get(_API)
    if api is None:
        return ()
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider):
        return ()
    masker = Masker(secrets) if capture_content() else None
    from toolcell.base.version import VERSION  # noqa: PLC0415 - reads a file, when used

    return (Guarded(Tracing(provider.get_tracer("toolcell", VERSION), masker)),)


class Tracing:
    """Turns events into spans.

    A run begins under whatever span is current where it starts; model calls and the model's own
    tool calls stand under the run, a cell under its `exec` call, nested calls under their cell.

    Args:
        tracer: Makes the spans.
        content: Masks arguments, results and code that go into attributes; None leaves them out.
    """

    def __init__(self, tracer: Any, content: Masker | None = None) -> None:
        self._api = import_module(_API)
        self._tracer = tracer
        self._content = content
        self._runs: dict[str, Any] = {}
        self._calls: dict[tuple[str, str], Any] = {}
        self._cells: dict[tuple[str, str], Any] = {}

    def emit(self, event: Event) -> None:
        """Take an event."""
        match event:
            case RunStarted():
                self._run_started(event)
            case RunEnded():
                self._run_ended(event)
            case ModelCalled():
                self._model_called(event)
            case CallStarted():
                self._call_started(event)
            case CallEnded():
                self._call_ended(event)
            case CellStarted():
                self._cell_started(event)
            case CellParked():
                self._cell_parked(event)
            case CellEnded():
                self._cell_ended(event)
            case _:
                pass

    def _run_started(self, event: RunStarted) -> None:
        agent = event.scope.agent_id
        attributes = {"gen_ai.agent.name": agent, "gen_ai.request.model": event.model or ""}
        self._runs[event.scope.run_id] = self._begin(
            f"invoke_agent {agent}", "invoke_agent", event.scope, event.at, attributes
        )

    def _run_ended(self, event: RunEnded) -> None:
        run = event.scope.run_id
        for open_spans in (self._calls, self._cells):
            for key in [key for key in open_spans if key[0] == run]:
                self._end(open_spans.pop(key), event.at, "interrupted")
        span = self._runs.pop(run, None)
        failed = None if event.status == "completed" else event.status
        self._end(span, event.at, failed, event.error)

    def _model_called(self, event: ModelCalled) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.provider.name": event.provider or "unknown",
            "gen_ai.request.model": event.model,
            "gen_ai.usage.input_tokens": event.usage.input_tokens,
            "gen_ai.usage.output_tokens": event.usage.output_tokens,
            "toolcell.request.bytes": event.request_bytes,
            "toolcell.request.tools": list(event.tool_names),
        }
        if event.usage.cost is not None:
            attributes["toolcell.usage.cost_usd"] = event.usage.cost
        if event.purpose is not None:
            attributes["toolcell.request.purpose"] = event.purpose
        span = self._begin(
            f"chat {event.model}",
            "chat",
            event.scope,
            event.at - event.duration_ms / 1000,
            attributes,
            parent=self._runs.get(event.scope.run_id),
            kind=self._api.SpanKind.CLIENT,
        )
        self._end(span, event.at)

    def _call_started(self, event: CallStarted) -> None:
        run = event.scope.run_id
        attributes = {
            "gen_ai.tool.name": event.tool_name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
            "toolcell.tool.id": event.tool_id,
            "toolcell.tool.source": event.source,
            **self._shown("gen_ai.tool.call.arguments", event.arguments),
        }
        parent = self._runs.get(run)
        if event.parent_id is not None:
            outer = (run, event.parent_id)
            parent = self._cells.get(outer) or self._calls.get(outer) or parent
        self._calls[run, event.call_id] = self._begin(
            f"execute_tool {event.tool_name}",
            "execute_tool",
            event.scope,
            event.at,
            attributes,
            parent=parent,
        )

    def _call_ended(self, event: CallEnded) -> None:
        span = self._calls.pop((event.scope.run_id, event.call_id), None)
        if span is not None:
            span.set_attributes(self._shown("gen_ai.tool.call.result", event.result))
        failed = None if event.status == "completed" else event.code or event.status
        self._end(span, event.at, failed, event.error)

    def _cell_started(self, event: CellStarted) -> None:
        key = (event.scope.run_id, event.call_id)
        attributes = {
            "toolcell.cell.id": event.cell_id,
            "toolcell.cell.executor": event.executor,
            "toolcell.cell.code_bytes": utf8_length(event.code),
            **self._shown("toolcell.cell.code", event.code),
        }
        self._cells[key] = self._begin(
            "toolcell.cell",
            "toolcell.cell",
            event.scope,
            event.at,
            attributes,
            parent=self._calls.get(key) or self._runs.get(event.scope.run_id),
        )

    def _cell_parked(self, event: CellParked) -> None:
        span = self._cells.get((event.scope.run_id, event.call_id))
        if span is not None:
            attributes = {"reason": event.reason, "bytes": event.bytes_at_rest}
            span.add_event("toolcell.cell.parked", attributes, _nanoseconds(event.at))

    def _cell_ended(self, event: CellEnded) -> None:
        span = self._cells.pop((event.scope.run_id, event.call_id), None)
        failed = None if event.status == "completed" else event.code or event.status
        self._end(span, event.at, failed, event.error)

    def _begin(
        self,
        name: str,
        operation: str,
        scope: RunScope,
        at: float,
        attributes: dict[str, Any],
        **place: Any,
    ) -> Any:
        """Start a span; `place` is its parent (the current span without one) and its kind."""
        parent = place.get("parent")
        return self._tracer.start_span(
            name,
            context=None if parent is None else self._api.set_span_in_context(parent),
            kind=place.get("kind") or self._api.SpanKind.INTERNAL,
            start_time=_nanoseconds(at),
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.conversation.id": scope.session_id,
                "toolcell.run.id": scope.run_id,
                **attributes,
            },
        )

    def _end(
        self, span: Any, at: float, failed: str | None = None, error: str | None = None
    ) -> None:
        """End a span; what an error says is content, its code is not."""
        if span is None:
            return
        if failed is not None:
            said = None if error is None or self._content is None else self._clip(error)
            span.set_attribute("error.type", failed)
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, said))
        span.end(_nanoseconds(at))

    def _shown(self, name: str, value: Any) -> dict[str, str]:
        if self._content is None or value is None:
            return {}
        if isinstance(value, str):
            return {name: self._clip(value)}
        return {name: self._clip(dumps(self._content.value(value)))}

    def _clip(self, text: str) -> str:
        masked = text if self._content is None else self._content.text(text)
        return clip_utf8(masked, MAX_CONTENT_BYTES)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
