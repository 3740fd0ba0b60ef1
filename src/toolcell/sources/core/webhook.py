"""Owns a channel that is a signed webhook: a message out, perhaps a reply back.

Above: conversations, a gateway's replies. Below: `signing`, `http_types`. Refuses to know: tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from toolcell.base.clock import Clock
from toolcell.base.jsontext import JsonObject, clip_utf8, dumps, loads, utf8
from toolcell.errors import CallError
from toolcell.sources.core.http_types import Http, HttpReply, HttpRequest
from toolcell.sources.core.signing import HEADER, Signature, in_time, read_header, sign
from toolcell.sources.core.work import failed

REPLY_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """Where a channel is.

    Attributes:
        id: Its name in the config.
        url: Where messages go; the operator's choice, so it may be private.
        secret: Signs both ways.
        conversations: Labels by the receiver's keys.
        seconds: How long the receiver may take to accept a message.
        receives: Whether messages come in too, so that the reply to a turn may be one of them.
    """

    id: str
    url: str
    secret: str
    conversations: Mapping[str, str]
    seconds: float = 30.0
    receives: bool = False

    def __repr__(self) -> str:
        """Name it without its secret."""
        return f"WebhookChannel({self.id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One message.

    Attributes:
        id: Its id; the same each time it is sent.
        type: `turn` when a reply is waited for, `reply` when it answers a message that came in.
        more: Further fields of its body.
    """

    id: str
    type: Literal["send", "turn", "reply"]
    conversation: str
    text: str
    agent_id: str
    seconds: float
    more: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The receiver took the message.

    Attributes:
        reply: What it answered; None when it gave no reply.
        closed: Whether it said that there is none, so that none is to be waited for.
    """

    reply: str | None = None
    closed: bool = False


async def deliver(
    http: Http, channel: WebhookChannel, message: Outgoing, clock: Clock
) -> Delivered:
    """Send a message, once: a second try could say it twice.

    Raises:
        CallError: it was not accepted, or the reply is not the receiver's. Its effect is unknown
            once it was sent.
    """
    reply = await post(http, channel, message, clock)
    if not 200 <= reply.status < 300:
        refusal = f"Channel {channel.id!r} did not take the message (status {reply.status})."
        # A server that broke may have passed it on before.
        raise _unusable(refusal) if reply.status >= 500 else failed(refusal)
    if message.type != "turn" or not reply.body.strip():
        return Delivered()
    text = _reply(channel, message.id, reply, clock)
    return Delivered(reply=text, closed=text is None)


async def post(http: Http, channel: WebhookChannel, message: Outgoing, clock: Clock) -> HttpReply:
    """Send a message, once, and return the answer, whatever it says.

    Raises:
        CallError: there was none.
    """
    now = str(int(clock.wall()))
    body = utf8(
        dumps(
            {
                "id": message.id,
                "type": message.type,
                "conversation": message.conversation,
                "text": message.text,
                "agentId": message.agent_id,
                **message.more,
            }
        )
    )
    request = HttpRequest(
        url=channel.url,
        method="POST",
        headers={"Content-Type": "application/json", HEADER: sign(channel.secret, now, body)},
        content=body,
        max_bytes=REPLY_BYTES,
        seconds=message.seconds,
    )
    try:
        return await http.send(request)
    except CallError as error:
        # The address may hold a token of the receiver.
        text = error.message.replace(repr(channel.url[:200]), f"channel {channel.id!r}")
        raise CallError(text, effect="unknown", untrusted=error.untrusted) from None


def _reply(channel: WebhookChannel, message_id: str, reply: HttpReply, clock: Clock) -> str | None:
    """Return the signed reply; None when the receiver says that it has none."""
    where = f"The reply of channel {channel.id!r}"
    found = read_header(reply.headers.get(HEADER, ""))
    if found is None or reply.truncated:
        what = "is too long" if reply.truncated else "is not signed"
        message = f"{where} {what}, so it is not used. The message was delivered."
        raise _unusable(message)
    if not _signed(channel, message_id, reply.body, found):
        message = f"{where} has a wrong signature, so it is not used."
        raise _unusable(message)
    if not in_time(found, clock.wall()):
        message = f"{where} was signed at another time, so it is not used."
        raise _unusable(message)
    try:
        value = loads(reply.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("reply"), str | None):
        message = f"{where} is not {{'reply': text}}."
        raise _unusable(message)
    given_text = value.get("reply")
    return None if given_text is None else clip_utf8(given_text, REPLY_BYTES)


def _signed(channel: WebhookChannel, message_id: str, body: bytes, given: Signature) -> bool:
    return given.fits(channel.secret, message_id.encode(), body)


def _unusable(message: str) -> CallError:
    return CallError(message, code="tool_error", effect="unknown")
