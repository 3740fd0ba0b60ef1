"""Owns the conversation in provider-neutral form: what a model is sent and what it answers.

Above: providers, sessions, the agent loop. Below: `base`. Refuses to know: any vendor's wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcell.base.images import decoded_bytes, size_text

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model's wire wants back unchanged with a message; other wires leave it out.

    Attributes:
        api: The wire it came over, such as `anthropic`.
        items: Items in that wire's own JSON, often encrypted or signed.
    """

    api: str
    items: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message: base64 of a PNG, JPEG, GIF or WebP file.

    Whoever makes one has looked at it (`base.images`): endpoints refuse what is broken or too
    large, and with it every later request of the conversation.

    Attributes:
        data: The base64 text.
        mime_type: What its bytes say it is.
        at: How many characters of the message's text come before it; None when all do.
    """

    data: str
    mime_type: str
    at: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is told of it where the image itself is not wanted."""
        return {"mimeType": self.mime_type, "bytes": decoded_bytes(self.data)}

    @property
    def note(self) -> str:
        """What stands for it in a text: `image image/png 12 KB`."""
        return f"image {self.mime_type} {size_text(decoded_bytes(self.data))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a conversation.

    Attributes:
        role: Whose it is.
        text: Its text; empty when an assistant only calls tools.
        tool_calls: Calls an assistant asks for.
        tool_call_id: For `tool` messages, the call that is answered.
        is_error: For `tool` messages, whether the call failed.
        reasoning: For `assistant` messages, what the wire wants back with them.
        images: For `user` and `tool` messages, what is to be seen beside the text, in order.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    reasoning: Reasoning | None = None
    images: tuple[ImagePart, ...] = ()

    def parts(self) -> Iterator[str | ImagePart]:
        """Yield pieces of text and images as they follow one another; no piece is empty."""
        position = 0
        for image in self.images:
            end = len(self.text) if image.at is None else max(image.at, position)
            if piece := self.text[position:end]:
                yield piece
            position = end
            yield image
        if rest := self.text[position:]:
            yield rest

    @property
    def words(self) -> str:
        """Its text with a note in the place of each image, for those who read and do not see."""
        if not self.images:
            return self.text
        shown = (part if isinstance(part, str) else f"[{part.note}]" for part in self.parts())
        return "\n".join(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as a model sees it; providers render it into their own shape."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call, as the provider counted them; zero where it did not say.

    `input_tokens` holds `cached_tokens`, which were read from the provider's cache, and
    `written_tokens`, which were put there. `cost` is in dollars; None where nobody knows.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Return both together; a cost that is not known adds nothing."""
        known = [each.cost for each in (self, other) if each.cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            written_tokens=self.written_tokens + other.written_tokens,
            cost=sum(known) if known else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, and the cost where it is known."""
        counts: dict[str, Any] = {"input": self.input_tokens, "output": self.output_tokens}
        return counts if self.cost is None else counts | {"cost": self.cost}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What one model call is given. `model` is the provider's own model name."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What one model call gave back.

    Attributes:
        message: The assistant's message.
        finish: Why the model stopped, normalised.
        usage: Tokens counted by the provider.
        request_bytes: Length of the request body really sent, in bytes.
    """

    message: Message
    finish: Literal["stop", "tool_calls", "length", "filtered", "other"]
    usage: Usage = Usage()
    request_bytes: int = 0
