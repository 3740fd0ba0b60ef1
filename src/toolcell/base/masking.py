"""Owns `Masker`: takes secrets out of what is shown or handed on (SE-08).

It finds them in three ways: by the name they stand under, by value, and by the shape of well-known
keys. Meant for what leaves the process for people: debug output and exported bundles.

Above: debug output, trajectories. Below: `re`. Refuses to know: where values come from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "[redacted]"
MIN_VALUE_CHARS: Final = 4
"""Shorter values are left alone: masking `1` or `no` would destroy every text."""
MIN_LEARNED_CHARS: Final = 8
"""What merely stood under a secret's name is taken for one everywhere only from this length."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS: Final = frozenset(
    {
        *("password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials"),
        *("authorization", "cookie", "apikey", "authtoken", "accesstoken"),
    }
)
_KEY_KINDS: Final = frozenset(
    {"api", "access", "private", "secret", "auth", "signing", "encryption", "account"}
)
_PAGING: Final = frozenset(["page", "next", "continuation", "cursor", "sync", "start"])

_NAMES: Final = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|client[_-]?secret|secret"
    r"|(?:access|auth|refresh|id|bearer|session)[_-]?token|token|passw(?:or)?d|passphrase"
    r"|authorization|cookie)"
)
_NAMED: Final = re.compile(
    # "apiKey": "value" and password = 'value', also inside JSON text that is a string itself.
    rf"""((?:\b|_){_NAMES}\\*["']?\s*[:=]\s*\\*["'])([^"'\\\s][^"'\\]{{3,}})""",
    re.IGNORECASE,
)
_QUERY: Final = re.compile(rf"""([?&]{_NAMES}=)([^&\s"'#]+)""", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    r"""\b([A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=)([^\s"';]{4,})"""
)
_SCHEME: Final = re.compile(r"\b((?:Bearer|Basic)\s+)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_USERINFO: Final = re.compile(
    r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{0,256}:)([^\s/@]{1,256})(?=@)", re.IGNORECASE
)
_SHAPES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{12,}|\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)
_BOTH: Final = (True, False)
_PARTED: Final = (_NAMED, _QUERY, _ASSIGNED, _SCHEME, _USERINFO)


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether what stands under `name` is a secret: `apiKey`, `X-Auth-Token`, `db_password`."""
    words = [word.lower() for word in _WORDS.findall(name[:256])]
    if not words:
        return False
    if _SECRET_WORDS.intersection(words):
        return True
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "token":
        return before not in _PAGING
    return words[-1] == "key" and before in _KEY_KINDS


class Masker:
    """Replaces secrets by `[redacted]`.

    Args:
        values: Secrets that are known; each is also found escaped for JSON or an address.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known = {value for value in values if len(value.strip()) >= MIN_VALUE_CHARS}
        self._regex = self._compiled()

    def learn(self, value: Any) -> None:
        """Take the texts that stand under a secret's name anywhere in `value` for secrets."""
        found = {text for text in _named_values(value) if len(text.strip()) >= MIN_LEARNED_CHARS}
        if not found <= self._known:
            self._known |= found
            self._regex = self._compiled()

    def text(self, text: str) -> str:
        """Return `text` with secrets masked, by value and by shape."""
        if self._regex is not None:
            text = self._regex.sub(MASK, text)
        text = _SHAPES.sub(MASK, text)
        for pattern in _PARTED:
            text = pattern.sub(_keep_name, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a copy of plain JSON with secrets masked, by name, value and shape.

        What is nested too deeply to be looked through is masked as a whole.
        """
        try:
            return self._masked(value)
        except RecursionError:
            return MASK

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): MASK if _hidden(str(key), item) else self._masked(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        if value is None or isinstance(value, bool) or self._regex is None:
            return value
        return MASK if self._regex.search(str(value)) else value

    def _compiled(self) -> re.Pattern[str] | None:
        forms = {form for value in self._known for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        return re.compile("|".join(map(re.escape, longest_first))) if forms else None


def _keep_name(match: re.Match[str]) -> str:
    return match[0] if match[2] == MASK else match[1] + MASK


def _hidden(name: str, item: Any) -> bool:
    """A schema may describe a password; only a value itself is hidden."""
    if isinstance(item, bool) or item is None or item == "":
        return False
    return isinstance(item, str | int | float) and names_a_secret(name)


def _named_values(value: Any) -> Iterable[str]:
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, Mapping):
            for name, inner in item.items():
                if isinstance(inner, str):
                    if inner != MASK and names_a_secret(str(name)):
                        yield inner
                else:
                    left.append(inner)
        elif isinstance(item, list | tuple):
            left.extend(item)


def _forms(value: str) -> set[str]:
    """JSON text may be a string inside of JSON text, as the arguments of a call are."""
    forms = {value}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in _BOTH}
    return forms | {quote(value, safe="", errors="replace")}
