"""Owns `GuestExtension`: the one shape of everything a guest can see, and of its answers.

The bridge looks a request's handler up by its method and has no special cases; the two guest APIs
are two sets of extensions.

Above: the extensions, the bridge, the image. Below: `catalog`, `base`, `tools`.
Refuses to know: executors, cells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from toolcell.base.deadline import Deadline
from toolcell.base.jsontext import Json
from toolcell.calls.guesses import Guesses
from toolcell.catalog.entry import Entry, Hit
from toolcell.codemode.saved import SavedResults
from toolcell.codemode.view import GuestView
from toolcell.execution.contract import GuestScript
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ToolResult

_PRELUDE = Path(__file__).parent.parent / "prelude"


@cache
def prelude(name: str) -> GuestScript:
    """Return the script `prelude/<name>.mjs`."""
    return GuestScript(name, (_PRELUDE / f"{name}.mjs").read_text(encoding="utf-8"))


class CatalogAccess(Protocol):
    """What code mode needs of a run's catalog; `calls.access.RunCatalog` is one.

    One set of counters, visibility checked on every use.
    """

    @property
    def guesses(self) -> Guesses:
        """What a name that does not exist may have meant, among what is visible."""
        ...

    def entries(self) -> tuple[Entry, ...]:
        """Return the visible entries in catalog order."""
        ...

    def search(self, query: object, *, limit: object = None) -> Sequence[Hit]:
        """Return hits; raises CallError for a bad query or limit."""
        ...

    def require_replay_safe(self, entry: Entry) -> None:
        """Raise CallError for a tool that is not proven replay-safe."""
        ...

    def missing(self, query: str, *, empty: bool) -> Sequence[str]:
        """Return what should be in the catalog and is not, one sentence each."""
        ...

    def describe(self, tool_id: object) -> dict[str, Any]:
        """Return an entry with its schemas; raises CallError when it is not visible."""
        ...

    def resolve(self, entry_or_id: object) -> Entry:
        """Return a visible entry; raises CallError `unknown_tool` with suggestions."""
        ...

    async def call(
        self,
        entry_or_id: object,
        arguments: Any,
        *,
        parent_id: str | None,
        budget: Deadline | None = None,
        on_update: Callable[[Any], None] | None = None,
        replay_safe_only: bool = False,
    ) -> ToolResult:
        """Run a tool through the gate; raises CallError."""
        ...

    def telemetry(self) -> dict[str, Any]:
        """Return catalog size, counts per source and the cumulative counters."""
        ...


@dataclass(slots=True, kw_only=True)
class CellContext:
    """What a handler knows of the cell that asks.

    Attributes:
        catalog: The catalog of the run, pinned.
        view: What the cell's image shows of it.
        scope: Whom the run acts for.
        saved: The saved results of the host; a run sees its own.
        saved_allowance: Bytes that the saved results of a run may take together.
        parent_id: The `exec` call; nested calls name it even after a resume (BEHAVIOURS 165).
        budget: Handed to calls, so that an open approval pauses it.
        restart_safe: Only replay-safe tools may be called (rule 3.13).
        replay_id: Equal for the same restart-safe cell run again; None for other cells.
        on_update: Gets the progress of nested calls (BEHAVIOURS 167); None when nobody listens.
        untrusted: Whether anything from the network reached the cell (rule 4.9).
        terminate: Whether a tool it called said that the turn is over (BEHAVIOURS 333).
    """

    catalog: CatalogAccess
    view: GuestView
    scope: RunScope
    saved: SavedResults
    saved_allowance: int
    parent_id: str
    budget: Deadline
    restart_safe: bool = False
    replay_id: str | None = None
    on_update: Callable[[Any], None] | None = None
    untrusted: bool = False
    terminate: bool = False

    def update(self, value: Any) -> None:
        """Hand a nested call's progress on to whoever waits for the cell now."""
        if self.on_update is not None:
            self.on_update(value)


@dataclass(frozen=True, slots=True)
class Answering:
    """Answered at once, without a slot.

    `answer(arguments, cell)` gives the value; it may raise CallError.
    """

    answer: Callable[[list[Any], CellContext], Json]


def _nothing_to_refuse(_arguments: list[Any], _cell: CellContext) -> None:
    """Let every request through."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Takes one of the cell's slots.

    `run(arguments, cell)` gives JSON text; it may raise CallError. `check(arguments, cell)` raises
    CallError for what must not even be queued: a restart-safe cell is told at once, not parked.
    """

    run: Callable[[list[Any], CellContext], Awaitable[str]]
    check: Callable[[list[Any], CellContext], None] = _nothing_to_refuse


Settle: TypeAlias = Callable[[Callable[[], str]], None]
"""Told once that a place is over; what it is given makes the JSON text, or raises CallError."""

GiveUp: TypeAlias = Callable[[], None]
"""Gives a place up; safe to call when it is over."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """Waits in a queue of its own, outside the cell's slots and their queue (rule 11.2).

    `enter(arguments, cell, request_id, settle)` takes the place at once, in the order of the
    requests; it may raise CallError. Nothing of the cell runs while it waits.
    """

    enter: Callable[[list[Any], CellContext, str, Settle], GiveUp]


@dataclass(frozen=True, slots=True)
class Sleeping:
    """Answered with null after `seconds(arguments)`; takes no slot and may be withdrawn."""

    seconds: Callable[[list[Any]], float]


@dataclass(frozen=True, slots=True)
class Yielding:
    """Parks the cell; answered with `answer(arguments)` when it is resumed."""

    answer: Callable[[list[Any]], Json]


def _no_data(_view: GuestView) -> Json:
    return None


Handler: TypeAlias = Answering | Calling | Queueing | Sleeping | Yielding


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestExtension:
    """One part of what guest code sees.

    Attributes:
        name: Its member in the data of the image and in the start values of a cell.
        script: `(kit, data) => void`, run once while the image is made.
        data: Makes its data for the image from what is visible; deterministic.
        start: Makes its values for one cell, where it has such; None for none.
        handlers: How the host answers the requests its script makes, by method.
        prompt: A hint for the description of `exec`, given what is visible; None for none.
        declarations: Virtual `.d.ts` files by path, given what is visible; None for none.
    """

    name: str
    script: GuestScript
    data: Callable[[GuestView], Json] = _no_data
    start: Callable[[CellContext], Json] | None = None
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    prompt: Callable[[GuestView], str | None] = field(default=lambda _view: None)
    declarations: Callable[[GuestView], Mapping[str, str]] | None = None
