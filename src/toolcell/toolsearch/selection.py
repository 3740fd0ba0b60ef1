"""Owns finding the one tool that a model means by an id or a name (BEHAVIOURS 325, 329, 334).

Above: the controls' bodies. Below: `calls.access`. Refuses to know: arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from toolcell.calls.access import RunCatalog
from toolcell.catalog.entry import Entry
from toolcell.errors import CallError

NO_ID = "id must be a non-empty string."
AMBIGUOUS_SELECTORS = (
    "Ambiguous tool selectors: pass the target tool id and nest target arguments under args."
)


class Selection:
    """Looks tools up in one run's catalog.

    Attributes:
        direct: Names and ids of tools the model sees itself that are not in the catalog.
    """

    def __init__(self, catalog: RunCatalog) -> None:
        self.catalog = catalog
        self.direct: frozenset[str] = frozenset()

    def find(self, wanted: object) -> Entry | None:
        """Return the visible tool of an exact id, or of a name that only one has; else None."""
        if not isinstance(wanted, str) or not (text := wanted.strip()):
            return None
        exact = self.catalog.snapshot.get(wanted) or self.catalog.snapshot.get(text)
        if exact is not None:
            return exact if self.catalog.is_visible(exact) else None
        return self.named(text)

    def named(self, name: str) -> Entry | None:
        """Return the visible tool that alone has exactly this name, or None."""
        found = self._named(name)
        return found[0] if len(found) == 1 else None

    def require(self, wanted: object) -> Entry:
        """Return the tool that is meant.

        Raises:
            CallError: `invalid_input`: no text, a name that several tools have, or a tool that the
                model is to call directly; `unknown_tool`, with suggestions; `unavailable`.
        """
        if not isinstance(wanted, str) or not wanted.strip():
            raise bad_input(NO_ID)
        found = self.find(wanted)
        if found is not None:
            return self.catalog.resolve(found)
        text = wanted.strip()
        if len(self._named(text)) > 1:
            message = f"Ambiguous tool name: {text}; use an exact tool id."
            raise bad_input(message)
        if text in self.direct:
            message = (
                f'Tool "{text}" is in your tool list: call it directly by its name, not through '
                "tool search."
            )
            raise bad_input(message)
        return self.catalog.resolve(wanted)

    def _named(self, name: str) -> Sequence[Entry]:
        return [e for e in self._by_name.get(name, ()) if self.catalog.is_visible(e)]

    @cached_property
    def _by_name(self) -> Mapping[str, list[Entry]]:
        names: dict[str, list[Entry]] = {}
        for entry in self.catalog.snapshot.entries:
            names.setdefault(entry.name, []).append(entry)
        return names


def bad_input(message: str) -> CallError:
    """Return the error for arguments that were refused; nothing ran."""
    return CallError(message, code="invalid_input", effect="none")
