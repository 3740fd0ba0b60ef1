"""Owns what the gateway can be asked: every operation, its body and its answers.

Above: `openapi`; tests hold it to the routes. Below: the request models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

from toolcell.gateway.api_models import (
    ApprovalBody,
    CompactBody,
    InboundBody,
    RunBody,
    SendBody,
    TurnBody,
)
from toolcell.gateway.bodies import SESSION_PATTERN
from toolcell.gateway.chat_request import ChatRequest
from toolcell.gateway.responses_request import ResponsesRequest
from toolcell.sources.core.conversations import LIST_OUTPUT, SEND_OUTPUT, TURN_OUTPUT

TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_WHOLE: Final = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_SESSION: Final = {"type": "string", "pattern": f"^{SESSION_PATTERN}$"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation.

    Attributes:
        method: Its HTTP method.
        path: Its path, with `{parameters}`.
        name: The handler's name, which is the operation's id.
        about: One sentence.
        answers: Status to media type and schema of the answer.
        errors: Statuses of errors, beside those every operation may have.
        body: The model of its body.
        body_needed: Whether it must have one.
        query: Query parameters and their schemas.
        open: Needs no token.
        signed: Needs the signature of a channel instead of the token.
        streams: The answer may be a stream of events instead.
    """

    method: Literal["get", "post", "delete"]
    path: str
    name: str
    about: str
    answers: Mapping[int, tuple[str, Mapping[str, Any]]]
    errors: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    body_needed: bool = True
    query: Mapping[str, Mapping[str, Any]] | None = None
    open: bool = False
    signed: bool = False
    streams: bool = False


def object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _json(schema: Mapping[str, Any], status: int = 200) -> dict[int, tuple[str, Mapping[str, Any]]]:
    return {status: ("application/json", schema)}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_RUN: Final = object_of(
    id=TEXT,
    status={"enum": ["running", "completed", "failed", "cancelled"]},
    agentId=TEXT,
    sessionId=TEXT,
    createdAt=_NUMBER,
)
_COMPACTED: Final = {
    "type": "object",
    "properties": {
        "id": TEXT,
        "compacted": {
            "anyOf": [
                object_of(
                    trigger={"const": "manual"},
                    model=TEXT,
                    messages=_WHOLE,
                    tokensBefore=_WHOLE,
                    tokensAfter=_WHOLE,
                    summary=TEXT,
                ),
                {"type": "null"},
            ]
        },
    },
    "required": ["compacted", "id"],
}
_APPROVAL: Final = object_of(id=TEXT, toolId=TEXT, arguments={"type": "object"}, reason=TEXT)
_TURN_ERRORS: Final = (400, 404, 408, 409, 413, 415, 502)
EVENT: Final = {
    "type": "object",
    "properties": {"id": TEXT, "event": TEXT, "data": TEXT},
    "required": ["data"],
}
_TAKEN: Final = {
    "type": "object",
    "properties": {
        "id": TEXT,
        "status": {"enum": ["started", "replied"]},
        "runId": TEXT,
        "sessionId": TEXT,
        "messageId": TEXT,
        "duplicate": {"type": "boolean"},
    },
    "required": ["id", "status", "duplicate"],
    "additionalProperties": False,
}
_STREAM: Final[tuple[str, Mapping[str, Any]]] = ("text/event-stream", EVENT)
_LIMIT: Final = {"limit": _WHOLE}

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        name="chat_completions",
        about="Answer a conversation, as OpenAI's Chat Completions do; `model` names an agent.",
        body=ChatRequest,
        answers=_json(object_of(id=TEXT, choices=_list({"type": "object"}))),
        errors=_TURN_ERRORS,
        streams=True,
    ),
    Operation(
        method="post",
        path="/v1/responses",
        name="responses",
        about="Answer an input, as OpenAI's Responses do; `model` names an agent.",
        body=ResponsesRequest,
        answers=_json(object_of(id=TEXT, output=_list({"type": "object"}))),
        errors=_TURN_ERRORS,
        streams=True,
    ),
    Operation(
        method="get",
        path="/v1/models",
        name="models",
        about="List the agents.",
        answers=_json(object_of(object={"const": "list"}, data=_list({"type": "object"}))),
    ),
    Operation(
        method="get",
        path="/v1/models/{model}",
        name="model",
        about="Show one agent.",
        answers=_json(object_of(id=TEXT, object={"const": "model"})),
        errors=(404,),
    ),
    Operation(
        method="post",
        path="/api/runs",
        name="start_run",
        about="Start a run in the background.",
        body=RunBody,
        answers=_json(_RUN, 202),
        errors=(400, 404, 408, 409, 413, 415),
    ),
    Operation(
        method="get",
        path="/api/runs",
        name="list_runs",
        about="List runs: those that go on, then the latest that are over.",
        query=_LIMIT,
        answers=_json(object_of(runs=_list(_RUN))),
        errors=(400,),
    ),
    Operation(
        method="get",
        path="/api/runs/{id}",
        name="get_run",
        about="Show a run; `wait` is the seconds to wait for its end.",
        query={"wait": _WHOLE},
        answers=_json(_RUN),
        errors=(400, 404),
    ),
    Operation(
        method="post",
        path="/api/runs/{id}/cancel",
        name="cancel_run",
        about="Cancel a run and wait for its end.",
        answers=_json(_RUN),
        errors=(404, 409),
    ),
    Operation(
        method="get",
        path="/api/events",
        name="events",
        about=(
            "Stream the events of a session or of a run as server-sent events. An event's id is "
            "its number; Last-Event-ID, or `after`, goes on behind it."
        ),
        query={"session": _SESSION, "run": TEXT, "after": _WHOLE},
        answers={200: _STREAM},
        errors=(400, 404),
    ),
    Operation(
        method="get",
        path="/api/sessions",
        name="list_sessions",
        about="List sessions, the last used first.",
        query=_LIMIT,
        answers=_json(object_of(sessions=_list({"type": "object"}))),
        errors=(400,),
    ),
    Operation(
        method="get",
        path="/api/sessions/{id}",
        name="get_session",
        about="Show a session: its transcript, and nested calls under their parents.",
        answers=_json(
            object_of(
                session={"type": "object"},
                transcript=_list({"type": "object"}),
                calls=_list({"type": "object"}),
            )
        ),
        errors=(400, 404),
    ),
    Operation(
        method="delete",
        path="/api/sessions/{id}",
        name="delete_session",
        about="Forget a session with its children; not while a run goes on in it.",
        answers=_json(object_of(id=TEXT, deleted=_list(TEXT))),
        errors=(400, 404, 409),
    ),
    Operation(
        method="post",
        path="/api/sessions/{id}/compact",
        name="compact_session",
        about=(
            "Put a summary in the place of a session's older messages, for the model; none is "
            "deleted. Not while a run goes on in it. `compacted` is null when none is old enough."
        ),
        body=CompactBody,
        body_needed=False,
        answers=_json(_COMPACTED),
        errors=(400, 404, 408, 409, 413, 415, 502),
    ),
    Operation(
        method="get",
        path="/api/sessions/{id}/messages",
        name="list_messages",
        about="Show the conversation of a session as its model sees it.",
        answers=_json(object_of(messages=_list({"type": "object"}))),
        errors=(400, 404),
    ),
    Operation(
        method="get",
        path="/api/approvals",
        name="list_approvals",
        about="List the questions that wait for a person, the oldest first.",
        answers=_json(object_of(approvals=_list(_APPROVAL))),
    ),
    Operation(
        method="get",
        path="/api/approvals/{id}",
        name="get_approval",
        about="Show one open question.",
        answers=_json(_APPROVAL),
        errors=(404, 409),
    ),
    Operation(
        method="post",
        path="/api/approvals/{id}",
        name="answer_approval",
        about="Answer one question, once; a second answer is refused.",
        body=ApprovalBody,
        answers=_json(object_of(id=TEXT, approved={"type": "boolean"})),
        errors=(400, 404, 408, 409, 413, 415),
    ),
    Operation(
        method="get",
        path="/api/conversations",
        name="conversations_list",
        about="List the conversations that messages can be sent to.",
        query={"query": TEXT, "limit": _WHOLE},
        answers=_json(LIST_OUTPUT),
        errors=(400,),
    ),
    Operation(
        method="post",
        path="/api/conversations/send",
        name="conversations_send",
        about="Send a message to a conversation, once.",
        body=SendBody,
        answers=_json(SEND_OUTPUT),
        errors=(400, 404, 408, 413, 415, 502),
    ),
    Operation(
        method="post",
        path="/api/conversations/turn",
        name="conversations_turn",
        about="Send a message to a conversation, once, and wait for the reply to it.",
        body=TurnBody,
        answers=_json(TURN_OUTPUT),
        errors=(400, 404, 408, 413, 415, 502),
    ),
    Operation(
        method="post",
        path="/webhooks/{channel}",
        name="receive_message",
        about="Take a message of a webhook channel; a run answers it, or it answers a turn.",
        body=InboundBody,
        answers=_json(_TAKEN, 202),
        errors=(400, 404, 408, 409, 413, 415),
        signed=True,
    ),
    Operation(
        method="get",
        path="/api/tools",
        name="list_tools",
        about="List the tools of an agent, after policy, and how they are offered to its model.",
        query={"agent": TEXT},
        answers=_json(object_of(mode=TEXT, visible=_list(TEXT), tools=_list({"type": "object"}))),
        errors=(404,),
    ),
    Operation(
        method="get",
        path="/api/health",
        name="state",
        about="Say what the gateway is doing.",
        answers=_json(object_of(status={"enum": ["ok", "draining"]}, version=TEXT)),
    ),
    Operation(
        method="get",
        path="/api/openapi.json",
        name="openapi",
        about="This document.",
        answers=_json({"type": "object"}),
    ),
    Operation(
        method="get",
        path="/metrics",
        name="metrics",
        about="Metrics in Prometheus' text format.",
        answers={200: ("text/plain", TEXT)},
    ),
    Operation(
        method="get",
        path="/health",
        name="health",
        about="Say whether the gateway is up; 503 while it shuts down. Needs no token.",
        answers=_json(object_of(status={"enum": ["ok", "draining"]})),
        open=True,
    ),
)
