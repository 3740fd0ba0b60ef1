"""Owns `Redactor`: masks secrets, found by exact value, in what is stored (SE-08).

Above: the gate, which masks event copies; never what the running cell gets. Below: `base`.
Refuses to know: where secrets come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from toolcell.base.jsontext import dumps

MASK: Final = "[redacted]"
MIN_SECRET_CHARS: Final = 4
"""Shorter values are left alone: masking `1` or `no` would destroy every record."""


class Redactor:
    """Replaces every occurrence of the given values by `[redacted]`.

    Args:
        values: The secrets; blank ones and those under 4 characters are left alone.
    """

    __slots__ = ("_as_json", "_regex")

    def __init__(self, values: Iterable[str] = ()) -> None:
        secrets = sorted({v for v in values if len(v.strip()) >= MIN_SECRET_CHARS}, key=len)
        self._regex = re.compile("|".join(map(re.escape, reversed(secrets)))) if secrets else None
        self._as_json = tuple(dumps(each)[1:-1] for each in secrets)

    def text(self, text: str) -> str:
        """Return `text` with the secrets masked."""
        return text if self._regex is None else self._regex.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """Return plain JSON with the secrets masked in strings, keys and numbers.

        Containers are copied only when there is something to mask. JSON text is written and
        searched several times faster than a value is walked, and most values hold no secret.
        """
        if self._regex is None or not self._may_hold(value):
            return value
        try:
            return self._masked(value)
        except RecursionError:
            return self._masked_deeply(value)

    def _may_hold(self, value: Any) -> bool:
        try:
            text = dumps(value)
        except (TypeError, ValueError, RecursionError):
            return True
        return any(secret in text for secret in self._as_json)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self._masked(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        return self._leaf(value)

    def _masked_deeply(self, value: Any) -> Any:
        """Do the same without recursion, for what is nested deeper than Python's stack."""
        root = [value]
        todo: list[tuple[Any, Any]] = [(root, 0)]
        while todo:
            holder, key = todo.pop()
            item = holder[key]
            if isinstance(item, dict):
                made: Any = {self.text(name): inner for name, inner in item.items()}
                todo.extend((made, name) for name in made)
            elif isinstance(item, list | tuple):
                made = list(item)
                todo.extend((made, index) for index in range(len(made)))
            else:
                made = self._leaf(item)
            holder[key] = made
        return root[0]

    def _leaf(self, value: Any) -> Any:
        if self._regex is None or value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._regex.sub(MASK, value)
        return MASK if self._regex.search(str(value)) else value


NO_SECRETS: Final = Redactor()
