"""Owns `Messaging`: messages out and messages in, put together for a gateway.

Above: `service`. Below: `inbound`, `inbound_replies`, `app.core_setup`. No behaviour of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcell.app.core_setup import conversations_of, services
from toolcell.app.runtime import Runtime
from toolcell.app.settings import sessions_path_of
from toolcell.gateway.inbound import Inbound, InboundPorts, inbound_channels
from toolcell.gateway.inbound_replies import ReplySender
from toolcell.gateway.runs import RunDesk
from toolcell.sessions.deliveries import DeliveryBook
from toolcell.sources.core.conversations import Conversations
from toolcell.sources.core.expecting import ExpectedReplies


@dataclass(frozen=True, slots=True, kw_only=True)
class Messaging:
    """What the gateway has of conversations.

    Attributes:
        conversations: Whom messages can be sent to.
        inbound: Takes messages of webhook channels.
        replies: Sends back what their runs say.
        expected: The turns that wait for replies.
        book: Which messages were taken.
    """

    conversations: Conversations
    inbound: Inbound
    replies: ReplySender
    expected: ExpectedReplies
    book: DeliveryBook


def messaging(
    runtime: Runtime, runs: RunDesk, expected: ExpectedReplies, *, owner: str
) -> Messaging:
    """Return it for the runtime of the program `owner`.

    Raises:
        ConfigError: a channel cannot be used.
    """
    config = runtime.config
    book = DeliveryBook(sessions_path_of(config), owner)
    replies = ReplySender(services(), runtime, book)
    ports = InboundPorts(
        runtime=runtime,
        runs=runs,
        book=book,
        expected=expected,
        replies=replies,
    )
    return Messaging(
        conversations=conversations_of(config, expected, clock=runtime.host.clock),
        inbound=Inbound(inbound_channels(config), ports),
        replies=replies,
        expected=expected,
        book=book,
    )
