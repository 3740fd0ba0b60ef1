"""Owns `Redactor`: masks secrets, found by exact value, in what is stored (SE-08).

Above: the gate, which masks event copies; never what the running cell gets. Below: `base`.
Refuses to know: where secrets come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

MASK: Final = "[redacted]"
MIN_SECRET_CHARS: Final = 4
"""Shorter values are left alone: masking `1` or `no` would destroy every record."""


class Redactor:
    """Replaces every occurrence of the given values by `[redacted]`.

    Args:
        values: The secrets; blank ones and those under 4 characters are left alone.
    """

    __slots__ = ("_regex",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        secrets = sorted({v for v in values if len(v.strip()) >= MIN_SECRET_CHARS}, key=len)
        self._regex = re.compile("|".join(map(re.escape, reversed(secrets)))) if secrets else None

    def text(self, text: str) -> str:
        """Return `text` with the secrets masked."""
        return text if self._regex is None else self._regex.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """Return plain JSON with the secrets masked in strings, keys and numbers.

        Containers are copied only when there is something to look for.
        """
        if self._regex is None:
            return value
        if isinstance(value, str):
            return self._regex.sub(MASK, value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if value is None or isinstance(value, bool):
            return value
        return MASK if self._regex.search(str(value)) else value


NO_SECRETS: Final = Redactor()
