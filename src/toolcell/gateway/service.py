"""Owns `Service`: one runtime and what the gateway keeps beside it, made, drained and closed.

Above: the routes, `server`, benches. Below: `app`, `sessions`, `runs`, `approvals`, `client_tools`.
Refuses to know: HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from toolcell.app.conversation import with_children
from toolcell.app.host import Host
from toolcell.app.logsink import LogSink
from toolcell.app.runtime import Parts, Runtime
from toolcell.app.settings import (
    endpoints_of,
    mcp_servers_of,
    secret_values_of,
    sessions_path_of,
    usable_gateway_token_of,
    workspace_of,
)
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.identifiers import fresh
from toolcell.calls.redaction import Redactor
from toolcell.config.tree import Config
from toolcell.errors import ConfigError
from toolcell.gateway.agents import agent_ids
from toolcell.gateway.approvals import PendingApprovals
from toolcell.gateway.client_tools import ClientDesk
from toolcell.gateway.event_bell import EventBell
from toolcell.gateway.messaging import Messaging, messaging
from toolcell.gateway.metrics import Metrics
from toolcell.gateway.recovering import Recovery, RecoveryPorts
from toolcell.gateway.response_book import ResponseBook
from toolcell.gateway.runs import RunDesk
from toolcell.gateway.session_sender import DeskSender
from toolcell.gateway.token import own_token
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.events import Event
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.sink import Sink
from toolcell.sessions.contract import Sessions
from toolcell.sessions.open_runs import OpenRuns
from toolcell.sessions.ownership import held
from toolcell.sessions.store import SessionStore
from toolcell.sources.core.expecting import ExpectedReplies

_REPLY_SECONDS = 2.0
"""What replies over webhooks may take at least when every run is over."""


def _quiet(_: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What a gateway is made from beside its config.

    Attributes:
        tools: Functions and tools of the caller's own.
        plugins: Plugins of the caller's own.
        core: Whether the core tools are there.
        sinks: Who else gets events.
        log: Where diagnostics go; it may take other events, too.
        hooks: Hooks of the caller's own.
        clock: Tells the time.
        on_progress: Told of work that takes seconds.
    """

    tools: Sequence[Any] = ()
    plugins: Sequence[ToolPlugin] = ()
    core: bool = True
    sinks: Sequence[Sink] = ()
    log: Sink = field(default_factory=LogSink)
    hooks: Hooks | None = field(default_factory=Hooks)
    clock: Clock = SYSTEM_CLOCK
    on_progress: Callable[[str], None] = _quiet


class _Late:
    """A sink that is named later: the runtime and what watches its events need each other."""

    def __init__(self) -> None:
        self.sink: Sink | None = None

    def emit(self, event: Event) -> None:
        """Hand an event on."""
        if self.sink is not None:
            self.sink.emit(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running gateway, without its HTTP.

    Attributes:
        config: The tree.
        token: What clients send.
        redactor: Masks the values that leave in no answer.
        runtime: Runs the tools.
        sessions: The record.
        runs: The runs.
        approvals: The open questions.
        clients: The way to clients' tools.
        responses: Which session a response id belongs to.
        messages: Conversations, both ways.
        bell: Rings when a session's record grows.
        metrics: What is counted.
        started_at: Unix seconds.
    """

    config: Config
    token: str
    redactor: Redactor
    runtime: Runtime
    sessions: Sessions
    runs: RunDesk
    approvals: PendingApprovals
    clients: ClientDesk
    responses: ResponseBook
    messages: Messaging
    bell: EventBell
    metrics: Metrics
    started_at: float

    def begin_drain(self) -> None:
        """Take nothing new; questions are answered no, clients are waited for no longer."""
        self.clients.shut()
        self.runs.begin_drain()
        self.approvals.shut()
        self.messages.expected.shut()
        self.bell.close()

    async def drained(self) -> None:
        """Return when every run is over and replied; those that take too long are cancelled."""
        self.begin_drain()
        clock, seconds = self.runtime.host.clock, self.config.gateway.limits.drain_seconds
        ends_at = clock.monotonic() + seconds
        await self.runs.drained(seconds)
        await self.messages.replies.drained(max(_REPLY_SECONDS, ends_at - clock.monotonic()))


@asynccontextmanager
async def opened_service(config: Config, parts: ServiceParts) -> AsyncIterator[Service]:
    """Start everything, and close it afterwards, whatever is still going on.

    Raises:
        ToolcellError: the config, a plugin or the session database cannot be used.
    """
    _one_workspace(config)
    token = usable_gateway_token_of(config) or own_token()
    secrets = secret_values_of(config, endpoints_of(config), mcp_servers_of(config)) | {token}
    redactor = Redactor(secrets)
    limits, clock = config.gateway.limits, parts.clock
    late, bell, metrics = _Late(), EventBell(), Metrics(clock)
    expected = ExpectedReplies()
    approvals = PendingApprovals(
        clock=clock, ttl_seconds=limits.approval_ttl_seconds, redactor=redactor
    )
    async with AsyncExitStack() as stack:
        owner, path = fresh("gateway"), sessions_path_of(config)
        sessions = await _record(stack, path, owner)
        runtime = Runtime(
            config,
            Parts(
                tools=parts.tools,
                plugins=parts.plugins,
                workspace=_workspace(config) if parts.core else None,
                sessions=sessions,
                expected=expected,
                sinks=(sessions, late, bell, metrics, *parts.sinks),
                on_progress=parts.on_progress,
                secrets=frozenset({token}),
            ),
            Host(hooks=parts.hooks, approver=approvals, clock=clock, sink=parts.log),
        )
        stack.push_async_callback(_shielded, runtime)
        await runtime.start()
        runs = RunDesk(runtime, sessions, max_runs=limits.max_runs)
        late.sink = runs
        _begin(runtime, runs, metrics)
        service = Service(
            config=config,
            token=token,
            redactor=redactor,
            runtime=runtime,
            sessions=sessions,
            runs=runs,
            approvals=approvals,
            clients=ClientDesk(runs.live, ttl_seconds=limits.client_tool_ttl_seconds),
            responses=ResponseBook(),
            messages=messaging(runtime, runs, expected, owner=owner),
            bell=bell,
            metrics=metrics,
            started_at=clock.wall(),
        )
        _recover(service, OpenRuns(path, owner))
        try:
            yield service
        finally:
            with anyio.CancelScope(shield=True):
                await service.drained()


async def _record(stack: AsyncExitStack, path: Path, owner: str) -> SessionStore:
    stack.enter_context(held(path, owner))
    return await stack.enter_async_context(SessionStore(path, owner=owner))


def _recover(service: Service, left: OpenRuns) -> None:
    """See to what killed gateways left, in the background."""
    if not service.config.gateway.recover:
        return
    ports = RecoveryPorts(
        runtime=service.runtime,
        sessions=service.sessions,
        runs=service.runs,
        messages=service.messages,
    )
    service.runtime.supervisor.start_soon(Recovery(ports, left).run, name="recovery")


def _begin(runtime: Runtime, runs: RunDesk, metrics: Metrics) -> None:
    """Let runs begin others, at the desk, and begin what goes on beside them."""
    with_children(runtime)
    if runtime.core_ports is not None:
        runtime.core_ports.sender = DeskSender(runtime, runs)
    runtime.supervisor.start_soon(metrics.watch_lag, name="event loop lag")
    runtime.supervisor.start_soon(_prepared, runtime, name="code mode engine")


async def _prepared(runtime: Runtime) -> None:
    """Load the engines that agents use now, not in the first request.

    Raises:
        RuntimeUnavailableError: one cannot be loaded; the supervisor tells the operator, and each
            run that needs it fails (rule 1.6).
    """
    for agent in agent_ids(runtime.config):
        run = runtime.run(runtime.scope(agent_id=agent, channel="gateway"))
        try:
            code = (await run.ready()).code
            if code is not None:
                await code.prepare()
        finally:
            await runtime.end(run)


async def _shielded(runtime: Runtime) -> None:
    with anyio.CancelScope(shield=True):
        await runtime.aclose()


def _workspace(config: Config) -> Path:
    return workspace_of(config, agent_ids(config)[0])


def _one_workspace(config: Config) -> None:
    """Refuse a config whose agents work in several folders: the core tools of a process have one.

    Raises:
        ConfigError: an agent names another folder than `main`.
    """
    main, *others = agent_ids(config)
    for agent in others:
        if workspace_of(config, agent) != workspace_of(config, main):
            message = (
                "a gateway serves one workspace; give every agent the same one, or start a "
                "gateway for each"
            )
            raise ConfigError(message, path=f"agents.entries.{agent}.workspace")


def with_gateway(config: Config, *, host: str | None, port: int | None) -> Config:
    """Return the config with another place to listen."""
    gateway = config.gateway
    changed = {"host": host, "port": port}
    update = {name: value for name, value in changed.items() if value is not None}
    return config.model_copy(update={"gateway": gateway.model_copy(update=update)})
