"""Owns a channel that is a signed webhook: a message out, perhaps a reply back.

Above: conversations. Below: `http_types`. Refuses to know: tools.

A request is a JSON body with the header `X-Toolcell-Signature: t=<unix seconds>,v1=<hex>`, where
hex is HMAC-SHA256 of `<t>.<body>` with the channel's secret. A reply to a turn is signed the same
way over `<t>.<message id>.<body>`, so that no reply can be taken from another message.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from toolcell.base.clock import Clock
from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import clip_utf8, dumps, loads
from toolcell.errors import CallError
from toolcell.sources.core.http_types import Http, HttpReply, HttpRequest
from toolcell.sources.core.work import failed

HEADER: Final = "x-toolcell-signature"
TOLERANCE_SECONDS: Final = 300
"""How far the clocks of both sides may be apart."""

REPLY_BYTES: Final = 256 << 10
_SIGNATURE: Final = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """Where a channel is.

    Attributes:
        id: Its name in the config.
        url: Where messages go; the operator's choice, so it may be private.
        secret: Signs both ways.
        conversations: Labels by the receiver's keys.
        seconds: How long the receiver may take to accept a message.
    """

    id: str
    url: str
    secret: str
    conversations: Mapping[str, str]
    seconds: float = 30.0

    def __repr__(self) -> str:
        """Name it without its secret."""
        return f"WebhookChannel({self.id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One message. `type` says whether a reply is waited for."""

    type: Literal["send", "turn"]
    conversation: str
    text: str
    agent_id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The receiver took the message; `reply` is None when it gave none."""

    message_id: str
    reply: str | None


def signature(secret: str, *parts: str) -> str:
    """Return the hex HMAC-SHA256 of the parts, joined by dots."""
    data = ".".join(parts).encode("utf-8", "surrogatepass")
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


async def deliver(
    http: Http, channel: WebhookChannel, message: Outgoing, clock: Clock
) -> Delivered:
    """Send a message, once: a second try could say it twice.

    Raises:
        CallError: it was not accepted, or the reply is not the receiver's. Its effect is unknown
            once it was sent.
    """
    message_id, now = fresh("msg"), str(int(clock.wall()))
    body = dumps(
        {
            "id": message_id,
            "type": message.type,
            "conversation": message.conversation,
            "text": message.text,
            "agentId": message.agent_id,
        }
    )
    signed = f"t={now},v1={signature(channel.secret, now, body)}"
    request = HttpRequest(
        url=channel.url,
        method="POST",
        headers={"Content-Type": "application/json", HEADER: signed},
        content=body.encode("utf-8", "surrogatepass"),
        max_bytes=REPLY_BYTES,
        seconds=message.seconds,
    )
    try:
        reply = await http.send(request)
    except CallError as error:
        # The address may hold a token of the receiver.
        text = error.message.replace(repr(channel.url[:200]), f"channel {channel.id!r}")
        raise CallError(text, effect="unknown", untrusted=error.untrusted) from None
    if not 200 <= reply.status < 300:
        refusal = f"Channel {channel.id!r} did not take the message (status {reply.status})."
        # A server that broke may have passed it on before.
        raise _unusable(refusal) if reply.status >= 500 else failed(refusal)
    if message.type == "send" or not reply.body.strip():
        return Delivered(message_id=message_id, reply=None)
    return Delivered(message_id=message_id, reply=_reply(channel, message_id, reply, clock))


def _reply(channel: WebhookChannel, message_id: str, reply: HttpReply, clock: Clock) -> str | None:
    """Return the signed reply; None when the receiver says that it has none."""
    where = f"The reply of channel {channel.id!r}"
    found = _SIGNATURE.fullmatch(reply.headers.get(HEADER, ""))
    if found is None or reply.truncated:
        what = "is too long" if reply.truncated else "is not signed"
        message = f"{where} {what}, so it is not used. The message was delivered."
        raise _unusable(message)
    at, given = found.groups()
    text = reply.body.decode("utf-8", "surrogateescape")
    data = f"{at}.{message_id}.".encode() + text.encode("utf-8", "surrogateescape")
    expected = hmac.new(channel.secret.encode(), data, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, given):
        message = f"{where} has a wrong signature, so it is not used."
        raise _unusable(message)
    if abs(clock.wall() - int(at)) > TOLERANCE_SECONDS:
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


def _unusable(message: str) -> CallError:
    return CallError(message, code="tool_error", effect="unknown")
