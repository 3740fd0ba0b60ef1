"""Owns the debug output of rule 12.1: one line each on stderr, through `logging`.

Nothing of it is on unless a debug variable says so. Lines name tools, sizes, times and states; only
`full-redacted` shows content, capped and with secrets masked, and its prompts may still be private.

Above: `app.runtime`. Below: `base.masking`, `config.env`, `surface.enforcement`, the ports of
providers and events.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolcell.base.jsontext import clip_utf8, dumps, utf8_length
from toolcell.base.masking import Masker
from toolcell.config.env import DebugSwitches, debug_switches
from toolcell.errors import PayloadViolationError
from toolcell.protocol.events import (
    CallEnded,
    CallStarted,
    CellEnded,
    CellParked,
    CellStarted,
    Compacted,
    Event,
    ModelCalled,
    RunEnded,
    RunStarted,
)
from toolcell.providers.wire import Exchange
from toolcell.surface.enforcement import tool_labels

LOGGER: Final = "toolcell.debug"
MAX_SNAPSHOT_BYTES: Final = 32 << 10
"""Of a payload that is shown; the rest is counted, not shown."""
MAX_PEEKED: Final = 5
"""Events of a stream that `peek` shows."""

_LONG_CHARS: Final = 200
_MAX_LINE_BYTES: Final = 2000
_CONTENT: Final = frozenset(
    [
        "arguments",
        "content",
        "delta",
        "instructions",
        "partial_json",
        "refusal",
        "signature",
        "text",
        "thinking",
    ]
)
"""Members of stream events that hold words of the model; pieces of a secret, perhaps."""


class DebugLog:
    """Watches wires and events, and logs what the switches ask for."""

    def __init__(self, switches: DebugSwitches, secrets: Iterable[str]) -> None:
        self._on = switches
        self._masker = Masker(secrets)
        self._log = logging.getLogger(LOGGER)
        self._log.setLevel(logging.DEBUG)
        # The variables are set for a person at a terminal: the lines go there whatever the program
        # does with its own logs, and not into those.
        self._log.propagate = False
        if not any(isinstance(handler, _Stderr) for handler in self._log.handlers):
            self._log.addHandler(_Stderr())

    def sent(self, exchange: Exchange, body: Mapping[str, Any]) -> None:
        """A request leaves."""
        names = ",".join(label or "(unnamed)" for label in tool_labels(body)) or "none"
        if self._on.transport:
            size, attempt = exchange.sent_bytes, exchange.attempt
            self._line("model.transport", exchange, f"sent={size}B attempt={attempt} tools={names}")
        if self._on.payload == "tools":
            self._line("model.payload", exchange, f"tools={names}")
        elif self._on.payload == "full-redacted":
            self._line("model.payload", exchange, self._snapshot(body), MAX_SNAPSHOT_BYTES + 100)

    def refused(self, exchange: Exchange, error: PayloadViolationError) -> None:
        """A request was not allowed to leave."""
        if self._on.any:
            dropped = ",".join(error.tools) or "none"
            self._line("model.payload", exchange, f"refused, not sent: {dropped}; {error.message}")

    def answered(self, exchange: Exchange, status: int, milliseconds: float) -> None:
        """An answer begins."""
        if self._on.transport:
            attempt = exchange.attempt
            what = f"status={status} after={milliseconds:.0f}ms attempt={attempt}"
            self._line("model.transport", exchange, what)

    def event(self, exchange: Exchange, number: int, event: object) -> None:
        """An event of a stream came."""
        if self._on.sse == "events":
            kind = event.get("type") if isinstance(event, Mapping) else None
            self._line("model.sse", exchange, f"event={number} type={kind or 'chunk'}")
        elif self._on.sse == "peek" and number <= MAX_PEEKED:
            shown = dumps(self._masker.value(_without_words(event)))
            self._line("model.sse", exchange, f"event={number} {shown}")

    def emit(self, event: Event) -> None:
        """Take an event of a run."""
        if not self._on.code_mode:
            return
        told = _told(event)
        if told is not None:
            self._write(f"code-mode run={event.scope.run_id if event.scope else '-'} {told}")

    def _snapshot(self, body: Mapping[str, Any]) -> str:
        # Masked before it is cut: half a secret is not found any more.
        text = dumps(self._masker.value(_without_images(body)))
        size = utf8_length(text)
        if size <= MAX_SNAPSHOT_BYTES:
            return text
        return f"{clip_utf8(text, MAX_SNAPSHOT_BYTES)} [cut: {MAX_SNAPSHOT_BYTES} of {size} bytes]"

    def _line(
        self, subject: str, exchange: Exchange, what: str, limit: int = _MAX_LINE_BYTES
    ) -> None:
        self._write(f"{subject} {exchange.provider_id}/{exchange.model} {what}", limit)

    def _write(self, text: str, limit: int = _MAX_LINE_BYTES) -> None:
        masked = self._masker.text(text)
        line = "".join(char if char.isprintable() else " " for char in masked)
        self._log.debug("%s", clip_utf8(line, limit))


def debug_log(secrets: Iterable[str]) -> tuple[DebugLog, ...]:
    """Return the log the environment asks for: one, or none.

    Raises:
        ConfigError: a debug variable has a value that means nothing.
    """
    switches = debug_switches()
    return (DebugLog(switches, secrets),) if switches.any else ()


def _told(event: Event) -> str | None:
    """Return what is said of an event; never arguments, results or code."""
    told: str | None
    match event:
        case RunStarted():
            told = f"started agent={event.scope.agent_id} model={event.model or '-'}"
        case RunEnded():
            told = f"ended status={event.status}"
        case ModelCalled():
            names = ",".join(event.tool_names) or "none"
            told = f"model={event.model} tools={names} request={event.request_bytes}B"
        case Compacted():
            tokens = f"{event.tokens_before}->{event.tokens_after}"
            told = f"compacted trigger={event.trigger} messages={event.messages} tokens={tokens}"
        case CellStarted():
            size = utf8_length(event.code)
            told = f"cell={event.cell_id} started executor={event.executor} code={size}B"
        case CellParked():
            told = f"cell={event.cell_id} parked reason={event.reason} bytes={event.bytes_at_rest}"
        case CellEnded():
            told = f"cell={event.cell_id} ended status={event.status} code={event.code or '-'}"
        case CallStarted():
            parent = event.parent_id or "-"
            told = f"call={event.call_id} started parent={parent} tool={event.tool_id}"
        case CallEnded():
            took = f"{event.duration_ms:.0f}ms"
            told = f"call={event.call_id} ended status={event.status} after={took}"
        case _:
            told = None
    return told


def _without_words(value: Any, depth: int = 0) -> Any:
    """Return a stream event with the model's words replaced by their length."""
    if depth > 20:
        return "…"
    if isinstance(value, Mapping):
        return {
            str(key): f"<{len(item)} chars>"
            if isinstance(item, str) and key in _CONTENT
            else _without_words(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_words(item, depth + 1) for item in value]
    return value


def _without_images(value: Any, depth: int = 0) -> Any:
    """Return a request with the bytes of its images replaced by their length."""
    if depth > 20:
        return value
    if isinstance(value, str) and len(value) > _LONG_CHARS and value.startswith("data:"):
        head, _, data = value.partition(",")
        return f"{head},<{len(data)} chars>"
    if isinstance(value, Mapping):
        if value.get("type") == "base64" and isinstance(value.get("data"), str):
            return {**value, "data": f"<{len(value['data'])} chars>"}
        return {str(key): _without_images(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_images(item, depth + 1) for item in value]
    return value


class _Stderr(logging.Handler):
    """Writes to whatever `sys.stderr` is at the moment; a spinner may have taken its place."""

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.name}: {record.getMessage()}\n"
        sys.stderr.write(text.encode("utf-8", "backslashreplace").decode())
