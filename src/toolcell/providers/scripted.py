"""Owns a provider that plays a script: for tests, the demo and offline use.

It builds the same body as the OpenAI wire, so sizes and payload checks are real.

Above: tests, `toolcell demo`. Below: `body`, `openai_body`. Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import dumps
from toolcell.errors import ProviderError, ToolcellError
from toolcell.protocol.messages import Message, ModelReply, ModelRequest, ToolCall
from toolcell.providers.body import encode
from toolcell.providers.contract import CheckPayload
from toolcell.providers.openai_body import chat_body

Script: TypeAlias = str | ToolCall | Sequence[ToolCall] | ModelReply | ToolcellError
Step: TypeAlias = Script | Callable[[ModelRequest], Script]
"""A text answer, tool calls, a whole reply, an error to raise, or a function that decides."""


def tool_call(name: str, arguments: Mapping[str, Any] | str, *, id: str | None = None) -> ToolCall:  # noqa: A002 - the wire's own word
    """Return a call as a model would make it; a string is taken as the raw arguments text."""
    text = arguments if isinstance(arguments, str) else dumps(dict(arguments))
    return ToolCall(id or fresh("call"), name, text)


class ScriptedProvider:
    """Answers each request with the next step.

    Attributes:
        requests: Every request, in order.
        bodies: The OpenAI-shaped body of each, as it would have been sent.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps: Iterator[Step] = iter(tuple(steps))
        self.requests: list[ModelRequest] = []
        self.bodies: list[dict[str, Any]] = []

    async def complete(
        self,
        request: ModelRequest,
        *,
        check_payload: CheckPayload | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Return the next step as a reply.

        Raises:
            PayloadViolationError: `check_payload` refused the body; no step is used.
            ProviderError: the script has no further step.
        """
        body = chat_body(request)
        size = len(encode(body))
        if check_payload is not None:
            check_payload(body)
        self.requests.append(request)
        self.bodies.append(body)
        try:
            step = next(self._steps)
        except StopIteration:
            message = f"the script has no step for model call {len(self.requests)}; add one"
            raise ProviderError(message) from None
        reply = _reply(step(request) if callable(step) else step, size)
        if on_text is not None and reply.message.text:
            on_text(reply.message.text)
        return reply

    async def aclose(self) -> None:
        """Nothing to close."""


def _reply(script: Script, request_bytes: int) -> ModelReply:
    match script:
        case ToolcellError():
            raise script
        case ModelReply():
            return replace(script, request_bytes=request_bytes)
        case str():
            message = Message(role="assistant", text=script)
            return ModelReply(message=message, finish="stop", request_bytes=request_bytes)
        case ToolCall():
            calls: tuple[ToolCall, ...] = (script,)
        case _:
            calls = tuple(script)
    message = Message(role="assistant", tool_calls=calls)
    return ModelReply(message=message, finish="tool_calls", request_bytes=request_bytes)
