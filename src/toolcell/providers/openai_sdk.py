"""Owns the client of the official `openai` SDK, which both OpenAI wires share.

Above: `openai_chat`, `openai_responses`. Below: `sdk_wire`. Refuses to know: bodies.
"""

from __future__ import annotations

from typing import Any, Final

from toolcell.errors import ProviderError
from toolcell.providers.sdk_wire import SdkWire, load_sdk
from toolcell.providers.wire import WireSettings

OPENAI_URL: Final = "https://api.openai.com/v1"


def openai_wire(settings: WireSettings) -> SdkWire:
    """Return a client for an endpoint; nothing is sent.

    Raises:
        ProviderError: the SDK is not installed, or OpenAI itself is meant and no key is set.
    """
    sdk = load_sdk("openai", "OpenAI")
    if settings.api_key is None and settings.base_url is None:
        where = f"models.providers.{settings.provider_id}"
        message = f"no API key for OpenAI; set {where}.apiKey, or {where}.baseUrl"
        raise ProviderError(message)
    base_url = settings.base_url or OPENAI_URL

    def client(http_client: Any) -> Any:
        return sdk.AsyncOpenAI(
            # The SDK insists on a key; an endpoint that was given none does not read it.
            api_key=settings.api_key or "none",
            base_url=base_url,
            max_retries=settings.max_retries,
            timeout=settings.timeout_seconds,
            default_headers=dict(settings.headers),
            http_client=http_client,
        )

    return SdkWire(sdk, client, settings, base_url)
