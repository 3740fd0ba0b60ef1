"""Owns what swarm is lent: `ChildRunner`, which runs a child and knows what a parent may start.

`app` supplies it over agent runs with sessions of their own; another backend is another one.

Above: the group, the tools. Below: `config.swarm`, `protocol.scope`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolcell.config.swarm import SwarmOptions
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import MISSING

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
