"""Owns what is said to a server's own requests: a configured answer, else a clear refusal.

Above: the connection. Below: the MCP SDK, `sources.mcp.options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, METHOD_NOT_FOUND, Implementation

from toolcell.base.version import VERSION
from toolcell.errors import McpError
from toolcell.sources.mcp.options import ServerRequests
from toolcell.sources.mcp.status import LogTail
from toolcell.sources.mcp.wire import Wire

_MEANING: Final[Mapping[str, str]] = {
    "elicitation/create": "no questions to the user (elicitation)",
    "sampling/createMessage": "no use of the user's model (sampling)",
    "roots/list": "no list of folders (roots)",
}


class Answering:
    """Answers the requests of one server."""

    def __init__(self, server: str, answers: ServerRequests, log: LogTail) -> None:
        self._server = server
        self._answers = answers
        self._log = log

    @property
    def methods(self) -> frozenset[str]:
        """What is answered."""
        return self._answers.methods

    async def answer(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the result of a server's request.

        Raises:
            MCPError: it is refused; the server reads why.
        """
        if method not in self._answers.methods:
            self._log.add(f"[toolcell] refused the server's {method} request")
            what = _MEANING.get(method, "no such request")
            msg = f"toolcell answers no {method!r} request: it is configured to offer {what}"
            raise MCPError(METHOD_NOT_FOUND, msg)
        try:
            return await self._answers.answer(self._server, method, params or {})
        except McpError as error:
            self._log.add(f"[toolcell] refused the server's {method} request: {error.message}")
            raise MCPError(INVALID_REQUEST, error.message) from None


def client_session(wire: Wire, answering: Answering) -> ClientSession:
    """Return the SDK's session over `wire`; it tells the server what is answered.

    The callbacks are never run: `wire` takes every request before the session sees it.
    """
    methods = answering.methods
    return ClientSession(
        dispatcher=wire,
        client_info=Implementation(name="toolcell", version=VERSION),
        sampling_callback=_unused if "sampling/createMessage" in methods else None,
        elicitation_callback=_unused if "elicitation/create" in methods else None,
        list_roots_callback=_unused if "roots/list" in methods else None,
    )


async def _unused(context: Any, params: Any = None) -> Any:
    """Stand for a capability."""
    raise NotImplementedError
