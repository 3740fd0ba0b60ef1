"""Owns `Redactor`: masks secrets, found by exact value, in what is stored (SE-08).

Above: the gate, which masks event copies; never what the running cell gets. Below: `base`.
Refuses to know: where secrets come from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from toolcell.base.jsontext import dumps

MASK: Final = "[redacted]"
MIN_SECRET_CHARS: Final = 4
"""Shorter values are left alone: masking `1` or `no` would destroy every record."""
_NESTED: Final = 3
"""A key in code, the code in the arguments of `exec`, those in an answer of the model."""


class Redactor:
    """Replaces every occurrence of the given values by `[redacted]`.

    Args:
        values: The secrets; blank ones and those under 4 characters are left alone.

    Attributes:
        forms: What is looked for: the secrets, and how JSON text writes those with quotes,
            backslashes, line breaks or letters beyond ASCII. The longest first.
    """

    __slots__ = ("_as_json", "_regex", "forms")

    def __init__(self, values: Iterable[str] = ()) -> None:
        secrets = {each for each in values if len(each.strip()) >= MIN_SECRET_CHARS}
        found = {form for secret in secrets for form in _forms(secret)}
        self.forms = tuple(sorted(found, key=len, reverse=True))
        self._regex = re.compile("|".join(map(re.escape, self.forms))) if secrets else None
        self._as_json = tuple({dumps(form)[1:-1] for form in self.forms})

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


def _forms(secret: str) -> set[str]:
    """Return a secret as it is and as JSON text writes it, also JSON text within JSON text.

    Messages, programs and steps hold such text: a result, the arguments of a call, code in them.
    """
    forms = {secret}
    for _ in range(_NESTED):
        forms |= {write(form)[1:-1] for form in forms for write in (dumps, json.dumps)}
    return forms
