"""Owns the OpenAI Chat Completions wire, for OpenAI and every endpoint that speaks it.

Above: the registry. Below: `openai_body`, `openai_replies`, `openai_sdk`.
Refuses to know: tools, code mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from toolcell.protocol.messages import ModelReply, ModelRequest
from toolcell.providers.contract import CheckPayload
from toolcell.providers.openai_body import chat_body
from toolcell.providers.openai_replies import ReplyAssembler, read_completion
from toolcell.providers.openai_sdk import openai_wire
from toolcell.providers.sdk_wire import Call
from toolcell.providers.wire import WireSettings

PATH: Final = "/chat/completions"


class OpenAIChatProvider:
    """A `Provider` over Chat Completions. One per endpoint; safe to use from many tasks."""

    def __init__(self, settings: WireSettings) -> None:
        """Make the client; nothing is sent.

        Raises:
            ProviderError: the SDK is not installed, or OpenAI itself is meant and no key is set.
        """
        self._wire = openai_wire(settings)

    async def complete(
        self,
        request: ModelRequest,
        *,
        check_payload: CheckPayload | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Send the request; stream when somebody listens or the settings say so.

        Raises:
            PayloadViolationError: `check_payload` refused the body; nothing was sent.
            ProviderError: the endpoint refused it, broke off, or made no sense.
        """
        call = Call(
            path=PATH,
            model=request.model,
            body=chat_body(request),
            streaming={"stream": True, "stream_options": {"include_usage": True}},
            assembler=ReplyAssembler,
            read=read_completion,
        )
        return await self._wire.complete(call, check_payload, on_text)

    async def aclose(self) -> None:
        """Close connections."""
        await self._wire.aclose()
