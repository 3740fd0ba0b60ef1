"""Owns reading an OpenAI Chat Completions answer, whole or in chunks; all of it is hostile JSON.

Endpoints that call themselves compatible differ: missing ids, one index for several calls, `null`
where an object belongs, empty chunks. What can be read is read; what cannot is a ProviderError.

Above: `openai_chat`. Below: `protocol`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import dumps
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelReply, ToolCall, Usage

Finish = Literal["stop", "tool_calls", "length", "filtered", "other"]

_FINISH: Mapping[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def done(self) -> ToolCall:
        return ToolCall(self.id or fresh("call"), self.name, "".join(self.arguments))


class ReplyAssembler:
    """Puts the chunks of one streamed reply together."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[Any, _Call] = {}
        self._finish: str | None = None
        self._usage = Usage()

    def add(self, chunk: object) -> None:
        """Take one chunk, as plain JSON."""
        data = _mapping(chunk)
        if data.get("usage"):
            self._usage = read_usage(data["usage"])
        choice = _first_choice(data)
        delta = _mapping(choice.get("delta"))
        for key in ("content", "refusal"):
            piece = delta.get(key)
            if isinstance(piece, str) and piece:
                self._text.append(piece)
                if self._on_text is not None:
                    self._on_text(piece)
        for part in _items(delta.get("tool_calls")):
            self._add_call(_mapping(part))
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]

    def reply(self, request_bytes: int) -> ModelReply:
        """Return the whole reply.

        Raises:
            ProviderError: the stream ended before the model was done.
        """
        if self._finish is None:
            message = (
                "the endpoint ended its stream before the reply was finished; try again, and if "
                "it happens every time, check the endpoint's own log"
            )
            raise ProviderError(message, retryable=True)
        calls = [call.done() for call in self._calls]
        return _reply("".join(self._text), calls, self._finish, self._usage, request_bytes)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        index, call_id = part.get("index"), _text(part.get("id"))
        function = _mapping(part.get("function"))
        current = self._open.get(index)
        # Some endpoints number every call 0 (or not at all); a new id then starts a new call.
        if current is None or (call_id and current.id and call_id != current.id):
            current = _Call()
            self._calls.append(current)
            self._open[index] = current
        current.id = current.id or call_id
        name = _text(function.get("name"))
        if name and name != current.name:
            current.name += name
        current.arguments.append(_arguments(function.get("arguments")))


def read_completion(answer: object, request_bytes: int) -> ModelReply:
    """Return the reply of an answer that came in one piece.

    Raises:
        ProviderError: it is no chat completion.
    """
    data = _mapping(answer)
    choice = _first_choice(data)
    if not choice:
        message = (
            "the endpoint's answer has no `choices`: it is no chat completion; check that "
            "baseUrl ends where /chat/completions follows, such as http://host:port/v1"
        )
        raise ProviderError(message)
    message_data = _mapping(choice.get("message"))
    calls = []
    for item in _items(message_data.get("tool_calls")):
        part = _mapping(item)
        function = _mapping(part.get("function"))
        call_id = _text(part.get("id")) or fresh("call")
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        calls.append(ToolCall(call_id, name, arguments))
    text = _text(message_data.get("content")) or _text(message_data.get("refusal"))
    finish = _text(choice.get("finish_reason"))
    return _reply(text, calls, finish, read_usage(data.get("usage")), request_bytes)


def read_usage(value: object) -> Usage:
    """Return the token counts; zero where they are missing or no numbers."""
    data = _mapping(value)
    return Usage(
        input_tokens=_count(data.get("prompt_tokens")),
        output_tokens=_count(data.get("completion_tokens")),
    )


def _reply(
    text: str, calls: list[ToolCall], finish: str, usage: Usage, request_bytes: int
) -> ModelReply:
    normal: Finish = _FINISH.get(finish, "other")
    if calls and normal in {"stop", "other"}:
        normal = "tool_calls"
    message = Message(role="assistant", text=text, tool_calls=tuple(calls))
    return ModelReply(message=message, finish=normal, usage=usage, request_bytes=request_bytes)


def _first_choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((_mapping(choice) for choice in _items(data.get("choices"))), {})


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _arguments(value: object) -> str:
    """Arguments are text on this wire; some endpoints send the object itself."""
    return dumps(value) if isinstance(value, dict) else _text(value)
