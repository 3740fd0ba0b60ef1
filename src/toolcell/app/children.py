"""Owns running child agents: `ChildRunner` over turns of an agent with sessions of their own.

A child is an agent run like any other, but nobody can be asked on its behalf, it has no tools that
speak to people, and it knows nothing of the channel its parent came from (BEHAVIOURS 377).

Above: `app.swarming`, `app.conversation`, which lends it the turns. Below: `swarm.ports`, config.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolcell.base.untrusted import OPENING
from toolcell.config.resolve import agent_setting, swarm_options
from toolcell.config.tree import Config, SubagentSettings
from toolcell.errors import ConfigError, ToolcellError
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import DEFAULT_AGENT, RunScope
from toolcell.providers.registry import ProviderRegistry
from toolcell.swarm.ports import ChildOutcome, ChildTask, SpawnRules
from toolcell.tools.content import MISSING
from toolcell.tools.tool import SourcedTool

if TYPE_CHECKING:
    from toolcell.agent.contract import RunResult
    from toolcell.swarm.structured import StructuredOutput

INSTRUCTIONS: Final = (
    "You are a child agent: another agent gave you one task. Do it on your own; nobody can be "
    "asked. Your last words are your result and are collected by whoever gave you the task."
)
MAX_MODELS: Final = 4096
"""Parent runs whose model is remembered, for children of agents that have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTurn:
    """One turn of a child.

    Attributes:
        scope: Whom it acts for.
        prompt: What it is told.
        model: `provider/model`; the agent's own when None.
        history: Its conversation so far.
        options: Further keys of the model request.
    """

    scope: RunScope
    prompt: str
    model: str | None = None
    history: tuple[Message, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class ElsewhereRunner(Protocol):
    """Runs children in other processes."""

    async def prepare(self) -> None:
        """Check that it could; nothing is started yet.

        Raises:
            ConfigError: it cannot; says what to do.
        """
        ...

    async def run(self, task: ChildTask) -> ChildOutcome:
        """Run a child to its end; being cancelled ends it.

        Raises:
            ToolcellError: it could not be run, or what ran it died.
        """
        ...

    async def aclose(self) -> None:
        """Stop everything that was started."""
        ...


class ChildRuns:
    """Implements `ChildRunner`.

    Attributes:
        turns: Runs a turn of a child; None until somebody who can is there.
        elsewhere: Runs the children of agents whose `backend` is not `local`.
    """

    def __init__(self, config: Config, providers: ProviderRegistry) -> None:
        self._config = config
        self._providers = providers
        self._models: OrderedDict[str, str] = OrderedDict()
        self._rules: dict[str, SpawnRules] = {}
        self._granted: dict[str, SourcedTool] = {}
        self.turns: Callable[[ChildTurn], Awaitable[RunResult]] | None = None
        self.elsewhere: ElsewhereRunner | None = None

    def granted(self, run_id: str) -> tuple[SourcedTool, ...]:
        """Return the tools a child's run has whatever policy says: its `structured_output`."""
        tool = self._granted.get(run_id)
        return () if tool is None else (tool,)

    def parent_model(self, run_id: str, model: str) -> None:
        """Remember which model a run began with."""
        self._models[run_id] = model
        if len(self._models) > MAX_MODELS:
            self._models.popitem(last=False)

    def rules(self, agent_id: str) -> SpawnRules:
        """Return what `agent_id` may start."""
        found = self._rules.get(agent_id)
        if found is None:
            found = self._rules[agent_id] = _rules(self._config, agent_id)
        return found

    def model_problem(self, model: str) -> str | None:
        """Return what is wrong with `provider/model`; None when it may be used."""
        try:
            self._providers.check(model)
        except ConfigError as error:
            return error.message
        return None

    async def run(self, task: ChildTask) -> ChildOutcome:
        """Run a child to its end.

        Raises:
            ToolcellError: it could not be run.
        """
        task = replace(task, model=task.model or self._model(task))
        backend = self.rules(task.parent.agent_id).options.backend
        if backend == "local":
            return await self._here(task)
        if self.elsewhere is None:
            msg = f"children cannot run on {backend!r} here"
            raise ToolcellError(msg)
        parent = replace(task.parent, channel=None, sender=None)
        return await self.elsewhere.run(replace(task, parent=parent))

    async def _here(self, task: ChildTask) -> ChildOutcome:
        wanted = None if task.schema is None else _owed(task.schema)
        turn = ChildTurn(
            scope=self._scope(task),
            prompt=task.prompt,
            model=task.model,
            options={} if task.thinking is None else {"reasoning_effort": _effort(task.thinking)},
        )
        if wanted is None:
            return _outcome(await self._turn(turn))
        self._granted[task.run_id] = wanted.tool
        try:
            return await self._structured(turn, wanted)
        finally:
            del self._granted[task.run_id]

    async def _structured(self, turn: ChildTurn, wanted: StructuredOutput) -> ChildOutcome:
        """Run it until it gave its value, with one nudge."""
        from toolcell.swarm.structured import NOT_CALLED, NUDGE  # noqa: PLC0415 - when used

        result = await self._turn(turn)
        if wanted.value is MISSING and result.status == "completed":
            nudged = replace(turn, prompt=NUDGE, history=result.messages)
            result = await self._turn(nudged)
            result = replace(result, messages=(*nudged.history, *result.messages))
        done = _outcome(result)
        if wanted.value is not MISSING:
            return replace(done, state="completed", error=None, value=wanted.value)
        if result.status == "failed":
            return done
        why = wanted.problem(result.messages) or NOT_CALLED
        return replace(done, state="failed", schema_error=why)

    async def _turn(self, turn: ChildTurn) -> RunResult:
        if self.turns is None:
            msg = "no agent can be run here"
            raise ToolcellError(msg)
        return await self.turns(turn)

    def _model(self, task: ChildTask) -> str | None:
        own = agent_setting(self._config, task.agent_id, "model")
        parent = task.parent.run_id
        if parent in self._models:
            self._models.move_to_end(parent)  # its own children must not push it out
        return own or self._models.get(parent)

    def _scope(self, task: ChildTask) -> RunScope:
        entry = self._config.agents.entries.get(task.agent_id)
        return RunScope(
            agent_id=task.agent_id,
            session_id=task.session_id,
            session_key=f"agent:{task.agent_id}:{task.session_id}",
            run_id=task.run_id,
            sandboxed=task.parent.sandboxed or (entry is not None and entry.sandboxed),
        )


def _owed(schema: Mapping[str, Any]) -> StructuredOutput:
    from toolcell.swarm.structured import StructuredOutput  # noqa: PLC0415 - when used

    return StructuredOutput(schema)


def _rules(config: Config, agent_id: str) -> SpawnRules:
    options = swarm_options(config, agent_id)
    given: SubagentSettings = config.agents.defaults.subagents
    entry = config.agents.entries.get(agent_id)
    own = entry.subagents if entry is not None else given
    listed = given.allow_agents if own.allow_agents is None else own.allow_agents
    depth = given.max_spawn_depth if own.max_spawn_depth is None else own.max_spawn_depth
    default = options.default_agent_id or agent_id
    wanted = [default] if listed is None else listed
    known = dict.fromkeys((DEFAULT_AGENT, *config.agents.entries))
    allowed = [each for each in known if each == agent_id or each in wanted or "*" in wanted]
    return SpawnRules(
        options=options,
        allowed=tuple(allowed),
        default_agent=default,
        max_depth=1 if depth is None else depth,
    )


def _effort(thinking: str) -> str:
    return "none" if thinking == "off" else thinking


def _outcome(result: RunResult) -> ChildOutcome:
    outside = any(OPENING in each.text for each in result.messages if each.role == "tool")
    if result.status == "completed":
        return ChildOutcome(state="completed", text=result.text, untrusted=outside)
    error = "it failed" if result.error is None else result.error.message
    return ChildOutcome(state="failed", text=result.text, error=error, untrusted=outside)
