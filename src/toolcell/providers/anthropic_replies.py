"""Owns reading an Anthropic Messages answer, whole or in events; all of it is hostile JSON.

Above: `anthropic`. Below: `hostile`, `replies`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import dumps
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelReply, ToolCall, Usage
from toolcell.providers.anthropic_thinking import kept_thinking
from toolcell.providers.hostile import count, items, mapping, string
from toolcell.providers.replies import Finish, unfinished

_FINISH: Final[Mapping[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


@dataclass(slots=True)
class _Block:
    """One content block while it grows; `whole` is how it began."""

    whole: Mapping[str, Any]
    pieces: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)

    def done(self) -> dict[str, Any]:
        out = dict(self.whole)
        grown = "".join(self.pieces)
        match out.get("type"):
            case "text":
                out["text"] = string(out.get("text")) + grown
            case "thinking":
                out["thinking"] = string(out.get("thinking")) + grown
                out["signature"] = string(out.get("signature")) + "".join(self.signature)
            case "tool_use" if grown:
                out["input"] = grown
        return out


class MessageAssembler:
    """Puts the events of one streamed message together."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._on_text = on_text
        self._blocks: dict[Any, _Block] = {}
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}

    def add(self, event: object) -> None:
        """Take one event, as plain JSON."""
        data = mapping(event)
        match data.get("type"):
            case "message_start":
                self._usage |= mapping(mapping(data.get("message")).get("usage"))
            case "content_block_start":
                self._start(data.get("index"), mapping(data.get("content_block")))
            case "content_block_delta":
                self._grow(data.get("index"), mapping(data.get("delta")))
            case "message_delta":
                finish = mapping(data.get("delta")).get("stop_reason")
                if isinstance(finish, str):
                    self._finish = finish
                # Counts are cumulative, and `null` says nothing.
                told = mapping(data.get("usage")).items()
                self._usage |= {key: value for key, value in told if value is not None}

    def reply(self, request_bytes: int) -> ModelReply:
        """Return the whole reply.

        Raises:
            ProviderError: the stream ended before the model was done.
        """
        if self._finish is None:
            raise unfinished()
        blocks = [block.done() for block in self._blocks.values()]
        return _reply(blocks, self._finish, read_usage(self._usage), request_bytes)

    def _start(self, index: Any, block: Mapping[str, Any]) -> None:
        self._blocks[_key(index)] = _Block(block)
        if block.get("type") == "text":
            self._tell(string(block.get("text")))

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> None:
        block = self._blocks.get(_key(index))
        if block is None:
            # An endpoint that leaves out the start of a block; its kind follows from the delta.
            kind = "tool_use" if delta.get("type") == "input_json_delta" else "text"
            block = self._blocks[_key(index)] = _Block({"type": kind})
        match delta.get("type"):
            case "text_delta":
                block.pieces.append(string(delta.get("text")))
                self._tell(string(delta.get("text")))
            case "input_json_delta":
                block.pieces.append(string(delta.get("partial_json")))
            case "thinking_delta":
                block.pieces.append(string(delta.get("thinking")))
            case "signature_delta":
                block.signature.append(string(delta.get("signature")))

    def _tell(self, piece: str) -> None:
        if piece and self._on_text is not None:
            self._on_text(piece)


def read_message(answer: object, request_bytes: int) -> ModelReply:
    """Return the reply of an answer that came in one piece.

    Raises:
        ProviderError: it is no message.
    """
    data = mapping(answer)
    if not isinstance(data.get("content"), list):
        message = (
            "the endpoint's answer has no `content`: it is no Anthropic message; check that "
            "baseUrl ends where /v1/messages follows, such as http://host:port"
        )
        raise ProviderError(message)
    blocks = [dict(mapping(block)) for block in items(data["content"])]
    usage = read_usage(data.get("usage"))
    return _reply(blocks, string(data.get("stop_reason")), usage, request_bytes)


def read_usage(value: object) -> Usage:
    """Return the token counts; this wire counts what its cache did apart from the rest."""
    data = mapping(value)
    cached = count(data.get("cache_read_input_tokens"))
    written = count(data.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count(data.get("input_tokens")) + cached + written,
        output_tokens=count(data.get("output_tokens")),
        cached_tokens=cached,
        written_tokens=written,
    )


def _reply(
    blocks: list[dict[str, Any]], finish: str, usage: Usage, request_bytes: int
) -> ModelReply:
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    texts = [string(block.get("text")) for block in blocks if block.get("type") == "text"]
    normal: Finish = _FINISH.get(finish, "other")
    if calls and normal in {"stop", "other"}:
        normal = "tool_calls"
    message = Message(
        role="assistant",
        text="".join(texts),
        tool_calls=calls,
        reasoning=kept_thinking(blocks),
    )
    return ModelReply(message=message, finish=normal, usage=usage, request_bytes=request_bytes)


def _call(block: Mapping[str, Any]) -> ToolCall:
    given = block.get("input")
    arguments = given if isinstance(given, str) else dumps(given if given is not None else {})
    return ToolCall(string(block.get("id")) or fresh("call"), string(block.get("name")), arguments)


def _key(index: Any) -> Any:
    return index if isinstance(index, int) else None
