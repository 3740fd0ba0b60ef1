"""Owns parked cells: who may resume one, for how long it lives, and that it ends exactly once.

In memory only (rule 3.8). A parked cell has a TTL, which an open approval pauses and which does not
run while a `wait` is at work (REPORTS RS-06); a task of its own ends it when the TTL is over, with
no later call needed (REPORTS EX-15).

Above: the runtime. Below: `continuations.cap`, `base`. Refuses to know: executors, bridges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from toolcell.base.clock import Clock
from toolcell.base.deadline import Deadline
from toolcell.base.spawner import Spawner
from toolcell.codemode.continuations.cap import PROCESS_CAP, SuspensionCap
from toolcell.errors import CellError
from toolcell.protocol.scope import RunScope

UNAVAILABLE: Final = "code mode run is unavailable or expired."
OTHER_SESSION: Final = "code mode run belongs to a different session."
OTHER_RUN: Final = "code mode run belongs to a different agent run."
IN_FLIGHT: Final = "code mode run is already being resumed."
TOO_MANY: Final = "too many suspended code mode runs."
_NOT_OURS: Final = (
    " wait takes the top-level runId (cm_...) of a waiting exec result; an id such as {given!r} "
    "that a shell tool returned belongs to the process tool."
)
_PAUSED_LOOK_SECONDS: Final = 0.25


class Suspendable(Protocol):
    """What the store keeps: a cell that can be given up."""

    @property
    def cell_id(self) -> str:
        """Its `runId`."""
        ...

    @property
    def scope(self) -> RunScope:
        """Whose it is."""
        ...

    @property
    def life(self) -> Deadline:
        """Its TTL; restarted with each park, paused while an approval is open."""
        ...

    async def give_up(self, reason: str) -> None:
        """End it: abort its calls, dispose of its state. Safe to call again."""
        ...


@dataclass(slots=True, eq=False)
class _Kept:
    cell: Suspendable
    parked: bool
    timer: anyio.CancelScope | None = None


class ContinuationStore:
    """The parked cells of one host, over all its sessions and executors."""

    def __init__(self, *, clock: Clock, spawner: Spawner, cap: SuspensionCap = PROCESS_CAP) -> None:
        self._clock = clock
        self._spawner = spawner
        self._cap = cap
        self._kept: dict[str, _Kept] = {}

    def reserve(self, cell: Suspendable) -> None:
        """Make sure that `cell` may be parked; a slot it already holds stays its own.

        Raises:
            CellError: `invalid_input`: every slot of the process is in use.
        """
        if cell.cell_id in self._kept:
            return
        if not self._cap.take():
            raise CellError(TOO_MANY, code="invalid_input", phase="host")
        self._kept[cell.cell_id] = _Kept(cell, parked=False)

    def park(self, cell: Suspendable, ttl_seconds: float) -> None:
        """Keep `cell`, which holds a slot, for at most `ttl_seconds` until someone claims it."""
        kept = self._kept[cell.cell_id]
        kept.parked = True
        cell.life.restart(ttl_seconds)
        self._spawner.start_soon(self._expire, kept, name="code mode expiry")

    def claim(self, cell_id: str, scope: RunScope) -> Suspendable:
        """Return the parked cell for a `wait` of `scope`; it is claimed until parked or released.

        Raises:
            CellError: `invalid_input`: unknown or expired, another session's or run's, or claimed.
                A refusal changes nothing for its owner (BEHAVIOURS 198).
        """
        kept = self._kept.get(cell_id)
        if kept is None or (kept.parked and kept.cell.life.expired):
            hint = "" if cell_id.startswith("cm_") else _NOT_OURS.format(given=cell_id[:64])
            raise _refused(UNAVAILABLE + hint)
        owner = kept.cell.scope
        if _session(owner) != _session(scope):
            raise _refused(OTHER_SESSION)
        if owner.run_id != scope.run_id:
            raise _refused(OTHER_RUN)
        if not kept.parked:
            raise _refused(IN_FLIGHT)
        self._unpark(kept)
        return kept.cell

    def release(self, cell: Suspendable) -> None:
        """Forget `cell`, which is over, and free its slot. Safe to call again."""
        kept = self._kept.pop(cell.cell_id, None)
        if kept is not None:
            self._unpark(kept)
            self._cap.give_back()

    async def drop_run(self, scope: RunScope, reason: str) -> None:
        """Give up every parked cell of a run that is over."""
        await self._drop([k for k in self._kept.values() if k.cell.scope == scope], reason)

    async def drop_session(self, session_id: str, reason: str) -> None:
        """Give up every parked cell of a session that is over."""
        mine = [k for k in self._kept.values() if k.cell.scope.session_id == session_id]
        await self._drop(mine, reason)

    async def aclose(self) -> None:
        """Give up every cell: the host shuts down."""
        await self._drop(list(self._kept.values()), "the host is shutting down")

    async def expire_due(self) -> None:
        """Give up every parked cell whose TTL is over now."""
        due = [k for k in self._kept.values() if k.parked and k.cell.life.expired]
        await self._drop(due, "its time to live is over")

    def statistics(self) -> Mapping[str, int]:
        """Return `parked` cells, `claimed` ones, and `slots` in use over the process."""
        parked = sum(kept.parked for kept in self._kept.values())
        return {
            "parked": parked,
            "claimed": len(self._kept) - parked,
            "slots": self._cap.held,
        }

    async def _drop(self, kept: list[_Kept], reason: str) -> None:
        for one in kept:
            self.release(one.cell)
            await one.cell.give_up(reason)

    async def _expire(self, kept: _Kept) -> None:
        with anyio.CancelScope() as scope:
            kept.timer = scope
            while kept.parked and not kept.cell.life.expired:
                left = kept.cell.life.remaining
                await anyio.sleep(
                    max(left, _PAUSED_LOOK_SECONDS) if kept.cell.life.paused else left
                )
        if kept.parked and kept.timer is scope and not scope.cancel_called:
            kept.timer = None
            await self._drop([kept], "its time to live is over")

    def _unpark(self, kept: _Kept) -> None:
        kept.parked = False
        timer, kept.timer = kept.timer, None
        if timer is not None:
            timer.cancel()


def _session(scope: RunScope) -> tuple[str, str, str]:
    return (scope.session_id, scope.session_key, scope.agent_id)


def _refused(message: str) -> CellError:
    return CellError(message, code="invalid_input", phase="input")
