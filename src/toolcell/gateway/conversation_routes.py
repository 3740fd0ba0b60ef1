"""Owns `/api/conversations` and `/webhooks/{channel}`: messages out, and messages in.

Above: `app`. Below: `service`, `bodies`, `inbound`.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcell.base.jsontext import JsonObject
from toolcell.errors import CallError
from toolcell.gateway.agents import agent_of
from toolcell.gateway.api_models import SendBody, TurnBody
from toolcell.gateway.bodies import json_answer, query_number, read_json_bytes, read_model
from toolcell.gateway.faults import ApiError, invalid, not_found
from toolcell.gateway.inbound import MAX_BYTES
from toolcell.gateway.service import Service
from toolcell.gateway.streaming import while_connected
from toolcell.sources.core.conversations import ListArguments, SendArguments, TurnArguments
from toolcell.sources.core.signing import HEADER

MAX_LISTED = 200
MAX_QUERY_CHARS = 200


class ConversationRoutes:
    """The methods `conversations.list`, `conversations.send` and `conversations.turn`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._conversations = service.messages.conversations
        self._limit = service.config.gateway.limits.max_request_bytes

    async def conversations_list(self, request: Request) -> Response:
        """List the conversations that messages can be sent to."""
        query = request.query_params.get("query", "")
        if len(query) > MAX_QUERY_CHARS:
            message = f"query has at most {MAX_QUERY_CHARS} characters"
            raise invalid(message, param="query")
        limit = max(1, query_number(request, "limit", 50, most=MAX_LISTED))
        return json_answer(self._conversations.listed(ListArguments(query=query, limit=limit)))

    async def conversations_send(self, request: Request) -> Response:
        """Send a message, once."""
        body = await read_model(request, SendBody, limit=self._limit)
        asked = SendArguments.model_validate(_arguments(body))
        agent = agent_of(self._service.config, body.agent)
        try:
            return json_answer(await self._conversations.send(asked, agent_id=agent))
        except CallError as error:
            raise _told(error) from error

    async def conversations_turn(self, request: Request) -> Response:
        """Send a message, once, and wait for the reply."""
        body = await read_model(request, TurnBody, limit=self._limit)
        asked = TurnArguments.model_validate(_arguments(body))
        agent = agent_of(self._service.config, body.agent)

        async def turned() -> JsonObject:
            return await self._conversations.turn(asked, agent_id=agent)

        try:
            done = await while_connected(request.receive, turned, on_gone=_nothing)
        except CallError as error:
            raise _told(error) from error
        return json_answer(self._service.redactor.value(done))


class WebhookRoutes:
    """Messages that come in."""

    def __init__(self, service: Service) -> None:
        self._inbound = service.messages.inbound
        self._limit = min(MAX_BYTES, service.config.gateway.limits.max_request_bytes)

    async def receive_message(self, request: Request) -> Response:
        """Take a message of a channel; a run answers it."""
        data = await read_json_bytes(request, limit=self._limit)
        header = request.headers.get(HEADER, "")
        return json_answer(
            await self._inbound.take(request.path_params["channel"], header, data), 202
        )


def _arguments(body: SendBody) -> JsonObject:
    return body.model_dump(by_alias=True, exclude={"agent"})


def _told(error: CallError) -> ApiError:
    """Return the answer for a message that was not delivered: only once is it ever sent."""
    if error.code == "invalid_input":
        refused = not_found(error.message, "conversation_not_found")
        refused.param = "conversationRef"
        return refused
    return ApiError(502, error.message, "not_delivered", type="upstream_error", retry=False)


def _nothing() -> None:
    """The message is out; its reply is nobody's."""
