"""Owns one turn of a conversation: an agent run over a session's history.

Above: doors. Below: `agent`, `app.routes`, `app.runtime`, `sessions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from toolcell.agent.contract import AgentPorts, Route, RunLimits, RunRequest, RunResult
from toolcell.agent.loop import run_agent
from toolcell.app.children import INSTRUCTIONS, ChildTurn
from toolcell.app.routes import NO_EXTRAS, Routes, RunExtras
from toolcell.app.runtime import Runtime
from toolcell.app.sending import DirectSender
from toolcell.app.settings import max_turns_of, uses_ray
from toolcell.config.resolve import agent_setting, compaction_options
from toolcell.errors import ConfigError
from toolcell.protocol.conversation import Conversation
from toolcell.protocol.messages import ImagePart, Message
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sessions.taking_up import conversation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked.

    Attributes:
        scope: Whom the run acts for; its session's history is continued.
        prompt: What the user says; None goes on from the history as it stands.
        model: `provider/model`; the agent's own when None.
        history: The conversation so far, when it is not the session's.
        instructions: System text of the caller's, put behind the agent's own.
        extras: What else the caller brings along.
        images: What the user shows with the prompt.
    """

    scope: RunScope
    prompt: str | None
    model: str | None = None
    history: tuple[Message, ...] | None = None
    instructions: str | None = None
    extras: RunExtras = NO_EXTRAS
    images: tuple[ImagePart, ...] = ()


async def converse(
    runtime: Runtime,
    sessions: Sessions | None,
    turn: Turn,
    *,
    on_text: Callable[[str], None] | None = None,
) -> RunResult:
    """Run one turn to its end; the session's record grows by it.

    Without `sessions` a conversation begins with the turn's own history, or none.
    When a provider cannot answer, the run goes on with the agent's `fallbacks`, in order.

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
    _lend(runtime, sessions)
    runtime.swarming.runner.parent_model(turn.scope.run_id, name)
    fallbacks = agent_setting(runtime.config, agent, "fallbacks")
    extras = replace(turn.extras, prompt=turn.prompt or "")
    routes = Routes(runtime, turn.scope, fallbacks, extras)
    completed = False
    try:
        route = await routes.first(name)
        past = None
        if turn.history is None and sessions is not None:
            past = await conversation_of(sessions, turn.scope.session_id)
        result = await run_agent(
            _request(runtime, turn, route, past),
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
        completed = result.status == "completed"
        return result
    finally:
        await routes.aclose()
        if not completed:
            await runtime.swarming.cancel_run(turn.scope)


def _request(runtime: Runtime, turn: Turn, route: Route, past: Conversation | None) -> RunRequest:
    return RunRequest(
        scope=turn.scope,
        model=route.model,
        prompt=turn.prompt,
        history=turn.history or (),
        past=past,
        system=_system(runtime, turn),
        options=route.options,
        provider_id=route.provider_id,
        images=turn.images,
        takes_images=route.takes_images,
        context_window=route.context_window,
        compaction=compaction_options(runtime.config, turn.scope.agent_id),
    )


def with_children(runtime: Runtime) -> None:
    """Let the runs of a runtime start child agents, where `tools.swarm` is on."""
    runner = runtime.swarming.runner
    if runner.turns is None:
        runner.turns = partial(_child_turn, runtime)
        if uses_ray(runtime.config):
            from toolcell.app.distributed.runner import RayChildren  # noqa: PLC0415 - when used

            runner.elsewhere = RayChildren(runtime, lend=with_children)


def _lend(runtime: Runtime, sessions: Sessions | None) -> None:
    """Let runs begin others: children, and where there is a record, runs in other sessions."""
    with_children(runtime)
    ports = runtime.core_ports
    if sessions is not None and ports is not None and ports.sender is None:
        ports.sender = DirectSender(runtime, partial(_sent_turn, runtime, sessions))


async def _sent_turn(
    runtime: Runtime, sessions: Sessions, scope: RunScope, message: str
) -> RunResult:
    return await converse(runtime, sessions, Turn(scope=scope, prompt=message))


async def _child_turn(runtime: Runtime, turn: ChildTurn) -> RunResult:
    asked = Turn(
        scope=turn.scope,
        prompt=turn.prompt,
        model=turn.model,
        history=turn.history,
        instructions=INSTRUCTIONS,
        extras=RunExtras(options=turn.options),
    )
    return await converse(runtime, None, asked)


def _system(runtime: Runtime, turn: Turn) -> str | None:
    own = agent_setting(runtime.config, turn.scope.agent_id, "system_prompt")
    return "\n\n".join(filter(None, (own, turn.instructions))) or None
