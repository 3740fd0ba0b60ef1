"""Owns the last look at a request before it is written to the socket (rule 2.6).

A hook on the SDK's HTTP client reads the body from the request itself, so that it is what goes on
the wire, on every attempt, whatever the SDK did to it.

Above: `sdk_wire`. Below: `wire`. Refuses to know: SDKs, what a body may hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import PayloadViolationError
from toolcell.providers.contract import CheckPayload
from toolcell.providers.wire import Exchange, Unwatched, WireWatch


@dataclass(slots=True)
class _Sending:
    exchange: Exchange
    check: CheckPayload | None
    watch: WireWatch
    began: float = field(default_factory=SYSTEM_CLOCK.monotonic)


class Refused(BaseException):
    """Carries a refusal out through an SDK.

    No `Exception`: SDKs take every exception of a hook for a broken connection, and try again.
    """

    def __init__(self, error: PayloadViolationError) -> None:
        super().__init__(error.message)
        self.error = error


_sending: ContextVar[_Sending | None] = ContextVar("toolcell_sending", default=None)


@contextmanager
def sending(exchange: Exchange, check: CheckPayload | None, watch: WireWatch) -> Iterator[None]:
    """Let the hooks know, for the body of the `with` statement, whose request they see."""
    token = _sending.set(_Sending(exchange, check, watch))
    try:
        yield
    finally:
        _sending.reset(token)


async def inspect_request(request: Any) -> None:
    """Hook: check the body as it leaves.

    Raises:
        Refused: the check refused it; it is not sent.
    """
    now = _sending.get()
    if now is None:
        return
    now.exchange.attempt += 1
    now.exchange.sent_bytes = len(request.content)
    now.began = SYSTEM_CLOCK.monotonic()
    if now.check is None and isinstance(now.watch, Unwatched):
        return
    body = json.loads(request.content)
    if now.check is not None:
        try:
            now.check(body)
        except PayloadViolationError as error:
            now.watch.refused(now.exchange, error)
            raise Refused(error) from error
    now.watch.sent(now.exchange, body)


async def inspect_response(response: Any) -> None:
    """Hook: tell who watches that the head of an answer came."""
    now = _sending.get()
    if now is not None:
        elapsed = (SYSTEM_CLOCK.monotonic() - now.began) * 1000
        now.watch.answered(now.exchange, response.status_code, elapsed)
