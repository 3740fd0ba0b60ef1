"""Owns what a person sees of a running cell: its nested calls and child agents, as they start.

Above: `cli.opening`. Below: `cli.console`, `protocol.events`.
"""

from __future__ import annotations

from toolcell.cli.console import Progress
from toolcell.cli.swarmtree import SwarmTree
from toolcell.protocol.events import (
    ApprovalRequested,
    CallEnded,
    CallStarted,
    ChildChanged,
    Compacted,
    Event,
    ModelCalled,
    SwarmNote,
)


class ProgressSink:
    """Turns events into one line of progress, and the children of a swarm into a tree.

    Attributes:
        tree: The child agents so far.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._running: dict[str, str] = {}
        self._done = 0
        self.tree = SwarmTree()

    def emit(self, event: Event) -> None:
        """Take an event; never raises."""
        match event:
            case ChildChanged() | SwarmNote():
                line = self.tree.take(event)
                if self._progress.shown:
                    self._progress.show(self.tree)
                elif line is not None:
                    self._progress.line(line)
                return
            case _ if self.tree and self._progress.shown:
                return  # the tree stays; its own times go on
            case CallStarted():
                self._running[event.call_id] = event.tool_name
            case CallEnded():
                self._running.pop(event.call_id, None)
                self._done += 1
            case ModelCalled():
                self._progress.say(f"{event.model} answered in {event.duration_ms:.0f} ms")
                return
            case Compacted():
                self._progress.say(f"{event.messages} older messages summarised")
                return
            case ApprovalRequested():
                self._progress.say(f"{event.tool_id} waits for approval")
                return
            case _:
                return
        names = ", ".join(list(self._running.values())[-4:]) or "thinking"
        self._progress.say(f"{self._done} calls done; running: {names}")
