"""Owns how swarm stands in the runs of a runtime: who has its tools and globals, and who has not.

Above: `app.run`, `app.runtime`. Below: `swarm`, `app.children`. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from toolcell.app.children import ChildRuns
from toolcell.base.clock import Clock
from toolcell.base.spawner import Spawner
from toolcell.codemode.extensions.contract import GuestExtension
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest, Approver
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.tools.tool import SourcedTool

if TYPE_CHECKING:  # imported by runs that have swarm
    from toolcell.sessions.contract import Sessions
    from toolcell.swarm.child import Child
    from toolcell.swarm.swarm import Swarm

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
    """One per runtime; in `sessions`, children of earlier processes are found."""

    def __init__(
        self,
        runner: ChildRuns,
        *,
        spawner: Spawner,
        sink: Sink,
        clock: Clock,
        sessions: Sessions | None = None,
    ) -> None:
        self.runner = runner
        self._spawner = spawner
        self._sink = sink
        self._clock = clock
        self._sessions = sessions
        self._swarm: Swarm | None = None
        self._tools: dict[str, tuple[SourcedTool, SourcedTool]] = {}

    @property
    def swarm(self) -> Swarm:
        """The swarm, made when it is first asked for."""
        if self._swarm is None:
            from toolcell.swarm.swarm import Swarm  # noqa: PLC0415 - 20 ms, when used

            self._swarm = Swarm(
                self.runner, spawner=self._spawner, sink=self._sink, clock=self._clock
            )
            if self._sessions is not None:
                from toolcell.app.recalling import ChildRecall  # noqa: PLC0415 - as above

                self._swarm.recall = ChildRecall(self._sessions)
        return self._swarm

    def enabled(self, agent_id: str) -> bool:
        """Whether runs of `agent_id` may start children at all."""
        return self.runner.rules(agent_id).options.enabled

    def child_of(self, run_id: str) -> Child | None:
        """Return the child whose run this is; None for any other run."""
        return None if self._swarm is None else self._swarm.child_of(run_id)

    async def cancel_run(self, scope: RunScope) -> None:
        """End the children of a run that did not complete."""
        if self._swarm is not None:
            await self._swarm.cancel_run(scope)

    def close(self) -> None:
        """End every child."""
        if self._swarm is not None:
            self._swarm.close()

    def runs_in(self, session_id: str) -> bool:
        """Whether a child that is not over has this session."""
        return self._swarm is not None and self._swarm.runs_in(session_id)

    async def archive_session(self, session_id: str) -> None:
        """End the groups of a session that is over."""
        if self._swarm is not None:
            await self._swarm.archive_session(session_id)

    def offered(self, scope: RunScope) -> tuple[SourcedTool, ...]:
        """Return the tools of a run: none while swarm is off, or for children that go no deeper."""
        rules = self.runner.rules(scope.agent_id)
        if not rules.options.enabled or self.runner.turns is None:
            return ()
        child = self.child_of(scope.run_id)
        if child is not None and child.task.depth >= rules.max_depth:
            return ()
        made = self._tools.get(scope.agent_id)
        if made is None:
            from toolcell.swarm.toolset import swarm_tools  # noqa: PLC0415 - as above

            made = self._tools[scope.agent_id] = swarm_tools(self.swarm, scope.agent_id)
        return made

    def may_start(self, scope: RunScope) -> tuple[str, ...]:
        """Return the agents that children of a run may run as; none where it can start none."""
        return self.runner.rules(scope.agent_id).allowed if self.offered(scope) else ()

    def extensions(
        self, scope: RunScope, tools: Sequence[SourcedTool]
    ) -> tuple[GuestExtension, ...]:
        """Return the globals of a run: there with our own spawn tool, not one of that name."""
        spawn = self.offered(scope)[:1]
        if not spawn or not any(tool is spawn[0] for tool in tools):
            return ()
        from toolcell.swarm.guest import swarm_extension  # noqa: PLC0415 - as above

        return (swarm_extension(self.swarm, scope.agent_id),)

    def granted(self, scope: RunScope) -> tuple[SourcedTool, ...]:
        """Return the tools of a run that policy cannot take away."""
        return self.runner.granted(scope.run_id)

    def permitted(self, scope: RunScope, tools: tuple[SourcedTool, ...]) -> tuple[SourcedTool, ...]:
        """Return what a run may have of `tools`: children have none of `WITHHELD`."""
        if self.child_of(scope.run_id) is None:
            return tools
        return tuple(tool for tool in tools if tool.id not in WITHHELD)


class ClosedForChildren:
    """An approver that answers no to every child, and asks for everyone else."""

    def __init__(self, inner: Approver, swarming: Swarming) -> None:
        self._inner = inner
        self._swarming = swarming

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer."""
        if self._swarming.child_of(request.scope.run_id) is not None:
            reason = f"tool {request.tool_name!r} needs approval, and a child agent cannot ask"
            return ApprovalAnswer(approved=False, reason=reason)
        return await self._inner.request(request)
