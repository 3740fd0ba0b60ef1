"""Owns how swarm stands in the runs of a runtime: who has its tools and globals, and who has not.

Above: `app.run`, `app.runtime`. Below: `swarm`, `app.children`. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolcell.app.children import ChildRuns
from toolcell.base.clock import Clock
from toolcell.base.spawner import Spawner
from toolcell.codemode.extensions.contract import GuestExtension
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest, Approver
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.swarm.guest import swarm_extension
from toolcell.swarm.swarm import Swarm
from toolcell.swarm.toolset import swarm_tools
from toolcell.tools.tool import SourcedTool

WITHHELD: Final = frozenset(
    f"openclaw:core:{name}"
    for name in (
        "ask_user",
        "conversations_send",
        "conversations_turn",
        "message",
        "openclaw",
        "sessions_send",
        "sessions_yield",
        "spawn_task",
    )
)
"""Core tools that speak to people or to other sessions: a child has none of them. Nor `openclaw`,
which is for the owner: a child does not know whom its parent acts for."""


class Swarming:
    """One per runtime."""

    def __init__(self, runner: ChildRuns, *, spawner: Spawner, sink: Sink, clock: Clock) -> None:
        self.runner = runner
        self.swarm = Swarm(runner, spawner=spawner, sink=sink, clock=clock)
        self._tools: dict[str, tuple[SourcedTool, SourcedTool]] = {}

    def offered(self, scope: RunScope) -> tuple[SourcedTool, ...]:
        """Return the tools of a run: none while swarm is off, or for children that go no deeper."""
        rules = self.runner.rules(scope.agent_id)
        if not rules.options.enabled or self.runner.turns is None:
            return ()
        child = self.swarm.child_of(scope.run_id)
        if child is not None and child.task.depth >= rules.max_depth:
            return ()
        made = self._tools.get(scope.agent_id)
        if made is None:
            made = self._tools[scope.agent_id] = swarm_tools(self.swarm, scope.agent_id)
        return made

    def extensions(
        self, scope: RunScope, tools: Sequence[SourcedTool]
    ) -> tuple[GuestExtension, ...]:
        """Return the globals of a run: there with our own spawn tool, not one of that name."""
        spawn = self.offered(scope)[:1]
        if not spawn or not any(tool is spawn[0] for tool in tools):
            return ()
        return (swarm_extension(self.swarm, scope.agent_id),)

    def granted(self, scope: RunScope) -> tuple[SourcedTool, ...]:
        """Return the tools of a run that policy cannot take away."""
        return self.runner.granted(scope.run_id)

    def permitted(self, scope: RunScope, tools: tuple[SourcedTool, ...]) -> tuple[SourcedTool, ...]:
        """Return what a run may have of `tools`: children have none of `WITHHELD`."""
        if self.swarm.child_of(scope.run_id) is None:
            return tools
        return tuple(tool for tool in tools if tool.id not in WITHHELD)


class ClosedForChildren:
    """An approver that answers no to every child, and asks for everyone else."""

    def __init__(self, inner: Approver, swarming: Swarming) -> None:
        self._inner = inner
        self._swarming = swarming

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer."""
        if self._swarming.swarm.child_of(request.scope.run_id) is not None:
            reason = f"tool {request.tool_name!r} needs approval, and a child agent cannot ask"
            return ApprovalAnswer(approved=False, reason=reason)
        return await self._inner.request(request)
