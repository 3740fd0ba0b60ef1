"""Owns what the MCP servers of one runtime share: pauses, sign-ins, and who answers their requests.

Above: `McpSource`, connections. Below: `config.env`. Refuses to know: the MCP SDK.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toolcell.config.env import home
from toolcell.errors import McpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Pauses between attempts, seconds: `first`, doubling up to `longest`.

    `ping` is the longest wait for a sign of life of a server that seems to hang.
    """

    first: float = 1.0
    longest: float = 60.0
    ping: float = 10.0


class ServerRequests(Protocol):
    """Answers what MCP servers may ask of a client.

    Attributes:
        methods: What is answered, of `elicitation/create`, `sampling/createMessage` and
            `roots/list`; the others are refused, and servers are told which there are.
    """

    methods: frozenset[str]

    async def answer(self, server: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result, in the protocol's own shape.

        Args:
            server: The configured name of who asks.
            method: One of `methods`.
            params: As the server sent them: not trusted.

        Raises:
            McpError: there is no answer; the server is told why.
        """
        ...


class NoAnswers:
    """Answers nothing: the default."""

    methods: frozenset[str] = frozenset()

    async def answer(self, server: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse."""
        del params
        msg = f"nobody answers {method!r} of {server!r}"
        raise McpError(msg)


def tokens_folder() -> Path:
    """Return where sign-ins are kept: `mcp-auth` in toolcell's own folder."""
    return home() / "mcp-auth"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """What all servers share.

    Attributes:
        retry: Pauses between attempts.
        tokens: The folder of sign-ins.
        answers: Who answers servers' requests; nobody by default.
        patience: Seconds the start waits for the servers' first attempts; those that take longer
            join when they are ready.
    """

    retry: Retry = Retry()
    tokens: Path = field(default_factory=tokens_folder)
    answers: ServerRequests = field(default_factory=NoAnswers)
    patience: float = math.inf
