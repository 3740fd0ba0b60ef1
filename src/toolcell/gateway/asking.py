"""Owns `Ask`: what an OpenAI-shaped request comes to, whichever wire it came over.

Above: `chat_request`, `responses_request`, which make it; `answering`, which runs it. Below:
`protocol.messages`, `sources.client`. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from toolcell.gateway.faults import ApiError, invalid
from toolcell.protocol.messages import ImagePart, Message
from toolcell.sources.client import ClientDefinition

DEFAULT_APP: Final = "app"


class Wire(BaseModel):
    """The base of request bodies: what is not read is let be, as clients send much else."""

    model_config = ConfigDict(extra="allow", strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked of the gateway.

    Attributes:
        model: Names the agent.
        prompt: What the user says; None when the request brings results of client tools.
        history: The conversation before it, as the request has it.
        results: Results of client tools, by call id, in order.
        instructions: System text.
        tools: The client's own tools.
        tools_disabled: The model is to have no tools.
        options: Keys for the model request.
        session: The session the client names.
        app: The client's name, for the ids of its tools.
        sender: Who asks.
        stream: Whether the answer is streamed.
        images: What the user shows with the prompt.
    """

    model: str | None = None
    prompt: str | None = None
    history: tuple[Message, ...] = ()
    results: Mapping[str, Message] = field(default_factory=dict)
    instructions: str | None = None
    tools: tuple[ClientDefinition, ...] = ()
    tools_disabled: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None
    app: str = DEFAULT_APP
    sender: str | None = None
    stream: bool = False
    images: tuple[ImagePart, ...] = ()


def conversation(
    messages: Sequence[Message],
) -> tuple[Message | None, tuple[Message, ...], dict[str, Message]]:
    """Split a conversation into what is asked now, what was before, and results brought.

    Returns:
        The user's message or None, the history, the results by call id.

    Raises:
        ApiError: 400: it ends in something that asks nothing.
    """
    if not messages:
        raise invalid("there is no message to answer", param="messages")
    *before, last = messages
    if last.role == "user":
        return last, tuple(before), {}
    if last.role == "tool":
        results: dict[str, Message] = {}
        for message in reversed(messages):
            if message.role != "tool":
                break
            results.setdefault(message.tool_call_id or "", message)
        return None, (), dict(reversed(results.items()))
    raise invalid(
        "the last message must be the user's, or the result of a tool call", param="messages"
    )


def tool_choice(choice: object) -> bool:
    """Return whether tools are disabled.

    Raises:
        ApiError: 400: one tool is demanded; an agent decides that itself.
    """
    if choice in (None, "auto"):
        return False
    if choice == "none":
        return True
    message = 'tool_choice may be "auto" or "none": which tool is called is the agent\'s decision'
    raise invalid(message, param="tool_choice", code="unsupported_parameter")


def unsupported(name: str, why: str) -> ApiError:
    """Return a 400 for a field that means something this endpoint does not do."""
    return invalid(f"{name} is not supported: {why}", param=name, code="unsupported_parameter")
