"""Owns the children of one run: their queue, the limits on their number, and no second spawn.

Above: the swarm. Below: `child`, `schedule`.
"""

from __future__ import annotations

from toolcell.config.swarm import SwarmOptions
from toolcell.protocol.scope import RunScope
from toolcell.swarm.child import Child
from toolcell.swarm.schedule import Schedule


class Group:
    """The children that one run asked for."""

    def __init__(self, owner: RunScope, options: SwarmOptions) -> None:
        self.id = group_id(owner)
        self.owner = owner
        self.options = options
        self.schedule = Schedule(options.max_concurrent)
        self.children: dict[str, Child] = {}
        self.keyed: dict[str, Child] = {}
        self.phase: str | None = None
        self.notes = 0
        self.live = 0

    def full(self) -> str | None:
        """Return which limit another child would break; None when there is room."""
        options, total = self.options, len(self.children)
        if self.live >= options.max_children_per_group:
            return _reached("maxChildrenPerGroup", self.live, options.max_children_per_group)
        if total >= options.max_total_per_group:
            return _reached("maxTotalPerGroup", total, options.max_total_per_group)
        return None

    def take(self, child: Child, key: str | None) -> None:
        """Keep a child; with a key, the same request finds it again."""
        self.children[child.run_id] = child
        self.live += 1
        if key is not None:
            self.keyed[key] = child


def group_id(owner: RunScope) -> str:
    """Return the id of a run's group (BEHAVIOURS 372)."""
    return f"swarm:{owner.session_key}:{owner.run_id}"


def _reached(name: str, count: int, limit: int) -> str:
    return f"sessions_spawn reached tools.swarm.{name} ({count}/{limit})."
