"""Owns the MCP form of a question to a client's user: `elicitation/create` over an open request.

Above: the protocol server. Below: the MCP SDK, `asking`. Refuses to know: what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from pydantic import ValidationError

from toolcell.mcp_server.asking import Channel, ChannelClosedError, NoAnswerError

Context = ServerRequestContext[Any, Any]


def offers_forms(context: Context) -> bool:
    """Whether the client shows forms: `elicitation: {}` of the first revisions means them, too."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None


def channel_over(context: Context) -> Channel | None:
    """Return the way to the user while this request is open; None where there is none."""
    if not offers_forms(context) or not context.session.can_send_request:
        return None
    return _OverRequest(context)


class _OverRequest:
    """Sends a request of our own beside the answer the client waits for."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def ask(self, message: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask; the answer may come after the request it went out with is over."""
        session = self._context.session
        try:
            said = await session.elicit_form(
                message, dict(form), related_request_id=self._context.request_id
            )
        except NoBackChannelError:
            raise ChannelClosedError from None
        except (MCPError, ValidationError) as error:
            raise NoAnswerError from error
        return {"action": said.action, "content": said.content}
