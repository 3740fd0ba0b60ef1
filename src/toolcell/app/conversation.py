"""Owns one turn of a conversation: an agent run over a session's history.

Above: doors. Below: `agent`, `app.runtime`, `sessions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolcell.agent.contract import AgentPorts, RunLimits, RunRequest, RunResult
from toolcell.agent.loop import run_agent
from toolcell.app.run import Run
from toolcell.app.runtime import Runtime
from toolcell.app.settings import max_turns_of
from toolcell.config.resolve import agent_setting
from toolcell.errors import ConfigError
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sources.contract import Source
from toolcell.surface.plan import SurfacePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked.

    Attributes:
        scope: Whom the run acts for; its session's history is continued.
        prompt: What the user says.
        model: `provider/model`; the agent's own when None.
        history: The conversation so far, when it is not the session's.
        instructions: System text of the caller's, put behind the agent's own.
        options: Further keys of the model request, such as `temperature`.
        sources: Tools of this run alone.
        tools_disabled: The run has no tools (rule 2.3).
        before_model: Awaited before each model call.
    """

    scope: RunScope
    prompt: str
    model: str | None = None
    history: tuple[Message, ...] | None = None
    instructions: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    tools_disabled: bool = False
    before_model: Callable[[], Awaitable[None]] | None = None


async def converse(
    runtime: Runtime,
    sessions: Sessions,
    turn: Turn,
    *,
    on_text: Callable[[str], None] | None = None,
) -> RunResult:
    """Run one turn to its end; the session's record grows by it.

    Raises:
        ConfigError: no model is named, or its provider is not configured.
        ProviderError: the provider cannot be opened.
        RequestError: the caller's own tools cannot be offered (CN-07); nothing ran.
    """
    agent = turn.scope.agent_id
    name = turn.model or agent_setting(runtime.config, agent, "model")
    if name is None:
        msg = "no model is named; set agents.defaults.model or pass --model provider/model"
        raise ConfigError(msg)
    provider, ref = runtime.providers.resolve(name)
    run = runtime.run(
        turn.scope, model=name, sources=turn.sources, tools_disabled=turn.tools_disabled
    )
    try:
        run.surface()  # tools that cannot be offered are told before the run is on record
        history = turn.history
        if history is None:
            history = await sessions.history(turn.scope.session_id)
        return await run_agent(
            RunRequest(
                scope=turn.scope,
                model=ref.model,
                prompt=turn.prompt,
                history=history,
                system=_system(runtime, turn),
                options=turn.options,
            ),
            AgentPorts(
                provider=provider,
                plan=_plan(run, turn),
                call_tool=run.invoke,
                sink=runtime.sink,
                clock=runtime.host.clock,
            ),
            limits=RunLimits(max_turns=max_turns_of(runtime.config, agent)),
            on_text=on_text,
        )
    finally:
        with anyio.CancelScope(shield=True):
            await runtime.end(run)


def _system(runtime: Runtime, turn: Turn) -> str | None:
    own = agent_setting(runtime.config, turn.scope.agent_id, "system_prompt")
    return "\n\n".join(filter(None, (own, turn.instructions))) or None


def _plan(run: Run, turn: Turn) -> Callable[[], Awaitable[SurfacePlan]]:
    before = turn.before_model
    if before is None:
        return run.plan

    async def plan() -> SurfacePlan:
        await before()
        return await run.plan()

    return plan
