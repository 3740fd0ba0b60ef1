"""Owns the port of a model provider.

Above: the agent loop. Below: `protocol`. Refuses to know: code mode and enforcement;
it is handed `check_payload` and calls it on the request body it is about to send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from toolcell.protocol.messages import ModelReply, ModelRequest

CheckPayload = Callable[[Mapping[str, Any]], None]
"""Gets the final request body; raises PayloadViolationError to stop it (rule 2.6)."""


class Provider(Protocol):
    """Sends one request to a model and returns its reply."""

    async def complete(
        self,
        request: ModelRequest,
        *,
        check_payload: CheckPayload | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Send the request; call `on_text` with pieces of text as they arrive.

        Raises:
            PayloadViolationError: `check_payload` refused the body.
            ProviderError: the endpoint refused it or broke off.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
