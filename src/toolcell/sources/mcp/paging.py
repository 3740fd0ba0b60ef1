"""Owns what is taken of a listing of resources, templates or prompts, page by page and bounded.

Above: the connection's calls. Below: `base.jsontext`. Refuses to know: the MCP SDK, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcell.base import jsontext

MAX_ITEMS: Final = 10_000
MAX_BYTES: Final = 8 << 20
"""UTF-8 bytes of the items of one listing: half of what a result may have."""
MAX_CURSOR: Final = 65_536

_Read = Callable[[Any], dict[str, Any] | None]


class Items:
    """The items of one listing so far.

    Attributes:
        full: Whether no further page is to be asked for.
    """

    def __init__(self, key: str, read: _Read) -> None:
        self.full = False
        self._key = key
        self._read = read
        self._kept: list[dict[str, Any]] = []
        self._bytes = 0
        self._malformed = 0
        self._over = 0

    def take(self, raw: Mapping[str, Any]) -> None:
        """Take the items of one answer; what is over the bounds is counted."""
        items = raw.get(self._key)
        for item in items if isinstance(items, list) else ():
            if self.full:
                self._over += 1
                continue
            read = self._read(item)
            if read is None:
                self._malformed += 1
                continue
            self._bytes += jsontext.utf8_length(jsontext.dumps(read))
            if self._bytes > MAX_BYTES:
                self.full = True
                self._over += 1
                continue
            self._kept.append(read)
            self.full = len(self._kept) >= MAX_ITEMS

    def following(self, raw: Mapping[str, Any], cursor: str | None) -> str | None:
        """Return the cursor of the next page; None where there is none that leads on."""
        found = raw.get("nextCursor")
        if not isinstance(found, str) or found == cursor or len(found) > MAX_CURSOR:
            return None
        return found or None

    def details(self, cursor: str | None) -> dict[str, Any]:
        """Return `{<key>, nextCursor?, warning?}`."""
        out: dict[str, Any] = {self._key: self._kept}
        if cursor:
            out["nextCursor"] = cursor
        if warnings := self.warnings():
            out["warning"] = "; ".join(warnings)
        return out

    def warnings(self) -> list[str]:
        """Say what was left out."""
        found = []
        if self._malformed:
            found.append(f"{self._malformed} malformed item(s) left out")
        if self._over:
            found.append(f"{self._over} item(s) over {MAX_ITEMS} or {MAX_BYTES} bytes left out")
        return found


def read_each(raw: Mapping[str, Any], key: str, read: _Read) -> list[dict[str, Any]]:
    """Read the items of a list, malformed ones left out."""
    items = raw.get(key)
    found = map(read, items if isinstance(items, list) else ())
    return [item for item in found if item is not None]
