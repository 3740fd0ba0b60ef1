"""Owns what the readers of all wires share: how a reply ends, and what an assembler is.

Above: the readers of each wire, `sdk_wire`. Below: `protocol`, `errors`.
"""

from __future__ import annotations

from typing import Literal, Protocol

from toolcell.errors import ProviderError
from toolcell.protocol.messages import ModelReply

Finish = Literal["stop", "tool_calls", "length", "filtered", "other"]


class Assembler(Protocol):
    """Puts the events of one streamed reply together."""

    def add(self, event: object) -> None:
        """Take one event, as plain JSON.

        Raises:
            ProviderError: the endpoint says that it failed.
        """
        ...

    def reply(self, request_bytes: int) -> ModelReply:
        """Return the whole reply.

        Raises:
            ProviderError: the stream ended before the model was done.
        """
        ...


def unfinished() -> ProviderError:
    """Return the error for a stream that ended too early."""
    message = (
        "the endpoint ended its stream before the reply was finished; try again, and if "
        "it happens every time, check the endpoint's own log"
    )
    return ProviderError(message, retryable=True)
