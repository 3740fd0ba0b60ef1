"""Owns reading an OpenAI Responses answer, whole or in events; all of it is hostile JSON.

The last event of a stream carries the whole response; where an endpoint leaves its output out, the
items that came before it count.

Above: `openai_responses`. Below: `hostile`, `replies`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcell.base.identifiers import fresh
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelReply, Reasoning, ToolCall, Usage
from toolcell.providers.hostile import arguments_text, count, items, mapping, string
from toolcell.providers.overflow import too_long
from toolcell.providers.replies import Finish, unfinished
from toolcell.providers.responses_body import API

_TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_DELTAS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_PASSING: Final = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout"})
"""Codes of failures that may pass."""


class ResponseAssembler:
    """Puts the events of one streamed response together."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._items: dict[int, dict[str, Any]] = {}
        self._text: dict[int, list[str]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._response: Mapping[str, Any] | None = None

    def add(self, event: object) -> None:
        """Take one event, as plain JSON.

        Raises:
            ProviderError: the endpoint says that it failed.
        """
        data = mapping(event)
        kind = string(data.get("type"))
        index = count(data.get("output_index"))
        if kind in _DELTAS:
            piece = string(data.get("delta"))
            self._text.setdefault(index, []).append(piece)
            if piece and self._on_text is not None:
                self._on_text(piece)
        elif kind in {"response.output_item.added", "response.output_item.done"}:
            self._items[index] = dict(mapping(data.get("item")))
        elif kind == "response.function_call_arguments.delta":
            self._arguments.setdefault(index, []).append(string(data.get("delta")))
        elif kind in _TERMINAL:
            self._response = mapping(data.get("response"))
        elif kind == "error":
            raise _failure(data)

    def reply(self, request_bytes: int) -> ModelReply:
        """Return the whole reply.

        Raises:
            ProviderError: the stream ended before the model was done, or the response failed.
        """
        if self._response is None:
            raise unfinished()
        if items(self._response.get("output")):
            return read_response(self._response, request_bytes)
        return read_response({**self._response, "output": self._assembled()}, request_bytes)

    def _assembled(self) -> list[dict[str, Any]]:
        for index, pieces in self._text.items():
            item = self._items.setdefault(index, {"type": "message"})
            if not items(item.get("content")):
                item["content"] = [{"type": "output_text", "text": "".join(pieces)}]
        for index, pieces in self._arguments.items():
            item = self._items.setdefault(index, {"type": "function_call"})
            item["arguments"] = item.get("arguments") or "".join(pieces)
        return [item for _, item in sorted(self._items.items())]


def read_response(answer: object, request_bytes: int) -> ModelReply:
    """Return the reply of a whole response.

    Raises:
        ProviderError: it is no response, or one that failed.
    """
    data = mapping(answer)
    if data.get("status") == "failed" or mapping(data.get("error")):
        raise _failure(mapping(data.get("error")))
    if not isinstance(data.get("output"), list):
        said = (
            "the endpoint's answer has no `output`: it is no response; check that "
            "baseUrl ends where /responses follows, such as http://host:port/v1"
        )
        raise ProviderError(said)
    output = [mapping(item) for item in data["output"]]
    calls = tuple(_call(item) for item in output if item.get("type") == "function_call")
    # Without its encrypted content a reasoning item means nothing to an endpoint that kept nothing.
    reasoning = tuple(
        dict(item)
        for item in output
        if item.get("type") == "reasoning" and item.get("encrypted_content")
    )
    message = Message(
        role="assistant",
        text="".join(_text(item) for item in output if item.get("type") == "message"),
        tool_calls=calls,
        reasoning=Reasoning(API, reasoning) if reasoning else None,
    )
    finish = _finish(data, has_calls=bool(calls))
    usage = read_usage(data.get("usage"))
    return ModelReply(message=message, finish=finish, usage=usage, request_bytes=request_bytes)


def read_usage(value: object) -> Usage:
    """Return the token counts; zero where they are missing or no numbers."""
    data = mapping(value)
    return Usage(
        input_tokens=count(data.get("input_tokens")),
        output_tokens=count(data.get("output_tokens")),
        cached_tokens=count(mapping(data.get("input_tokens_details")).get("cached_tokens")),
    )


def _finish(data: Mapping[str, Any], *, has_calls: bool) -> Finish:
    if data.get("status") == "incomplete":
        match mapping(data.get("incomplete_details")).get("reason"):
            case "max_output_tokens":
                return "length"
            case "content_filter":
                return "filtered"
    if has_calls:
        return "tool_calls"
    return "stop" if data.get("status") in {"completed", None} else "other"


def _text(item: Mapping[str, Any]) -> str:
    parts = [mapping(part) for part in items(item.get("content"))]
    return "".join(string(part.get("text")) or string(part.get("refusal")) for part in parts)


def _call(item: Mapping[str, Any]) -> ToolCall:
    call_id = string(item.get("call_id")) or string(item.get("id")) or fresh("call")
    return ToolCall(call_id, string(item.get("name")), arguments_text(item.get("arguments")))


def _failure(error: Mapping[str, Any]) -> ProviderError:
    code = string(error.get("code")) or "no code"
    said = " ".join(string(error.get("message")).split())[:600] or "it gave no reason"
    return ProviderError(
        f"the response failed ({code}): {said}",
        retryable=code in _PASSING,
        too_long=too_long(None, error, said),
    )
