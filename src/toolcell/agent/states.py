"""Owns the states of a run: prepare → turn → act → prepare, until done.

Above: the loop. Below: `contract`, `protocol.messages`, `surface.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolcell.agent.contract import Finish
from toolcell.protocol.messages import ModelRequest, ToolCall
from toolcell.surface.plan import SurfacePlan


@dataclass(frozen=True, slots=True)
class Prepare:
    """Plan the next model call."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Ask the model."""

    plan: SurfacePlan
    request: ModelRequest


@dataclass(frozen=True, slots=True)
class Act:
    """Run the calls of a reply."""

    plan: SurfacePlan
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The model has answered, or the tools it called say that the turn is over."""

    finish: Finish


State: TypeAlias = Prepare | Turn | Act | Done
