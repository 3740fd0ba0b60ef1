"""Owns how a person sees child agents at work: a tree of phases, states and times.

Above: `cli.watching`. Below: `rich`, `protocol.events`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rich.text import Text

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.cli.console import printable
from toolcell.protocol.events import ChildChanged, SwarmNote

MARKS: Final = {"queued": "·", "running": "▸", "completed": "✓", "failed": "✗", "cancelled": "⊘"}
MOST: Final = 12
"""Children of one phase that are shown by name; the rest is counted."""
_URGENT: Final = {"running": 0, "failed": 1, "cancelled": 2, "completed": 3, "queued": 4}
_LABEL: Final = 60


@dataclass(slots=True, eq=False)
class _Node:
    run_id: str
    label: str
    phase: str
    state: str = "queued"
    started: float | None = None
    ended: float | None = None
    error: str | None = None

    def took(self, now: float) -> str:
        if self.started is None:
            return ""
        return f"{(self.ended or now) - self.started:.1f} s"


@dataclass(slots=True, eq=False)
class _Group:
    nodes: dict[str, _Node] = field(default_factory=dict)
    said: str = ""


class SwarmTree:
    """Remembers the children it is told of."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._groups: dict[str, _Group] = {}
        self._children: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._groups)

    def __rich__(self) -> Text:
        """Return the tree as it is now: times go on while it is shown."""
        return Text("\n".join(self.lines()))

    def take(self, event: ChildChanged | SwarmNote) -> str | None:
        """Take an event; return a line that says it, where it is worth one in a pipe."""
        group = self._groups.setdefault(event.scope.run_id, _Group())
        if isinstance(event, SwarmNote):
            if event.kind == "run":
                return None
            text = _short(event.text)
            group.said = text if event.kind == "log" else group.said
            return f"swarm {event.kind}: {text}"
        node = self._node(group, event)
        node.state, node.error = event.state, event.error
        match event.state:
            case "queued":
                return None
            case "running":
                node.started = event.at
            case _:
                node.ended = event.at
        return f"swarm {_told(node, event.at)}{f' [{node.phase}]' if node.phase else ''}"

    def lines(self) -> Iterator[str]:
        """Yield the tree, line by line."""
        now = self._clock.wall()
        for run_id, group in self._groups.items():
            if run_id not in self._children:
                yield from self._lines(group, "", now)

    def _node(self, group: _Group, event: ChildChanged) -> _Node:
        found = group.nodes.get(event.child_run_id)
        if found is None:
            label = _short(event.label or event.child_run_id)
            found = _Node(event.child_run_id, label, _short(event.phase or ""))
            group.nodes[event.child_run_id] = found
            self._children.add(event.child_run_id)
        return found

    def _lines(self, group: _Group, indent: str, now: float) -> Iterator[str]:
        phases: dict[str, list[_Node]] = {}
        for node in group.nodes.values():
            phases.setdefault(node.phase, []).append(node)
        for phase, nodes in phases.items():
            over = sum(node.ended is not None for node in nodes)
            yield f"{indent}{phase or 'children'}  {over}/{len(nodes)}"
            shown = sorted(nodes, key=lambda node: _URGENT[node.state])[:MOST]
            for node in shown:
                yield f"{indent}  {_told(node, now)}"
                inner = self._groups.get(node.run_id)
                if inner is not None:
                    yield from self._lines(inner, indent + "    ", now)
            if len(nodes) > MOST:
                yield f"{indent}  … and {len(nodes) - MOST} more"
        if group.said:
            yield f"{indent}{group.said}"


def _told(node: _Node, now: float) -> str:
    parts = (f"{MARKS[node.state]} {node.label}", node.state, node.took(now), node.error or "")
    return "  ".join(_short(part, 2 * _LABEL) for part in parts if part)


def _short(text: str, most: int = _LABEL) -> str:
    flat = " ".join(printable(text[: most * 4]).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
