"""Owns one turn of a conversation: an agent run over a session's history.

Above: doors. Below: `agent`, `app.routes`, `app.runtime`, `sessions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolcell.agent.contract import AgentPorts, RunLimits, RunRequest, RunResult
from toolcell.agent.loop import run_agent
from toolcell.app.routes import Routes
from toolcell.app.runtime import Runtime
from toolcell.app.settings import max_turns_of
from toolcell.config.resolve import agent_setting
from toolcell.errors import ConfigError
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked.

    Attributes:
        scope: Whom the run acts for; its session's history is continued.
        prompt: What the user says.
        model: `provider/model`; the agent's own when None.
    """

    scope: RunScope
    prompt: str
    model: str | None = None


async def converse(
    runtime: Runtime,
    sessions: Sessions,
    turn: Turn,
    *,
    on_text: Callable[[str], None] | None = None,
) -> RunResult:
    """Run one turn to its end; the session's record grows by it.

    When a provider cannot answer, the run goes on with the agent's `fallbacks`, in order.

    Raises:
        ConfigError: no model is named, or its provider is not configured.
        ProviderError: the provider cannot be opened.
    """
    agent = turn.scope.agent_id
    name = turn.model or agent_setting(runtime.config, agent, "model")
    if name is None:
        msg = "no model is named; set agents.defaults.model or pass --model provider/model"
        raise ConfigError(msg)
    routes = Routes(runtime, turn.scope, agent_setting(runtime.config, agent, "fallbacks"))
    try:
        route = routes.to(name)
        return await run_agent(
            RunRequest(
                scope=turn.scope,
                model=route.model,
                prompt=turn.prompt,
                history=await sessions.history(turn.scope.session_id),
                system=agent_setting(runtime.config, agent, "system_prompt"),
                options=route.options,
            ),
            AgentPorts(
                provider=route.provider,
                plan=route.plan,
                call_tool=route.call_tool,
                fallback=routes.fallback,
                sink=runtime.sink,
                clock=runtime.host.clock,
            ),
            limits=RunLimits(max_turns=max_turns_of(runtime.config, agent)),
            on_text=on_text,
        )
    finally:
        await routes.aclose()
