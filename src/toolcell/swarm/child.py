"""Owns one child as its group keeps it: the task, where it is, and what it came to.

Above: the group, the swarm. Below: `ports`, `schedule`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from toolcell.protocol.scope import RunScope
from toolcell.swarm.ports import ChildOutcome, ChildTask, EndState, Recalled
from toolcell.swarm.schedule import Place
from toolcell.tools.content import MISSING

NO_RESULT = "collector returned no result"


@dataclass(slots=True, eq=False, kw_only=True)
class Child:
    """One child. Its record stays until the group is archived (rule 11.1).

    Attributes:
        task: What it does.
        fingerprint: Of the request it came from, where it has an idempotency key.
        group_id: Its group.
        label: What people see; `phase` likewise.
        state: Where it is.
        outcome: What it came to, once it is over.
        scope: Cancels it while it runs.
        place: Its place in the queue.
        queued_at: Unix seconds; `started_at` and `ended_at` likewise.
        ended: Its number among those of its swarm that ended, from 1.
    """

    task: ChildTask
    fingerprint: str
    group_id: str
    label: str | None
    phase: str | None
    queued_at: float
    state: Literal["queued", "running"] | EndState = "queued"
    outcome: ChildOutcome | None = None
    scope: anyio.CancelScope | None = None
    place: Place | None = None
    cancelled: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    ended: int = 0
    _followers: list[Callable[[], None]] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        """Its run."""
        return self.task.run_id

    @property
    def live(self) -> bool:
        """Whether it is queued or runs."""
        return self.outcome is None

    @property
    def untrusted(self) -> bool:
        """Whether what it says is text from the network (rule 4.9)."""
        return self.outcome is not None and self.outcome.untrusted

    @classmethod
    def recalled(cls, found: Recalled, parent: RunScope) -> Child:
        """Return a child of another process, as it is on record."""
        child = cls(
            task=ChildTask(
                run_id=found.run_id,
                session_id=found.session_id,
                agent_id=found.agent_id,
                prompt="",
                parent=parent,
                depth=1,
            ),
            fingerprint="",
            group_id=found.group_id,
            label=found.label,
            phase=found.phase,
            queued_at=found.queued_at,
            outcome=found.outcome,
            started_at=found.started_at,
            ended_at=found.ended_at,
        )
        if found.outcome is not None:
            child.state = found.outcome.state
        return child

    def when_over(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told` once it is over, at once if it is; what comes back forgets `told`."""
        if not self.live:
            told()
            return _nothing
        self._followers.append(told)
        return lambda: self._followers.remove(told) if told in self._followers else None

    def tell_followers(self) -> None:
        """Say that it is over, once."""
        followers, self._followers = self._followers, []
        for told in followers:
            told()

    async def over(self) -> None:
        """Wait until it is over."""
        if self.live:
            ended = anyio.Event()
            self.when_over(ended.set)
            await ended.wait()

    def failure(self) -> str | None:
        """Return `Swarm agent <runId> <status>: <detail>` of a child that did not complete."""
        outcome = self.outcome
        if outcome is None or outcome.state == "completed":
            return None
        detail = outcome.error or outcome.schema_error or outcome.text or NO_RESULT
        return f"Swarm agent {self.run_id} {outcome.state}: {detail}"

    def record(self) -> dict[str, Any]:
        """Return what `agents_wait` tells of a child that is over; times are Unix milliseconds."""
        outcome = self.outcome
        out: dict[str, Any] = {"runId": self.run_id, "status": self.state}
        out["agentId"] = self.task.agent_id
        out["sessionId"] = self.task.session_id
        seen = (("label", self.label), ("phase", self.phase))
        out |= {name: text for name, text in seen if text is not None}
        if outcome is not None:
            if outcome.value is not MISSING:
                out["structured"] = outcome.value
            elif outcome.text:
                out["result"] = outcome.text
            if outcome.error is not None:
                out["error"] = outcome.error
            if outcome.schema_error is not None:
                out["schemaError"] = outcome.schema_error
        for name, at in (("startedAt", self.started_at), ("endedAt", self.ended_at)):
            if at is not None:
                out[name] = round(at * 1000)
        return out


def _nothing() -> None:
    """Do nothing."""
