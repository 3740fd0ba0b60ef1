"""Owns writing a Chat Completions answer: whole, or as chunks of a stream.

Above: `openai_routes`. Below: `live`. Refuses to know: runs, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolcell.base.jsontext import dumps
from toolcell.gateway.client_calls import ClientCall
from toolcell.protocol.messages import Usage

DONE: Final = b"data: [DONE]\n\n"

_FINISH: Final = {"length": "length", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What every part of an answer carries."""

    id: str
    created: int
    model: str


def finish_reason(finish: str | None) -> str:
    """Return why a run that answered stopped, in OpenAI's words."""
    return _FINISH.get(finish or "", "stop")


def completion(
    heading: Heading,
    *,
    text: str,
    calls: Sequence[ClientCall],
    finish: str | None,
    usage: Usage,
) -> dict[str, Any]:
    """Return a whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    elif not text:
        message["content"] = ""
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else finish_reason(finish),
    }
    return {**_head(heading, "chat.completion"), "choices": [choice], "usage": usage_of(usage)}


def first_chunk(heading: Heading) -> bytes:
    """Return the chunk that opens a stream."""
    return _chunk(heading, {"role": "assistant", "content": ""})


def text_chunk(heading: Heading, text: str) -> bytes:
    """Return a chunk of text."""
    return _chunk(heading, {"content": text})


def last_chunks(
    heading: Heading,
    *,
    calls: Sequence[ClientCall],
    finish: str | None,
    usage: Usage | None,
) -> Iterator[bytes]:
    """Yield the chunks that end a stream; `usage` only where the client asked for it."""
    for index, call in enumerate(calls):
        yield _chunk(heading, {"tool_calls": [{"index": index, **_call(call)}]})
    reason = "tool_calls" if calls else finish_reason(finish)
    yield _chunk(heading, {}, finish=reason)
    if usage is not None:
        last = {
            **_head(heading, "chat.completion.chunk"),
            "choices": [],
            "usage": usage_of(usage),
        }
        yield data(last)
    yield DONE


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return tokens in the words of Chat Completions."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def data(value: dict[str, Any]) -> bytes:
    """Return one event without a name."""
    return f"data: {dumps(value)}\n\n".encode("utf-8", "replace")


def _chunk(heading: Heading, delta: dict[str, Any], *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return data({**_head(heading, "chat.completion.chunk"), "choices": [choice]})


def _head(heading: Heading, kind: str) -> dict[str, Any]:
    return {
        "id": heading.id,
        "object": kind,
        "created": heading.created,
        "model": heading.model,
    }


def _call(call: ClientCall) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": dumps(dict(call.arguments))},
    }
