"""Owns reading an OpenAI Chat Completions answer, whole or in chunks; all of it is hostile JSON.

Endpoints that call themselves compatible differ: missing ids, one index for several calls, `null`
where an object belongs, empty chunks. What can be read is read; what cannot is a ProviderError.

Above: `openai_chat`. Below: `hostile`, `replies`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcell.base.identifiers import fresh
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelReply, ToolCall, Usage
from toolcell.providers.hostile import arguments_text, count, dollars, items, mapping, string
from toolcell.providers.replies import Finish, unfinished

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
        data = mapping(chunk)
        if data.get("usage"):
            self._usage = read_usage(data["usage"])
        choice = _first_choice(data)
        delta = mapping(choice.get("delta"))
        for key in ("content", "refusal"):
            piece = delta.get(key)
            if isinstance(piece, str) and piece:
                self._text.append(piece)
                if self._on_text is not None:
                    self._on_text(piece)
        for part in items(delta.get("tool_calls")):
            self._add_call(mapping(part))
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]

    def reply(self, request_bytes: int) -> ModelReply:
        """Return the whole reply.

        Raises:
            ProviderError: the stream ended before the model was done.
        """
        if self._finish is None:
            raise unfinished()
        calls = [call.done() for call in self._calls]
        return _reply("".join(self._text), calls, self._finish, self._usage, request_bytes)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        index, call_id = part.get("index"), string(part.get("id"))
        function = mapping(part.get("function"))
        current = self._open.get(index)
        # Some endpoints number every call 0 (or not at all); a new id then starts a new call.
        if current is None or (call_id and current.id and call_id != current.id):
            current = _Call()
            self._calls.append(current)
            self._open[index] = current
        current.id = current.id or call_id
        name = string(function.get("name"))
        if name and name != current.name:
            current.name += name
        current.arguments.append(arguments_text(function.get("arguments")))


def read_completion(answer: object, request_bytes: int) -> ModelReply:
    """Return the reply of an answer that came in one piece.

    Raises:
        ProviderError: it is no chat completion.
    """
    data = mapping(answer)
    choice = _first_choice(data)
    if not choice:
        message = (
            "the endpoint's answer has no `choices`: it is no chat completion; check that "
            "baseUrl ends where /chat/completions follows, such as http://host:port/v1"
        )
        raise ProviderError(message)
    message_data = mapping(choice.get("message"))
    calls = []
    for item in items(message_data.get("tool_calls")):
        part = mapping(item)
        function = mapping(part.get("function"))
        call_id = string(part.get("id")) or fresh("call")
        name, arguments = string(function.get("name")), arguments_text(function.get("arguments"))
        calls.append(ToolCall(call_id, name, arguments))
    text = string(message_data.get("content")) or string(message_data.get("refusal"))
    finish = string(choice.get("finish_reason"))
    return _reply(text, calls, finish, read_usage(data.get("usage")), request_bytes)


def read_usage(value: object) -> Usage:
    """Return the token counts; zero where they are missing or no numbers."""
    data = mapping(value)
    return Usage(
        input_tokens=count(data.get("prompt_tokens")),
        output_tokens=count(data.get("completion_tokens")),
        cached_tokens=count(mapping(data.get("prompt_tokens_details")).get("cached_tokens")),
        cost=dollars(data.get("cost")),
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
    return next((mapping(choice) for choice in items(data.get("choices"))), {})
