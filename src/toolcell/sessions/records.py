"""Owns the stored form of an event: one flat record, bounded, always valid JSON and UTF-8.

Above: the stores, the projections. Below: `protocol.events`. Refuses to know: SQLite.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from toolcell.base.jsontext import dumps, loads
from toolcell.errors import SessionError
from toolcell.protocol.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CallEnded,
    CallStarted,
    CallUpdated,
    CatalogUsed,
    CellEnded,
    CellParked,
    CellStarted,
    CellStepped,
    ChildChanged,
    Compacted,
    ContentKept,
    Diagnostic,
    Event,
    MessageAdded,
    ModelCalled,
    RunEnded,
    RunStarted,
    SwarmNote,
)
from toolcell.protocol.messages import ImagePart, Message, Reasoning, ToolCall, Usage
from toolcell.sessions.bounds import bounded

EVENT_NAMES: Final[Mapping[type, str]] = {
    RunStarted: "run_started",
    RunEnded: "run_ended",
    MessageAdded: "message",
    ModelCalled: "model_called",
    Compacted: "compacted",
    CallStarted: "call_started",
    CallUpdated: "call_updated",
    CallEnded: "call_ended",
    ApprovalRequested: "approval_requested",
    ApprovalAnswered: "approval_answered",
    CellStarted: "cell_started",
    CellParked: "cell_parked",
    CellEnded: "cell_ended",
    CellStepped: "cell_stepped",
    ContentKept: "content_kept",
    CatalogUsed: "catalog_used",
    ChildChanged: "child_changed",
    SwarmNote: "swarm_note",
    Diagnostic: "diagnostic",
}
"""What each kind of event is called in the database. Names are never reused."""

_OWN_COLUMNS = frozenset({"scope", "at", "call_id", "parent_id"})
_IN_BODY: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple(
        item.name
        for item in fields(kind)
        if item.name not in _OWN_COLUMNS and (kind is not ContentKept or item.name != "text")
    )
    for kind in EVENT_NAMES
}
"""The fields of each kind of event that have no column of their own."""

_PER_ITEM = frozenset({"answers", "requests", "output"})
"""Fields of which each item has the bound of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored event.

    Attributes:
        seq: Its place in the store; 0 until it is stored.
        type: A name of `EVENT_NAMES`.
        at: Unix seconds.
        body: JSON object text of the fields that have no column of their own.
        session_id: Its session; None for a diagnostic of the process.
        run_id: Its run.
        call_id: The call it is about.
        parent_id: The `exec` call whose cell made that call.
        content: The text of a `content_kept` record, which is stored once for its key.
    """

    type: str
    at: float
    body: str
    session_id: str | None = None
    session_key: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    call_id: str | None = None
    parent_id: str | None = None
    seq: int = 0
    content: str | None = None

    def data(self) -> dict[str, Any]:
        """Return the body as plain JSON data, for people: images are described (`to_message`).

        Of a record that something else changed in the file, `damaged` says so.
        """
        try:
            value = self.stored()
            if self.type == "message" and (images := _checked(self, value.get("message")).images):
                value["message"]["images"] = [image.to_dict() for image in images]
        except SessionError as error:
            return {"damaged": error.message}
        return value

    def damage(self, why: object) -> SessionError:
        """Return the error of a record that cannot be what was written."""
        message = (
            f"record {self.seq} ({self.type}) of session {self.session_id!r} is damaged: {why}; "
            "the session can be shown and deleted, and others are not touched"
        )
        return SessionError(message)

    def stored(self) -> dict[str, Any]:
        """Return the body as it is stored.

        Raises:
            SessionError: the record is damaged.
        """
        try:
            value = loads(self.body)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.damage(error) from error
        if not isinstance(value, dict):
            raise self.damage("its body is no object")
        return value


def to_record(event: Event, limit: int, seq: int = 0) -> Record:
    """Return the record of `event`; each value in it is cut at about `limit` bytes.

    Messages and summaries are kept whole: they are what the next model call is made of. Never
    raises: an event that has no JSON form becomes a diagnostic that says so.
    """
    try:
        return _record(event, limit, seq)
    except (TypeError, ValueError, AttributeError, RecursionError, RuntimeError) as error:
        lost = f"a {type(event).__name__} event could not be recorded: {error}"
        problem = Diagnostic(
            at=event.at, level="error", subject="sessions", message=lost, scope=event.scope
        )
        return _record(problem, limit, seq)


def _record(event: Event, limit: int, seq: int) -> Record:
    body: dict[str, Any] = {}
    for name in _IN_BODY[type(event)]:
        value = getattr(event, name)
        if type(value) is str and len(value) <= limit // 4:
            body[name] = value  # most fields are: no need to look further
        elif value is not None:
            body[name] = _held(event, name, value, limit)
    scope = event.scope
    return Record(
        type=EVENT_NAMES[type(event)],
        at=event.at,
        body=_text(body),
        session_id=_clean(scope.session_id) if scope else None,
        session_key=_clean(scope.session_key) if scope else None,
        agent_id=_clean(scope.agent_id) if scope else None,
        run_id=_clean(scope.run_id) if scope else None,
        call_id=_clean(getattr(event, "call_id", None)),
        parent_id=_clean(getattr(event, "parent_id", None)),
        content=_clean(event.text) if isinstance(event, ContentKept) else None,
        seq=seq,
    )


def _held(event: Event, name: str, value: Any, limit: int) -> Any:
    if isinstance(value, (Message, Usage)):
        return _plain(value)
    if isinstance(event, Compacted):
        # The next run begins with it, as it does with messages.
        return list(value) if isinstance(value, tuple) else value
    if isinstance(event, CellStepped) and name in _PER_ITEM:
        return [_item(each, limit) for each in value]
    return bounded(value, limit)


def _item(value: Mapping[str, Any], limit: int) -> Any:
    """Return one of the many small things of a step; a program may emit a hundred thousand."""
    if type(value) is dict and all(
        type(part) is int or (type(part) is str and len(part) <= limit // 8)
        for part in value.values()
    ):
        return value
    return bounded(value, limit)


def to_message(record: Record) -> Message:
    """Return the message of a `message` record.

    Raises:
        SessionError: the record is damaged.
    """
    return _checked(record, record.stored().get("message"))


def _checked(record: Record, data: Any) -> Message:
    if not isinstance(data, dict):
        raise record.damage("it holds no message")
    try:
        return _message(data)
    except (KeyError, TypeError, AttributeError) as error:
        why = f"its message has another form ({error!r})"
        raise record.damage(why) from error


def _message(data: Mapping[str, Any]) -> Message:
    calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in data.get("toolCalls", ()))
    kept = data.get("reasoning")
    return Message(
        role=data["role"],
        text=data.get("text", ""),
        tool_calls=calls,
        tool_call_id=data.get("toolCallId"),
        is_error=data.get("isError", False),
        reasoning=Reasoning(kept["api"], tuple(kept["items"])) if kept else None,
        images=_images(data),
    )


def _images(message: Mapping[str, Any]) -> tuple[ImagePart, ...]:
    given = message.get("images", ())
    return tuple(ImagePart(each["data"], each["mimeType"], each.get("at")) for each in given)


def _plain(value: Message | Usage) -> dict[str, Any]:
    if isinstance(value, Usage):
        cache = {"cached": value.cached_tokens, "written": value.written_tokens}
        return value.to_dict() | {name: count for name, count in cache.items() if count}
    out: dict[str, Any] = {"role": value.role, "text": value.text}
    if value.tool_calls:
        out["toolCalls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in value.tool_calls
        ]
    if value.tool_call_id is not None:
        out["toolCallId"] = value.tool_call_id
    if value.is_error:
        out["isError"] = True
    if value.reasoning is not None:
        kept = [dict(item) for item in value.reasoning.items]
        out["reasoning"] = {"api": value.reasoning.api, "items": kept}
    if value.images:
        out["images"] = [_image(image) for image in value.images]
    return out


def _image(image: ImagePart) -> dict[str, Any]:
    out: dict[str, Any] = {"mimeType": image.mime_type, "data": image.data}
    return out if image.at is None else out | {"at": image.at}


def _text(body: Mapping[str, Any]) -> str:
    text = dumps(body)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # SQLite text is UTF-8 and cannot hold the lone surrogates of JavaScript; escapes can.
        return json.dumps(body, separators=(",", ":"))
    return text


def _clean(text: str | None) -> str | None:
    """Identifiers may be a model's own words; a column holds valid UTF-8 only."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
