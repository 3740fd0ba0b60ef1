"""Owns what a worker says to the process whose children it runs.

Above: the worker, the engine, the pool, the runner. Below: `swarm.ports`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcell.swarm.ports import ChildOutcome

Packed = tuple[bytes, ...]
"""Events, pickled one by one as they were when they happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the start of a worker went.

    Attributes:
        host: The machine; `pid` is the worker's process there.
        tools: Ids of the tools its children can have.
        problem: Why it cannot run children; None when it can.
    """

    host: str
    pid: int
    tools: frozenset[str] = frozenset()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Part of what happened in a child, and once what the child came to."""

    events: Packed = ()
    outcome: ChildOutcome | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker is gone, or cannot be reached any more; `why` is Ray's word."""

    why: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The child was cancelled there."""
