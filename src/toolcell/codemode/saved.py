"""Owns results a program saved for later cells of its run (BEHAVIOURS 363 to 365, REPORTS LM-08).

In memory only, one allowance for each run, never evicted: what does not fit is refused.

Above: the results extension, cells. Below: `base`, `errors`. Refuses to know: engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import clip_utf8, dumps, loads, utf8_length
from toolcell.errors import CallError
from toolcell.protocol.scope import RunScope

MAX_ENTRIES: Final = 64
DESCRIPTOR_BYTES: Final = 768
SHAPE_KEYS: Final = 8
CAPACITY: Final = (
    "Code Mode results capacity exceeded; at most {entries} results and {bytes} bytes are kept for "
    "a run. Delete one with results.delete(id), or save less."
)
UNAVAILABLE: Final = (
    "Code Mode result is unavailable or expired; results live as long as their run and are loaded "
    "by the id that results.save returned."
)
FOREIGN: Final = "Code Mode results belong to a different run or session."


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved result: its JSON text, and whether it came from the network (rule 4.9)."""

    run: tuple[str, str]
    text: str
    size: int
    untrusted: bool


class SavedResults:
    """The saved results of a host, by id."""

    def __init__(self) -> None:
        self._kept: dict[str, Saved] = {}

    def save(
        self, scope: RunScope, text: str, *, untrusted: bool, allowance: int
    ) -> dict[str, Any]:
        """Keep JSON text and return its descriptor, of at most 768 bytes.

        Args:
            scope: Whose it is; only the same run may load it.
            text: JSON text.
            untrusted: Whether anything from the network is in it.
            allowance: Bytes that the results of a run may take together.

        Raises:
            CallError: it does not fit; what was saved before stays.
        """
        run, size = _run(scope), utf8_length(text)
        mine = [each for each in self._kept.values() if each.run == run]
        if len(mine) >= MAX_ENTRIES or sum(each.size for each in mine) + size > allowance:
            message = CAPACITY.format(entries=MAX_ENTRIES, bytes=allowance)
            raise _refused(message)
        result_id = fresh("result")
        self._kept[result_id] = Saved(run, text, size, untrusted)
        return _descriptor(result_id, text, size)

    def load(self, scope: RunScope, result_id: str) -> Saved:
        """Return a saved result.

        Raises:
            CallError: it is not there, or belongs to another run.
        """
        found = self._kept.get(result_id)
        if found is None:
            raise _refused(UNAVAILABLE)
        if found.run != _run(scope):
            raise _refused(FOREIGN)
        return found

    def delete(self, scope: RunScope, result_id: str) -> None:
        """Forget a saved result; raises CallError as `load` does."""
        self.load(scope, result_id)
        del self._kept[result_id]

    def drop_run(self, scope: RunScope) -> None:
        """Forget everything of a run that is over."""
        run = _run(scope)
        for result_id in [key for key, each in self._kept.items() if each.run == run]:
            del self._kept[result_id]


def _run(scope: RunScope) -> tuple[str, str]:
    return (scope.session_id, scope.run_id)


def _refused(message: str) -> CallError:
    return CallError(message, code="invalid_input", effect="none")


def _descriptor(result_id: str, text: str, size: int) -> dict[str, Any]:
    value = loads(text)
    descriptor: dict[str, Any] = {
        "id": result_id,
        "bytes": size,
        "count": len(value) if isinstance(value, list | dict) else 1,
        "shape": clip_utf8(_shape(value), 200),
        "preview": "",
        "previewTruncated": True,
    }
    room = DESCRIPTOR_BYTES - utf8_length(dumps(descriptor))
    preview = clip_utf8(text, max(room, 0))
    while preview and utf8_length(dumps(preview)) - 2 > room:
        preview = preview[: len(preview) * 3 // 4]
    return {**descriptor, "preview": preview, "previewTruncated": preview != text}


def _shape(value: Any) -> str:
    """Return a few words on what it is: `Array<{ id, tons }>`; names only, no values."""
    match value:
        case list():
            inner = _shape(value[0]) if value else "never"
            return f"Array<{inner}>"
        case dict():
            names = [clip_utf8(str(name), 24) for name in list(value)[:SHAPE_KEYS]]
            more = ", ..." if len(value) > SHAPE_KEYS else ""
            return f"{{ {', '.join(names)}{more} }}"
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
    return "number"
