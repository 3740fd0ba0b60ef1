"""Owns compacting a session that nobody runs just now, because somebody asked for it.

Above: `toolcell sessions compact`, the gateway. Below: `agent.compacting`, `sessions`,
`providers.registry`. No tool is loaded and no server started: only the model is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolcell.agent.compacting import Compactor, Model
from toolcell.agent.talk import Talk
from toolcell.app.masking import Masking
from toolcell.app.settings import (
    endpoints_of,
    mcp_servers_of,
    model_options_of,
    secret_values_of,
)
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.identifiers import fresh
from toolcell.calls.redaction import Redactor
from toolcell.config.resolve import (
    agent_setting,
    compaction_options,
    context_window,
    takes_images,
)
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.providers.registry import ProviderRegistry
from toolcell.sessions.compactions import compaction
from toolcell.sessions.contract import Sessions
from toolcell.sessions.listing import unknown_session
from toolcell.sessions.taking_up import conversation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactingPorts:
    """What compacting a session works with.

    Attributes:
        config: The tree.
        sessions: The record.
        providers: The models.
        sink: Takes the events, and hands them to the record with secrets masked.
        clock: Tells the time.
    """

    config: Config
    sessions: Sessions
    providers: ProviderRegistry
    sink: Sink
    clock: Clock = SYSTEM_CLOCK


async def compact_session(
    config: Config, sessions: Sessions, *, session_id: str, model: str | None = None
) -> dict[str, Any] | None:
    """Do what `compacted` does, for a program that has nothing but a config and a record."""
    endpoints = endpoints_of(config)
    secrets = secret_values_of(config, endpoints, mcp_servers_of(config))
    ports = CompactingPorts(
        config=config,
        sessions=sessions,
        providers=ProviderRegistry(endpoints),
        sink=Masking(sessions, Redactor(secrets)),
    )
    try:
        return await compacted(ports, session_id=session_id, model=model, channel="cli")
    finally:
        await ports.providers.aclose()


async def compacted(
    ports: CompactingPorts, *, session_id: str, model: str | None, channel: str
) -> dict[str, Any] | None:
    """Summarise what is older than the newest messages; the next run begins with the summary.

    Args:
        ports: What it works with.
        session_id: The session.
        model: `provider/model` that writes the summary; the agent's own when None.
        channel: Where the request came from, for the record.

    Returns:
        What was done, as plain JSON data; None when nothing is older.

    Raises:
        SessionError: there is no such session, or it cannot be read or written.
        ConfigError: no model is named, or its provider is not configured.
        ProviderError: the model wrote no summary; nothing has changed.
    """
    config, sessions = ports.config, ports.sessions
    info = await sessions.info(session_id)
    if info is None:
        raise unknown_session(session_id)
    agent = info.agent_id
    name = model or agent_setting(config, agent, "model")
    if name is None:
        msg = "no model is named; set agents.defaults.model, or name one for this: provider/model"
        raise ConfigError(msg)
    scope = RunScope(
        agent_id=agent,
        session_id=session_id,
        session_key=info.session_key,
        run_id=fresh("run"),
        channel=channel,
    )
    talk = Talk(await conversation_of(sessions, session_id))
    options = compaction_options(config, agent)
    compactor = Compactor(talk, options, scope, ports.sink, ports.clock)
    provider, ref = ports.providers.resolve(name)
    writer = Model(
        provider=provider,
        name=ref.model,
        options=model_options_of(config, name),
        provider_id=ref.provider_id,
        window=context_window(config, name),
        images=takes_images(config, name),
    )
    if not await compactor.by_hand(writer):
        return None
    done = await sessions.events(session_id, types=("compacted",))
    return compaction(next(each for each in reversed(done) if each.run_id == scope.run_id))
