"""Owns a model that plays a script over the wire: it answers requests of any wire with steps.

Above: `openai_server`, tests of gateways. Below: `protocol.messages`.
Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolcell.protocol.messages import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One reply of the model.

    Attributes:
        text: Its text.
        calls: Tool calls it asks for.
        finish: `finish_reason`; None picks `tool_calls` or `stop`.
        usage: (prompt, completion) tokens.
        piece: Characters of text and of arguments in one streamed chunk.
        thinking: What it thought before; the Anthropic wire has it, with a signature.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] = (10, 5)
    piece: int = 7
    thinking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An HTTP error instead of a reply; `body` is sent as it is."""

    status: int
    body: str = '{"error": {"message": "refused", "type": "invalid_request_error"}}'
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawStream:
    """Streamed lines as they are, for the ways endpoints go wrong.

    Attributes:
        lines: Dicts become `data: <json>` events; strings are sent as they stand.
        hold: Stay open after the last line, until the client goes away.
        cut: Break the connection after the last line.
    """

    lines: tuple[Mapping[str, Any] | str, ...]
    hold: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBody:
    """A whole body as it is, with status 200."""

    body: str
    content_type: str = "application/json"


Reply: TypeAlias = Answer | Refusal | RawStream | RawBody
Simple: TypeAlias = Reply | str | ToolCall | Sequence[ToolCall]
Step: TypeAlias = Simple | Callable[[Mapping[str, Any]], Simple]
"""A reply, its shorthand (text, or tool calls), or a function of the request body."""


class ScriptedModel:
    """Answers each request body with the next step; the last step may repeat.

    Attributes:
        bodies: Every request body, in order.
    """

    def __init__(self, steps: Sequence[Step], *, repeat_last: bool = False) -> None:
        self._steps = tuple(steps)
        self._repeat_last = repeat_last
        self.bodies: list[Mapping[str, Any]] = []

    def answer(self, body: Mapping[str, Any]) -> Reply:
        """Return the reply to one request body."""
        index = len(self.bodies)
        self.bodies.append(body)
        if index >= len(self._steps) and not (self._repeat_last and self._steps):
            return Refusal(
                status=400,
                body='{"error": {"message": "the script has no further step", "type": "script"}}',
            )
        step = self._steps[min(index, len(self._steps) - 1)]
        return _reply(step(body) if callable(step) else step)


def completion(answer: Answer, model: str) -> dict[str, Any]:
    """Return the answer as one Chat Completions body."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": _usage(answer),
    }


def chunks(answer: Answer, model: str) -> Iterator[dict[str, Any]]:
    """Yield the answer as Chat Completions chunks, text and arguments in pieces."""
    yield _chunk(model, {"role": "assistant", "content": ""})
    for piece in pieces(answer.text, answer.piece):
        yield _chunk(model, {"content": piece})
    for index, call in enumerate(answer.calls):
        head = {"name": call.name, "arguments": ""}
        yield _call_chunk(model, {"index": index, "id": call.id, "type": "function"}, head)
        for piece in pieces(call.arguments, answer.piece):
            yield _call_chunk(model, {"index": index}, {"arguments": piece})
    yield _chunk(model, {}, finish=_finish(answer))
    last = _chunk(model, {})
    last["choices"] = []
    last["usage"] = _usage(answer)
    yield last


def _chunk(model: str, delta: Mapping[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}],
    }


def _call_chunk(model: str, call: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    return _chunk(model, {"tool_calls": [{**call, "function": dict(function)}]})


def pieces(text: str, size: int) -> Iterator[str]:
    """Yield `text` in pieces of `size` characters."""
    for start in range(0, len(text), max(size, 1)):
        yield text[start : start + max(size, 1)]


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


def _usage(answer: Answer) -> dict[str, int]:
    prompt, written = answer.usage
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }


def _reply(step: Simple) -> Reply:
    match step:
        case str():
            return Answer(text=step)
        case ToolCall():
            return Answer(calls=(step,))
        case Answer() | Refusal() | RawStream() | RawBody():
            return step
        case _:
            return Answer(calls=tuple(step))
