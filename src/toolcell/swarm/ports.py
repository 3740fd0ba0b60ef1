"""Owns what swarm is lent: `ChildRunner`, which runs a child and knows what a parent may start.

`app` supplies it over agent runs with sessions of their own; another backend is another one.

Above: the group, the tools. Below: `config.swarm`, `protocol.scope`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolcell.config.swarm import SwarmOptions
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import MISSING

Gives = Literal["text", "object", "value"]
"""What a child is to come to: its last words, an object of its schema, or another value."""

EndState = Literal["completed", "failed", "cancelled"]
Thinking = Literal["off", "minimal", "low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTask:
    """What a child is to do, and as whom.

    Attributes:
        run_id: The child's own run; `session_id` is its own session.
        agent_id: The agent it runs as.
        prompt: The task.
        parent: The run that asked; nothing of its channel goes to the child (BEHAVIOURS 377).
        depth: 1 for a child of a run that is no child itself.
        model: `provider/model`; the agent's own when None.
        thinking: How hard the model should think; as configured when None.
        schema: JSON Schema of the value to give back; None for text.
    """

    run_id: str
    session_id: str
    agent_id: str
    prompt: str
    parent: RunScope
    depth: int
    model: str | None = None
    thinking: Thinking | None = None
    schema: Mapping[str, Any] | None = None

    @property
    def gives(self) -> Gives:
        """What it is to come to."""
        if self.schema is None:
            return "text"
        return "object" if self.schema.get("type") == "object" else "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOutcome:
    """What a child came to.

    Attributes:
        state: How it ended.
        text: Its last words.
        value: With a schema, the validated value; else `MISSING`.
        error: Why it did not complete.
        schema_error: Why there is no value that fits the schema.
        untrusted: It read text from the network, so what it says is such text too (rule 4.9).
    """

    state: EndState
    text: str = ""
    value: Any = MISSING
    error: str | None = None
    schema_error: str | None = None
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A child that another process ran, as it is on record. Times are Unix seconds.

    Attributes:
        run_id: Its run; `session_id` is its session.
        agent_id: The agent it ran as.
        group_id: Its group.
        label: What people see; `phase` likewise.
        gives: What it was to come to.
        queued_at: When it was asked for; `started_at` and `ended_at` likewise.
        outcome: What it came to.
    """

    run_id: str
    session_id: str
    agent_id: str
    group_id: str
    queued_at: float
    label: str | None = None
    phase: str | None = None
    gives: Gives = "text"
    started_at: float | None = None
    ended_at: float | None = None
    outcome: ChildOutcome | None = None


class Recall(Protocol):
    """Finds children that are no longer in memory."""

    async def find(self, scope: RunScope, run_ids: Collection[str]) -> Sequence[Recalled]:
        """Return those of the ids that runs of `scope`'s session started, with their outcomes.

        Raises:
            ToolcellError: the record cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRules:
    """What one agent may start.

    Attributes:
        options: The limits of its groups, and whether it may at all.
        allowed: Agent ids a child may run as, in order.
        default_agent: Whom a child runs as when nobody is named.
        max_depth: How deep children of children may go.
    """

    options: SwarmOptions = field(default_factory=SwarmOptions)
    allowed: tuple[str, ...] = ()
    default_agent: str = ""
    max_depth: int = 1


class ChildRunner(Protocol):
    """Runs children."""

    def rules(self, agent_id: str) -> SpawnRules:
        """Return what `agent_id` may start."""
        ...

    def model_problem(self, model: str) -> str | None:
        """Return what is wrong with `provider/model`; None when it may be used."""
        ...

    async def run(self, task: ChildTask) -> ChildOutcome:
        """Run a child to its end; being cancelled ends it.

        Raises:
            ToolcellError: it could not be run; the child counts as failed.
        """
        ...
