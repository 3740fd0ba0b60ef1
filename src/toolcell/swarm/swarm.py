"""Owns `Swarm`: every group of a runtime; it starts children, tells of them and cancels them.

Above: the guest extension, the tools, `app`. Below: `group`, `ports`, `base.spawner`.
Refuses to know: how a child runs, programs, models.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import anyio

from toolcell.base.clock import Clock
from toolcell.base.identifiers import fresh
from toolcell.base.spawner import Spawner
from toolcell.errors import ToolcellError
from toolcell.protocol.events import ChildChanged, SwarmNote
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.swarm.child import Child
from toolcell.swarm.group import Group, group_id
from toolcell.swarm.ports import ChildOutcome, ChildRunner, ChildTask, Recall, SpawnRules
from toolcell.swarm.request import SpawnRequest

OFF: Final = "sessions_spawn with collect=true needs tools.swarm.enabled=true."
NO_RUN: Final = "sessions_spawn needs the run id of the requesting run."
CLOSED: Final = "no child can be started: the runtime is closing."
OTHER_REQUEST: Final = "agents.run replay request does not match the persisted collector."
MAX_IDLE_GROUPS: Final = 256
"""Groups without live children that are kept; the oldest is archived first."""
MAX_NOTES: Final = 10_000
MAX_NOTE_CHARACTERS: Final = 2000
_NOTE_HEAD: Final = 80
_CLOSING_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no child was started; nothing ran."""

    message: str
    status: Literal["forbidden", "error"] = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitAnswer:
    """What a wait came to.

    Attributes:
        completed: Children that are over, the first to end first.
        pending: Ids of those that are not, in the order asked for.
        errors: `(run id, not_found | not_owner)`.
    """

    completed: tuple[Child, ...] = ()
    pending: tuple[str, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()


class Swarm:
    """One per runtime.

    Attributes:
        recall: Finds children of earlier processes; None where there is no record.
    """

    def __init__(self, runner: ChildRunner, *, spawner: Spawner, sink: Sink, clock: Clock) -> None:
        self._runner = runner
        self._spawner = spawner
        self._sink = sink
        self._clock = clock
        self._groups: dict[str, Group] = {}
        self._children: dict[str, Child] = {}
        self._ended = 0
        self._closed = False
        self.recall: Recall | None = None
        self._changed: anyio.Event | None = None

    def rules(self, agent_id: str) -> SpawnRules:
        """Return what `agent_id` may start."""
        return self._runner.rules(agent_id)

    def child_of(self, run_id: str) -> Child | None:
        """Return the child whose run this is; None when it is nobody's child."""
        return self._children.get(run_id)

    @asynccontextmanager
    async def adopted(self, task: ChildTask) -> AsyncIterator[None]:
        """Take in a child of a group of another process, so that its run is known as a child's.

        It is left when the children that it started are over, and theirs, and forgotten then.
        """
        self._children[task.run_id] = Child(
            task=task,
            fingerprint="",
            group_id=group_id(task.parent),
            label=None,
            phase=None,
            queued_at=self._clock.wall(),
        )
        try:
            yield
            await self._settled(task.run_id)
        finally:
            self._children.pop(task.run_id, None)

    def spawn(
        self, scope: RunScope, asked: SpawnRequest, *, key: str | None = None
    ) -> Child | Refusal:
        """Queue a child of the run `scope`; its place is taken before this returns.

        Args:
            scope: The run that asks.
            asked: What the child is to do.
            key: Idempotency key: a second request under it gives the first one's child.
        """
        rules = self._runner.rules(scope.agent_id)
        known = self._groups.get(group_id(scope))
        earlier = known.keyed.get(key) if known is not None and key is not None else None
        if earlier is not None:
            same = earlier.fingerprint == asked.fingerprint
            return earlier if same else Refusal(OTHER_REQUEST, "error")
        refusal = self._refused(scope, asked, rules)
        if refusal is not None:
            return refusal
        group = known or self._new_group(scope, rules)
        reached = group.full()
        if reached is not None:
            return Refusal(reached)
        return self._queued(group, scope, asked, key, rules)

    async def wait(self, scope: RunScope, run_ids: Sequence[str], seconds: float) -> WaitAnswer:
        """Return as soon as one of the children is over, or the time is (BEHAVIOURS 378).

        It may be asked again: a child that is over stays so until its group is archived, and after
        that as long as it is on record.

        Raises:
            ToolcellError: the record cannot be read.
        """
        ids = tuple(dict.fromkeys(run_ids))
        gone = await self._recalled(scope, [each for each in ids if each not in self._children])
        with anyio.move_on_after(max(seconds, 0)):
            while True:
                answer = self._looked_up(scope, ids, gone)
                if answer.completed or not answer.pending:
                    return answer
                self._changed = self._changed or anyio.Event()
                await self._changed.wait()
        return self._looked_up(scope, ids, gone)

    def note(self, scope: RunScope, kind: Literal["phase", "log", "run"], text: str) -> None:
        """Tell how the work goes; a phase holds for the children that follow."""
        rules = self._runner.rules(scope.agent_id)
        group = self._groups.get(group_id(scope)) or self._new_group(scope, rules)
        if kind == "phase":
            group.phase = text[:MAX_NOTE_CHARACTERS]
        group.notes += 1
        if group.notes > MAX_NOTES + 1:
            return
        shown = text[:MAX_NOTE_CHARACTERS]
        if group.notes > MAX_NOTES:
            kind, shown = "log", f"further notes of this run are not shown ({MAX_NOTES} were)"
        at = self._clock.wall()
        self._sink.emit(SwarmNote(scope=scope, at=at, group_id=group.id, kind=kind, text=shown))

    def cancel(self, child: Child) -> None:
        """End a child that is queued or runs; one that is queued never starts."""
        if not child.live or child.cancelled:
            return
        child.cancelled = True
        if child.state == "queued":
            self._over(child, _cancelled())
        elif child.scope is not None:
            child.scope.cancel()

    async def cancel_run(self, scope: RunScope) -> None:
        """End every child of a run that is over before them, and theirs (REPORTS SW-07)."""
        group = self._groups.get(group_id(scope))
        if group is None or not group.live:
            return
        live = self._cancel_all(group)
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSING_SECONDS):
            for child in live:
                await child.over()

    def close(self) -> None:
        """End every child: the runtime closes. What is queued never starts, nothing is added."""
        self._closed = True
        for group in tuple(self._groups.values()):
            self._cancel_all(group)

    def runs_in(self, session_id: str) -> bool:
        """Whether a child that is not over has this session."""
        return any(c.live and c.task.session_id == session_id for c in self._children.values())

    async def archive_session(self, session_id: str) -> None:
        """End and forget the groups of a session that is over."""
        for group in [g for g in self._groups.values() if g.owner.session_id == session_id]:
            await self.cancel_run(group.owner)
            self._archive(group)

    def statistics(self) -> Mapping[str, int]:
        """Return `groups` kept, and children `running`, `queued` and `over` of them."""
        groups = self._groups.values()
        return {
            "groups": len(groups),
            "running": sum(group.schedule.running for group in groups),
            "queued": sum(group.schedule.waiting for group in groups),
            "over": sum(len(group.children) - group.live for group in groups),
        }

    def _cancel_all(self, group: Group) -> list[Child]:
        live = [child for child in group.children.values() if child.live]
        for child in reversed(live):  # the queue empties from behind, so that nothing moves up
            self.cancel(child)
        return live

    async def _settled(self, run_id: str) -> None:
        owned = next((g for g in self._groups.values() if g.owner.run_id == run_id), None)
        for child in () if owned is None else tuple(owned.children.values()):
            await child.over()
            await self._settled(child.run_id)

    def _refused(self, scope: RunScope, asked: SpawnRequest, rules: SpawnRules) -> Refusal | None:
        if self._closed:
            return Refusal(CLOSED, "error")
        if not rules.options.enabled:
            return Refusal(OFF)
        if not scope.run_id:
            return Refusal(NO_RUN, "error")
        depth = self._depth(scope)
        if depth >= rules.max_depth:
            reached = f"({depth}/{rules.max_depth})"
            return Refusal(f"sessions_spawn reached agents.subagents.maxSpawnDepth {reached}.")
        target = asked.agent_id or rules.default_agent
        if target not in rules.allowed:
            allowed = ", ".join(rules.allowed) or "none"
            return Refusal(f"agentId {target[:80]!r} is not allowed here (allowed: {allowed}).")
        problem = None if asked.model is None else self._runner.model_problem(asked.model)
        return None if problem is None else Refusal(f"model: {problem}", "error")

    def _depth(self, scope: RunScope) -> int:
        child = self._children.get(scope.run_id)
        return 0 if child is None else child.task.depth

    def _new_group(self, scope: RunScope, rules: SpawnRules) -> Group:
        idle = [group for group in self._groups.values() if not group.live]
        for group in idle[: max(len(idle) - MAX_IDLE_GROUPS + 1, 0)]:
            self._archive(group)
        made = self._groups[group_id(scope)] = Group(scope, rules.options)
        return made

    def _archive(self, group: Group) -> None:
        self._groups.pop(group.id, None)
        for run_id in group.children:
            self._children.pop(run_id, None)

    def _queued(
        self,
        group: Group,
        scope: RunScope,
        asked: SpawnRequest,
        key: str | None,
        rules: SpawnRules,
    ) -> Child:
        task = ChildTask(
            run_id=fresh("run"),
            session_id=fresh("subagent"),
            agent_id=asked.agent_id or rules.default_agent,
            prompt=asked.prompt,
            parent=scope,
            depth=self._depth(scope) + 1,
            model=asked.model,
            thinking=asked.thinking,
            schema=asked.schema,
        )
        child = Child(
            task=task,
            fingerprint="" if key is None else asked.fingerprint,
            group_id=group.id,
            label=asked.label,
            phase=asked.phase or group.phase,
            queued_at=self._clock.wall(),
        )
        group.take(child, key)
        self._children[child.run_id] = child
        self.note(scope, "run", asked.label or asked.prompt[:_NOTE_HEAD])
        self._tell(child)
        child.place = group.schedule.reserve(lambda: self._start(child))
        group.schedule.ready(child.place)
        return child

    def _start(self, child: Child) -> None:
        child.state = "running"
        child.scope = anyio.CancelScope()
        self._spawner.start_soon(self._run, child, child.scope, name=f"child:{child.run_id}")

    async def _run(self, child: Child, scope: anyio.CancelScope) -> None:
        outcome = ChildOutcome(state="failed", error="the host could not run it")
        try:
            with scope:
                if child.cancelled:
                    outcome = _cancelled()
                    return
                child.started_at = self._clock.wall()
                self._tell(child)
                outcome = await self._runner.run(child.task)
            if scope.cancelled_caught:
                outcome = _cancelled()
        except ToolcellError as error:
            outcome = ChildOutcome(state="failed", error=error.message)
        except anyio.get_cancelled_exc_class():
            outcome = _cancelled()
            raise
        finally:
            self._over(child, outcome)

    def _over(self, child: Child, outcome: ChildOutcome) -> None:
        self._ended += 1
        child.ended = self._ended
        child.outcome, child.state = outcome, outcome.state
        child.ended_at = self._clock.wall()
        self._tell(child)
        group = self._groups.get(child.group_id)
        if group is not None:
            group.live -= 1
            if child.place is not None:
                group.schedule.leave(child.place)
        child.tell_followers()
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()

    async def _recalled(self, scope: RunScope, ids: Sequence[str]) -> Mapping[str, Child]:
        """Return children of earlier processes that runs of this session started."""
        if self.recall is None or not ids:
            return {}
        found = await self.recall.find(scope, frozenset(ids))
        return {each.run_id: Child.recalled(each, scope) for each in found}

    def _looked_up(
        self, scope: RunScope, ids: tuple[str, ...], gone: Mapping[str, Child]
    ) -> WaitAnswer:
        completed: list[Child] = []
        pending: list[str] = []
        errors: list[tuple[str, str]] = []
        for run_id in ids:
            child = self._children.get(run_id) or gone.get(run_id)
            if child is None:
                errors.append((run_id, "not_found"))
            elif not _owns(scope, child.task.parent):
                errors.append((run_id, "not_owner"))
            elif child.live:
                pending.append(run_id)
            else:
                completed.append(child)
        # Those of earlier processes have no number here, and ended before all others.
        completed.sort(key=lambda child: (child.ended, child.ended_at or 0.0))
        return WaitAnswer(completed=tuple(completed), pending=tuple(pending), errors=tuple(errors))

    def _tell(self, child: Child) -> None:
        task, outcome = child.task, child.outcome
        problem = None if outcome is None else outcome.error or outcome.schema_error
        self._sink.emit(
            ChildChanged(
                scope=task.parent,
                at=self._clock.wall(),
                group_id=child.group_id,
                child_run_id=task.run_id,
                child_session_id=task.session_id,
                child_agent_id=task.agent_id,
                state=child.state,
                label=child.label,
                phase=child.phase,
                error=problem,
                gives=task.gives,
            )
        )


def _cancelled() -> ChildOutcome:
    return ChildOutcome(state="cancelled", error="it was cancelled")


def _owns(scope: RunScope, parent: RunScope) -> bool:
    mine = (scope.session_id, scope.session_key, scope.agent_id)
    return mine == (parent.session_id, parent.session_key, parent.agent_id)
