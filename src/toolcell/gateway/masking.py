"""Owns masking secrets in a text that comes in pieces.

Above: `answering`. Below: `calls.redaction`. Refuses to know: where the secrets are from.
"""

from __future__ import annotations

from toolcell.calls.redaction import Redactor


class StreamMask:
    """Holds back what may be the beginning of a secret until it is known not to be."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._secrets = redactor.forms
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what may be shown now; it may be empty."""
        if not self._secrets:
            return piece
        text = self._redactor.text(self._held + piece)
        keep = self._may_begin(text)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep]

    def rest(self) -> str:
        """Return what was held back."""
        held, self._held = self._held, ""
        return self._redactor.text(held)

    def _may_begin(self, text: str) -> int:
        """Return how many last characters may be the beginning of a secret."""
        first = len(text)
        for secret in self._secrets:
            at = text.find(secret[0], max(0, len(text) - len(secret) + 1), first)
            while at != -1 and not secret.startswith(text[at:]):
                at = text.find(secret[0], at + 1, first)
            if at != -1:
                first = at
        return len(text) - first
