"""Owns `conversations_list`, `conversations_send`, `conversations_turn` and their schemas.

Above: `sources.core.toolset`; the gateway's methods `conversations.list/send/turn` do the same
with the same schemas (rule 7.5). Below: `webhook`, `expecting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import anyio
from pydantic import Field

from toolcell.base.clock import Clock
from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import JsonObject, dumps
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, STRING, array, closed, constant
from toolcell.sources.core.expecting import Expected, ExpectedReplies
from toolcell.sources.core.http_types import Http
from toolcell.sources.core.webhook import Outgoing, WebhookChannel, deliver
from toolcell.sources.core.work import Arguments, refused
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

MAX_MESSAGE_CHARS: Final = 32_000
MAX_WAIT_MS: Final = 600_000

LIST_OUTPUT: Final[JsonObject] = closed(
    {
        "conversations": array(
            closed({"conversationRef": STRING, "label": STRING, "channel": STRING})
        ),
        "truncated": BOOLEAN,
    }
)
SEND_OUTPUT: Final[JsonObject] = closed(
    {"status": constant("sent"), "conversationRef": STRING, "messageId": STRING}
)
TURN_OUTPUT: Final[JsonObject] = {
    "anyOf": [
        closed(
            {
                "status": constant("replied"),
                "conversationRef": STRING,
                "messageId": STRING,
                "reply": STRING,
            }
        ),
        closed({"status": constant("no_reply"), "conversationRef": STRING, "messageId": STRING}),
    ]
}


class ListArguments(Arguments):
    """Arguments of `conversations_list`."""

    query: Annotated[str, Field(max_length=200, description="Words its label must hold.")] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="Conversations at most.")] = 50


class SendArguments(Arguments):
    """Arguments of `conversations_send`."""

    conversation_ref: Annotated[
        str, Field(min_length=1, max_length=500, description="From conversations_list.")
    ]
    message: Annotated[
        str, Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="What to say.")
    ]


class TurnArguments(SendArguments):
    """Arguments of `conversations_turn`."""

    wait_ms: Annotated[
        int, Field(ge=100, le=MAX_WAIT_MS, description="How long to wait for the reply.")
    ] = 120_000


@dataclass(frozen=True, slots=True)
class _Conversation:
    ref: str
    label: str
    key: str
    channel: WebhookChannel


class _Directory:
    """Every conversation of every channel."""

    def __init__(self, channels: Sequence[WebhookChannel]) -> None:
        found = [
            _Conversation(f"webhook:{channel.id}/{key}", label, key, channel)
            for channel in channels
            for key, label in channel.conversations.items()
        ]
        self._by_ref: Mapping[str, _Conversation] = {each.ref: each for each in found}

    def matching(self, query: str) -> list[_Conversation]:
        words = query.casefold().split()
        return [
            each
            for each in self._by_ref.values()
            if all(word in f"{each.label} {each.channel.id}".casefold() for word in words)
        ]

    def find(self, ref: str) -> _Conversation:
        found = self._by_ref.get(ref)
        if found is None:
            message = f"There is no conversation {ref[:80]!r}; take one of conversations_list."
            raise refused(message)
        return found


class Conversations:
    """What the three methods do, for tools and for a gateway.

    Args:
        http: Sends messages; the addresses are the operator's choice.
        channels: Where conversations are.
        clock: For signatures.
        expected: Where turns wait for replies that come in as messages; None when none can.
    """

    def __init__(
        self,
        http: Http,
        channels: Sequence[WebhookChannel],
        *,
        clock: Clock,
        expected: ExpectedReplies | None = None,
    ) -> None:
        self.expected = expected
        self._http = http
        self._directory = _Directory(channels)
        self._clock = clock

    def listed(self, arguments: ListArguments) -> JsonObject:
        """Say who can be written to."""
        found = self._directory.matching(arguments.query)
        shown = [
            {"conversationRef": each.ref, "label": each.label, "channel": each.channel.id}
            for each in found[: arguments.limit]
        ]
        return {"conversations": shown, "truncated": len(shown) < len(found)}

    async def send(self, arguments: SendArguments, *, agent_id: str) -> JsonObject:
        """Say something.

        Raises:
            CallError: there is no such conversation, or the message was not taken.
        """
        to = self._directory.find(arguments.conversation_ref)
        message = self._message(to, "send", arguments.message, agent_id, to.channel.seconds)
        await deliver(self._http, to.channel, message, self._clock)
        return {"status": "sent", "conversationRef": to.ref, "messageId": message.id}

    async def turn(self, arguments: TurnArguments, *, agent_id: str) -> JsonObject:
        """Say something and wait for the reply.

        Raises:
            CallError: there is no such conversation, or the message was not taken, or the reply
                is not the receiver's.
        """
        to = self._directory.find(arguments.conversation_ref)
        seconds = arguments.wait_ms / 1000
        message = self._message(to, "turn", arguments.message, agent_id, seconds)
        if self.expected is None or not to.channel.receives:
            reply = (await deliver(self._http, to.channel, message, self._clock)).reply
        else:
            with self.expected.expecting(to.channel.id, to.key, message.id) as expected:
                reply = await self._awaited(to, message, expected)
        place = {"conversationRef": to.ref, "messageId": message.id}
        if reply is None:
            return {"status": "no_reply", **place}
        return {"status": "replied", **place, "reply": reply}

    async def _awaited(
        self, to: _Conversation, message: Outgoing, expected: Expected
    ) -> str | None:
        """Return the reply, in the answer to the request or as a message that comes in."""
        ends_at = self._clock.monotonic() + message.seconds
        try:
            answered = await deliver(self._http, to.channel, message, self._clock)
        except CallError:
            if expected.reply is None:
                raise
            return expected.reply
        if answered.reply is None and not answered.closed:
            with anyio.move_on_after(max(0.0, ends_at - self._clock.monotonic())):
                await expected.wait()
        return expected.reply if answered.reply is None else answered.reply

    def _message(
        self,
        to: _Conversation,
        kind: Literal["send", "turn"],
        text: str,
        agent_id: str,
        seconds: float,
    ) -> Outgoing:
        return Outgoing(
            id=fresh("msg"),
            type=kind,
            conversation=to.key,
            text=text,
            agent_id=agent_id,
            seconds=seconds,
        )


def conversation_tools(work: Conversations) -> list[Tool]:
    """Return the three tools."""

    async def listed(arguments: ListArguments) -> ToolResult:
        return _told(work.listed(arguments))

    async def send(arguments: SendArguments, context: ToolContext) -> ToolResult:
        return _told(await work.send(arguments, agent_id=context.scope.agent_id))

    async def turn(arguments: TurnArguments, context: ToolContext) -> ToolResult:
        details = await work.turn(arguments, agent_id=context.scope.agent_id)
        return _told(details, untrusted=details["status"] == "replied")

    return [
        build_tool(
            name="conversations_list",
            label="Conversations",
            description="List the conversations messages can be sent to.",
            parameters=ListArguments,
            output_schema=LIST_OUTPUT,
            execute=listed,
            replay_safe=True,
        ),
        build_tool(
            name="conversations_send",
            label="Send message",
            description="Send a message to a conversation. It is delivered at most once.",
            parameters=SendArguments,
            output_schema=SEND_OUTPUT,
            execute=send,
            replay_safe=False,
        ),
        build_tool(
            name="conversations_turn",
            label="Ask in a conversation",
            description="Send a message to a conversation and wait for the reply to it.",
            parameters=TurnArguments,
            output_schema=TURN_OUTPUT,
            execute=turn,
            replay_safe=False,
        ),
    ]


def _told(details: dict[str, Any], *, untrusted: bool = False) -> ToolResult:
    return ToolResult(content=(TextContent(dumps(details)),), details=details, untrusted=untrusted)
