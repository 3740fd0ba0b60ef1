"""Owns writing a Responses answer: whole, or as events of a stream.

Above: `openai_routes`. Below: `live`. Refuses to know: runs, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import dumps
from toolcell.gateway.client_calls import ClientCall
from toolcell.gateway.faults import ApiError
from toolcell.protocol.messages import Usage

_INCOMPLETE: Final = {"length": "max_output_tokens", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a response says of its request."""

    id: str
    created: int
    model: str
    instructions: str | None
    previous: str | None
    session: str
    tools: tuple[dict[str, Any], ...]
    metadata: dict[str, str]


def response(
    head: Head,
    *,
    status: str,
    output: Sequence[dict[str, Any]] = (),
    finish: str | None = None,
    usage: Usage | None = None,
    error: ApiError | None = None,
) -> dict[str, Any]:
    """Return a response object."""
    why = _INCOMPLETE.get(finish or "")
    return {
        "id": head.id,
        "object": "response",
        "created_at": head.created,
        "status": "incomplete" if why else status,
        "background": False,
        "error": None if error is None else {"code": "server_error", "message": error.message},
        "incomplete_details": {"reason": why} if why else None,
        "instructions": head.instructions,
        "model": head.model,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": head.previous,
        "conversation": {"id": head.session},
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": list(head.tools),
        "metadata": head.metadata,
        "usage": None if usage is None else _usage(usage),
    }


def output_items(text: str, calls: Sequence[ClientCall]) -> list[dict[str, Any]]:
    """Return the items of an answer: what was said, then the calls."""
    said = [_message(_id("msg"), text, "completed")] if text or not calls else []
    return [*said, *(_call(call) for call in calls)]


class ResponseEvents:
    """The events of one streamed response, in order and numbered."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._number = 0
        self._message_id: str | None = None
        self._text = ""
        self._output: list[dict[str, Any]] = []

    def opening(self) -> Iterator[bytes]:
        """Yield what comes first."""
        shown = response(self._head, status="in_progress")
        yield self._event("response.created", response=shown)
        yield self._event("response.in_progress", response=shown)

    def text(self, piece: str) -> Iterator[bytes]:
        """Yield the events of a piece of text."""
        if self._message_id is None:
            self._message_id = _id("msg")
            item = {**_message(self._message_id, "", "in_progress"), "content": []}
            yield self._event("response.output_item.added", output_index=0, item=item)
            yield self._event("response.content_part.added", **self._place(), part=_part(""))
        self._text += piece
        yield self._event("response.output_text.delta", **self._place(), delta=piece, logprobs=[])

    def closing(
        self, *, calls: Sequence[ClientCall], finish: str | None, usage: Usage
    ) -> Iterator[bytes]:
        """Yield the end of an answer, or the calls that the client is to make."""
        if self._message_id is None and not calls:
            yield from self.text("")
        yield from self._end_message()
        for call in calls:
            yield from self._end_call(call)
        done = response(
            self._head, status="completed", output=self._output, finish=finish, usage=usage
        )
        name = "response.incomplete" if done["status"] == "incomplete" else "response.completed"
        yield self._event(name, response=done)

    def failing(self, error: ApiError) -> Iterator[bytes]:
        """Yield the end of a run that failed."""
        yield from self._end_message()
        failed = response(self._head, status="failed", output=self._output, error=error)
        yield self._event("response.failed", response=failed)

    def _end_message(self) -> Iterator[bytes]:
        if self._message_id is None:
            return
        item = _message(self._message_id, self._text, "completed")
        place = self._place()
        yield self._event("response.output_text.done", **place, text=self._text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=_part(self._text))
        yield self._event("response.output_item.done", output_index=0, item=item)
        self._output.append(item)

    def _end_call(self, call: ClientCall) -> Iterator[bytes]:
        item = _call(call)
        place = {"output_index": len(self._output)}
        empty = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", **place, item=empty)
        told = {**place, "item_id": item["id"]}
        arguments = item["arguments"]
        yield self._event("response.function_call_arguments.delta", **told, delta=arguments)
        yield self._event(
            "response.function_call_arguments.done",
            **told,
            name=call.name,
            arguments=arguments,
        )
        yield self._event("response.output_item.done", **place, item=item)
        self._output.append(item)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._message_id, "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> bytes:
        body = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {dumps(body)}\n\n".encode("utf-8", "replace")


def _message(item_id: str, text: str, status: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": item_id,
        "status": status,
        "role": "assistant",
        "content": [_part(text)],
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: ClientCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": _id("fc"),
        "call_id": call.call_id,
        "name": call.name,
        "arguments": dumps(dict(call.arguments)),
        "status": "completed",
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _id(prefix: str) -> str:
    return fresh(prefix).replace("-", "")
