"""Owns the Anthropic Messages wire, for Anthropic and every endpoint that speaks it.

Above: the registry. Below: `anthropic_body`, `anthropic_replies`, `sdk_wire` with the official
`anthropic` SDK. Refuses to know: tools, code mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolcell.errors import ProviderError
from toolcell.protocol.messages import ModelReply, ModelRequest
from toolcell.providers.anthropic_body import messages_body
from toolcell.providers.anthropic_replies import MessageAssembler, read_message
from toolcell.providers.contract import CheckPayload
from toolcell.providers.sdk_wire import Call, SdkWire, load_sdk
from toolcell.providers.wire import WireSettings

ANTHROPIC_URL: Final = "https://api.anthropic.com"
PATH: Final = "/v1/messages"


class AnthropicProvider:
    """A `Provider` over Messages. One per endpoint; safe to use from many tasks.

    `base_url` ends before `/v1/messages`.
    """

    def __init__(self, settings: WireSettings) -> None:
        """Make the client; nothing is sent.

        Raises:
            ProviderError: the SDK is not installed, or Anthropic itself is meant and no key is set.
        """
        sdk = load_sdk("anthropic", "Anthropic")
        if settings.api_key is None and settings.base_url is None:
            where = f"models.providers.{settings.provider_id}"
            message = f"no API key for Anthropic; set {where}.apiKey, or {where}.baseUrl"
            raise ProviderError(message)
        base_url = settings.base_url or ANTHROPIC_URL

        def client(http_client: Any) -> Any:
            return sdk.AsyncAnthropic(
                # Without a key of ours the SDK would look for one in places of its own.
                api_key=settings.api_key or "none",
                base_url=base_url,
                max_retries=settings.max_retries,
                timeout=settings.timeout_seconds,
                default_headers=dict(settings.headers),
                # Model calls have spans of ours; a second set would count every call twice.
                open_telemetry=False,
                http_client=http_client,
            )

        self._wire = SdkWire(sdk, client, settings, base_url)

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
            body=messages_body(request),
            streaming={"stream": True},
            assembler=MessageAssembler,
            read=read_message,
        )
        return await self._wire.complete(call, check_payload, on_text)

    async def aclose(self) -> None:
        """Close connections."""
        await self._wire.aclose()
