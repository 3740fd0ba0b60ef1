"""Owns the one sort order of ids and names: locale-like, written down once.

Above: snapshot, names, quick index, listings. Below: `unicodedata`. Refuses to know: what is
sorted. The directory prompt alone sorts by code point and does not use this.
"""

from __future__ import annotations

import unicodedata
from typing import Final, TypeAlias

SortKey: TypeAlias = tuple[str, str, str]

# The order Unicode collation gives ASCII when punctuation is not ignored: blanks, punctuation,
# symbols, digits, letters. Only the relative order matters, so each mark becomes a low code point.
_MARKS: Final = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_PRIMARY: Final = {ord(mark): chr(index + 1) for index, mark in enumerate(_MARKS)}


def sort_key(text: str) -> SortKey:
    """Return the key by which ids and names are sorted everywhere.

    Punctuation comes before digits before letters; letters differ first by base letter, then by
    accent, then by case with lower before upper: `__openclaw_x` < `1st`, `list_invoices` <
    `listInvoices`, `a` < `A` < `b`. Different texts always have different keys.
    """
    if text.isascii():
        return (text.lower().translate(_PRIMARY), "", text.swapcase())
    parts = unicodedata.normalize("NFKD", text)
    base = "".join(char for char in parts if not unicodedata.combining(char))
    return (base.casefold().translate(_PRIMARY), parts.casefold(), text.swapcase() + "\0" + text)
