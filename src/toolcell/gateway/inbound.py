"""Owns messages that come in over webhook channels: whose they are, and what comes of each.

    signature → time → rate → what it says → conversation → taken once → a waiting turn, or a run

Nothing is said of a message before its signature fits: an unknown channel, a missing signature and
a wrong one get the same answer. The work of a run begins when the message is on disk as taken, so
that it is begun once, whatever happens.

Above: `webhook_routes`, `service`. Below: `runs`, `inbound_replies`, `sessions.deliveries`.
Refuses to know: HTTP requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from toolcell.app.conversation import Turn
from toolcell.app.core_setup import channels_of
from toolcell.app.runtime import Runtime
from toolcell.app.settings import receive_secrets_of
from toolcell.base.identifiers import digest
from toolcell.base.jsontext import JsonObject
from toolcell.config.tree import Config
from toolcell.config.web_tree import ChannelReceiveSettings
from toolcell.errors import ConfigError
from toolcell.gateway.agents import agent_ids
from toolcell.gateway.api_models import InboundBody
from toolcell.gateway.bodies import parsed
from toolcell.gateway.faults import ApiError, conflict, overloaded
from toolcell.gateway.inbound_replies import Answered, ReplySender
from toolcell.gateway.live import LiveRun
from toolcell.gateway.rates import RateLimit
from toolcell.gateway.runs import RunDesk
from toolcell.protocol.scope import RunScope
from toolcell.sessions.deliveries import Delivery, DeliveryBook
from toolcell.sources.core.expecting import ExpectedReplies
from toolcell.sources.core.signing import INBOUND, TOLERANCE_SECONDS, in_time, read_header
from toolcell.sources.core.webhook import WebhookChannel

MAX_BYTES: Final = 256 << 10
"""The largest message with all that is around it."""

CHANNEL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_SESSION: Final = 128
_PLAIN: Final = re.compile(r"[A-Za-z0-9._@-]+")
_NOBODY: Final = "no channel has this secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundChannel:
    """A channel that takes messages."""

    channel: WebhookChannel
    secret: str
    settings: ChannelReceiveSettings

    def __repr__(self) -> str:
        """Name it without its secret."""
        return f"InboundChannel({self.channel.id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundPorts:
    """What messages come to.

    Attributes:
        runtime: Makes the scopes of runs and tells the time.
        runs: Where runs begin.
        book: Which messages were taken.
        expected: The turns that wait for replies.
        replies: Sends what runs say back.
    """

    runtime: Runtime
    runs: RunDesk
    book: DeliveryBook
    expected: ExpectedReplies
    replies: ReplySender


class Inbound:
    """The inbound side of every channel."""

    def __init__(self, channels: Mapping[str, InboundChannel], ports: InboundPorts) -> None:
        self._channels = channels
        self._ports = ports
        self._clock = ports.runtime.host.clock
        self._rates = {
            name: RateLimit(each.settings.messages_per_minute, clock=self._clock)
            for name, each in channels.items()
        }

    async def take(self, channel_id: str, header: str, data: bytes) -> JsonObject:
        """Take a message and say what comes of it.

        Raises:
            ApiError: 400, 401, 404, 409, 429 or 503.
        """
        found = self._signed(channel_id, header, data)
        wait = self._rates[channel_id].take("")
        if wait:
            error = overloaded("too many messages of this channel", "rate_limit_exceeded")
            error.headers = {"retry-after": str(int(wait) + 1)}
            raise error
        body = parsed(data, InboundBody, strict=True)
        if not found.settings.unlisted and body.conversation not in found.channel.conversations:
            message = "this channel has no such conversation; it is not in its `conversations`"
            raise ApiError(404, message, "conversation_not_found", param="conversation")
        delivery = Delivery(channel=channel_id, id=body.id)
        answered = await self._answers_turn(delivery, body)
        return answered if answered is not None else await self._begins(found, delivery, body)

    def _signed(self, channel_id: str, header: str, data: bytes) -> InboundChannel:
        found = self._channels.get(channel_id)
        given = read_header(header)
        secret = _NOBODY if found is None else found.secret
        fits = given is not None and given.fits(secret, INBOUND, data)
        if found is None or given is None or not fits:
            message = (
                "no channel takes a message that is signed like this; check the channel's name, "
                "its secret, and what is signed"
            )
            raise ApiError(401, message, "invalid_signature")
        if not in_time(given, self._clock.wall()):
            message = (
                f"the message was signed more than {TOLERANCE_SECONDS} seconds before or after "
                "now; check the sender's clock, and sign it again for each attempt"
            )
            raise ApiError(401, message, "stale_signature")
        return found

    async def _answers_turn(self, delivery: Delivery, body: InboundBody) -> JsonObject | None:
        """Give the message to a turn that waits for it; None when none does."""
        expected = self._ports.expected.find(delivery.channel, body.conversation, body.reply_to)
        if expected is None:
            return None
        outcome = {"id": body.id, "status": "replied", "messageId": expected.message_id}
        known = await self._claimed(delivery, body, outcome)
        if known is not None:
            return known
        if not expected.give(body.text):
            # It stopped waiting while the message was put on disk, so the message is a new one.
            await self._ports.book.release(delivery)
            return None
        await self._ports.book.answered(delivery)
        return {**outcome, "duplicate": False}

    async def _begins(
        self, found: InboundChannel, delivery: Delivery, body: InboundBody
    ) -> JsonObject:
        """Begin a run that answers the message."""
        scope = self.scope(found, body)
        outcome = {
            "id": body.id,
            "status": "started",
            "runId": scope.run_id,
            "sessionId": scope.session_id,
        }
        known = await self._claimed(delivery, body, outcome)
        if known is not None:
            return known
        live: LiveRun | None = None
        try:
            live = await self.begin(scope, body)
        finally:
            if live is None:
                with anyio.CancelScope(shield=True):
                    await self._ports.book.release(delivery)
        self._ports.replies.follow(live, answer_to(found, body))
        return {**outcome, "duplicate": False}

    def channel(self, channel_id: str) -> InboundChannel | None:
        """Return a channel that takes messages."""
        return self._channels.get(channel_id)

    async def begin(self, scope: RunScope, body: InboundBody) -> LiveRun:
        """Begin the run that answers a message, or put it in line.

        Raises:
            ApiError: it cannot be begun.
        """
        turn = Turn(scope=scope, prompt=body.text)
        return await self._ports.runs.start(turn, listening=False, in_line=True)

    def scope(self, found: InboundChannel, body: InboundBody) -> RunScope:
        """Return the scope of a run that answers a message."""
        agent, name = found.settings.agent, found.channel.id
        return self._ports.runtime.scope(
            session_id=session_of(agent, name, body.conversation),
            agent_id=agent,
            channel=f"webhook:{name}",
            sender=body.sender,
        )

    async def _claimed(
        self, delivery: Delivery, body: InboundBody, outcome: JsonObject
    ) -> JsonObject | None:
        """Take the message for `outcome`; what came of it before, when it was taken before.

        Raises:
            ApiError: 409: the id was used for another message.
        """
        said = self._ports.runtime.redactor.value(body.model_dump(by_alias=True))
        now = self._clock.wall()
        claim = await self._ports.book.claim(delivery, said, outcome, now=now)
        if claim.status == "other":
            message = "this id was used for another message; give each message an id of its own"
            raise conflict(message, "delivery_id_reused", retry=False)
        return {**claim.outcome, "duplicate": True} if claim.status == "known" else None


def answer_to(found: InboundChannel, body: InboundBody) -> Answered:
    """Return how the reply to a message gets back."""
    return Answered(
        channel=found.channel,
        delivery=Delivery(channel=found.channel.id, id=body.id),
        conversation=body.conversation,
        attempts=found.settings.reply_attempts,
        pause=found.settings.reply_delay_ms / 1000,
    )


def inbound_channels(config: Config) -> dict[str, InboundChannel]:
    """Return the channels that take messages.

    Raises:
        ConfigError: a name, an agent or a secret cannot be used.
    """
    secrets, channels = receive_secrets_of(config), channels_of(config)
    found = {}
    for name, channel in config.channels.items():
        settings = channel.receive
        if settings is None:
            continue
        if not CHANNEL_NAME.fullmatch(name):
            message = "a channel that receives is named with 1 to 64 letters, digits, _ or -"
            raise ConfigError(message, path=f"channels.{name}")
        if settings.agent not in agent_ids(config):
            known = ", ".join(agent_ids(config))
            message = f"there is no agent {settings.agent!r}; the agents are {known}"
            raise ConfigError(message, path=f"channels.{name}.receive.agent")
        found[name] = InboundChannel(
            channel=channels[name], secret=secrets[name], settings=settings
        )
    return found


def session_of(agent: str, channel: str, conversation: str) -> str:
    """Return the session of a conversation: no two conversations have the same.

    Names that do not fit into a session id are hashed; the hash holds no colon, plain names two.
    """
    plain = f"webhook:{agent}:{channel}:{conversation}"
    if len(plain) <= MAX_SESSION and all(map(_PLAIN.fullmatch, (agent, conversation))):
        return plain
    return f"webhook:{digest(agent, channel, conversation, length=40)}"
