"""Owns `conversations_list`, `conversations_send`, `conversations_turn` and their schemas.

Above: `sources.core.toolset`; a gateway that offers the methods `conversations.list/send/turn`
answers with the same schemas (rule 7.5). Below: `webhook`. Refuses to know: how a channel works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.base.clock import Clock
from toolcell.base.jsontext import JsonObject, dumps
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, STRING, array, closed, constant
from toolcell.sources.core.http_types import Http
from toolcell.sources.core.webhook import Delivered, Outgoing, WebhookChannel, deliver
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


class _Conversations:
    """What the three tools do."""

    def __init__(self, http: Http, channels: Sequence[WebhookChannel], clock: Clock) -> None:
        self._http = http
        self._directory = _Directory(channels)
        self._clock = clock

    async def listed(self, arguments: ListArguments) -> ToolResult:
        """Say who can be written to."""
        found = self._directory.matching(arguments.query)
        shown = [
            {"conversationRef": each.ref, "label": each.label, "channel": each.channel.id}
            for each in found[: arguments.limit]
        ]
        return _told({"conversations": shown, "truncated": len(shown) < len(found)})

    async def send(self, arguments: SendArguments, context: ToolContext) -> ToolResult:
        """Say something."""
        to = self._directory.find(arguments.conversation_ref)
        done = await self._deliver(to, "send", arguments, context, to.channel.seconds)
        return _told({"status": "sent", "conversationRef": to.ref, "messageId": done.message_id})

    async def turn(self, arguments: TurnArguments, context: ToolContext) -> ToolResult:
        """Say something and wait for the reply."""
        to = self._directory.find(arguments.conversation_ref)
        done = await self._deliver(to, "turn", arguments, context, arguments.wait_ms / 1000)
        place = {"conversationRef": to.ref, "messageId": done.message_id}
        if done.reply is None:
            return _told({"status": "no_reply", **place})
        return _told({"status": "replied", **place, "reply": done.reply}, untrusted=True)

    async def _deliver(
        self,
        to: _Conversation,
        kind: Literal["send", "turn"],
        arguments: SendArguments,
        context: ToolContext,
        seconds: float,
    ) -> Delivered:
        message = Outgoing(
            type=kind,
            conversation=to.key,
            text=arguments.message,
            agent_id=context.scope.agent_id,
            seconds=seconds,
        )
        return await deliver(self._http, to.channel, message, self._clock)


def conversation_tools(
    http: Http, channels: Sequence[WebhookChannel], *, clock: Clock
) -> list[Tool]:
    """Return the three tools.

    Args:
        http: Sends messages; the addresses are the operator's choice.
        channels: Where conversations are; none gives an empty list.
        clock: For signatures.
    """
    work = _Conversations(http, channels, clock)
    return [
        build_tool(
            name="conversations_list",
            label="Conversations",
            description="List the conversations messages can be sent to.",
            parameters=ListArguments,
            output_schema=LIST_OUTPUT,
            execute=work.listed,
            replay_safe=True,
        ),
        build_tool(
            name="conversations_send",
            label="Send message",
            description="Send a message to a conversation. It is delivered at most once.",
            parameters=SendArguments,
            output_schema=SEND_OUTPUT,
            execute=work.send,
            replay_safe=False,
        ),
        build_tool(
            name="conversations_turn",
            label="Ask in a conversation",
            description="Send a message to a conversation and wait for the reply to it.",
            parameters=TurnArguments,
            output_schema=TURN_OUTPUT,
            execute=work.turn,
            replay_safe=False,
        ),
    ]


def _told(details: dict[str, Any], *, untrusted: bool = False) -> ToolResult:
    return ToolResult(content=(TextContent(dumps(details)),), details=details, untrusted=untrusted)
