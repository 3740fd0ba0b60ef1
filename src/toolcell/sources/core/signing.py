"""Owns how messages of a webhook channel are signed and how signatures are checked.

A request carries `X-Toolcell-Signature: t=<unix seconds>,v1=<hex>`, where hex is HMAC-SHA256 with
the channel's secret. What is signed differs by direction, so that nothing that was signed for one
can be used in another:

    a message out                <t>.<body>
    the answer to a turn         <t>.<message id>.<body>
    a message in                 <t>.in.<body>

Above: `webhook`, a gateway's inbound side. Below: `hmac`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

HEADER: Final = "x-toolcell-signature"
TOLERANCE_SECONDS: Final = 300
"""How far the clocks of both sides may be apart."""

INBOUND: Final = b"in"
_FORM: Final = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a header says: when, and the hex digest."""

    at: str
    hex: str

    def fits(self, secret: str, *parts: bytes) -> bool:
        """Whether it was made with `secret`; takes as long whatever it holds."""
        return hmac.compare_digest(_digest(secret, self.at, *parts), self.hex)


def sign(secret: str, at: str, *parts: bytes) -> str:
    """Return the value of the header for parts signed at `at`."""
    return f"t={at},v1={_digest(secret, at, *parts)}"


def read_header(text: str) -> Signature | None:
    """Return what a header says; None when it has another form."""
    found = _FORM.fullmatch(text)
    return None if found is None else Signature(*found.groups())


def in_time(signature: Signature, now: float) -> bool:
    """Whether it was made about now."""
    return abs(now - int(signature.at)) <= TOLERANCE_SECONDS


def _digest(secret: str, at: str, *parts: bytes) -> str:
    data = b".".join((at.encode(), *parts))
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
