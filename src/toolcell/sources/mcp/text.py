"""Owns cleaning of text that a remote server wrote: no control characters, no unbounded length.

Above: listings, results, logs. Below: the standard library.
Refuses to know: the 512-unit bound of rule 4.9 and the untrusted wrapper, which others apply.
"""

from __future__ import annotations

import re

# C0 and C1 controls but tab and newline; directional marks, embeddings, overrides and isolates,
# byte-order mark and tag characters, which hide or reorder text for a person and not for a model.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_SPACES = re.compile(r"\s+")


def clean(text: str, limit: int) -> str:
    """Return `text` without control and directional characters, at most `limit` characters."""
    kept = _UNWANTED.sub("", text[: limit * 4].replace("\r\n", "\n"))
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def one_line(text: str, limit: int) -> str:
    """Return `clean` text on one line."""
    return _SPACES.sub(" ", clean(text, limit)).strip()
