"""Owns `Runtime`: everything of one configuration, built, supervised and closed together.

Above: the library face and every door. Below: all rooms. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolcell.app.catalogs import CatalogShelf
from toolcell.app.children import ChildRuns
from toolcell.app.debug import debug_log
from toolcell.app.effective import EffectiveTools
from toolcell.app.executors import Executors
from toolcell.app.host import Host
from toolcell.app.masking import Masking
from toolcell.app.plugins import configured_plugins, given_plugins
from toolcell.app.run import Run, RunPorts, RunSettings
from toolcell.app.settings import (
    approval_rules_of,
    endpoints_of,
    mcp_servers_of,
    node_path_of,
    secret_values_of,
    sessions_path_of,
)
from toolcell.app.supervisor import Supervisor
from toolcell.app.swarming import ClosedForChildren, Swarming
from toolcell.app.toolbox import Toolbox
from toolcell.app.tracing import tracing
from toolcell.base.identifiers import fresh
from toolcell.calls.gate import Gate
from toolcell.calls.redaction import Redactor
from toolcell.codemode.continuations.store import ContinuationStore
from toolcell.codemode.namespaces.registry import NamespaceHolder
from toolcell.codemode.runtime import RuntimePorts
from toolcell.config.code_mode import CodeModeOptions
from toolcell.config.resolve import code_mode_options, takes_images, tool_search_options
from toolcell.config.tree import Config
from toolcell.errors import ConfigError, ToolcellError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.scope import DEFAULT_AGENT, RunScope
from toolcell.protocol.sink import FanOut, Guarded, Sink
from toolcell.providers.registry import ProviderRegistry
from toolcell.sources.contract import Source, Unavailable
from toolcell.sources.local import LocalSource
from toolcell.tools.tool import SourcedTool, Tool

if TYPE_CHECKING:  # imported by runtimes that have them
    from toolcell.sessions.contract import Sessions
    from toolcell.sources.core.expecting import ExpectedReplies
    from toolcell.sources.core.ports import CorePorts
    from toolcell.sources.mcp.options import McpOptions
    from toolcell.sources.mcp.settings import McpServerSettings
    from toolcell.sources.mcp.source import McpSource
    from toolcell.sources.mcp.status import ServerStatus
    from toolcell.toolsearch.runtime import ToolSearchPorts

Offer: TypeAlias = Literal["all", "none", "replay-safe"]


def _quiet(_: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a runtime is made from beside its config.

    Attributes:
        tools: Functions and tools: trusted local code.
        plugins: Plugins given in code; those of the config are loaded too.
        mcp_servers: Servers given in code; they win over the config's of the same name.
        mcp: What all MCP servers share; the defaults when None.
        sources: Further sources.
        sinks: Who gets events, beside the host's own sink.
        workspace: The folder of the core tools; None for a runtime without them.
        sessions: The record, for the core tools that read it; None for a runtime without those.
        expected: Where turns of conversations wait for replies that come in; None when none can.
        on_progress: Told of work that takes seconds.
        load_plugins: Whether plugins of the config and installed ones are loaded.
        secrets: Further values that no event may hold.
    """

    tools: Sequence[Any] = ()
    plugins: Sequence[ToolPlugin] = ()
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mcp: McpOptions | None = None
    sources: Sequence[Source] = ()
    sinks: Sequence[Sink] = ()
    workspace: Path | None = None
    sessions: Sessions | None = None
    expected: ExpectedReplies | None = None
    on_progress: Callable[[str], None] = _quiet
    load_plugins: bool = True
    secrets: frozenset[str] = frozenset()


class Runtime:
    """Start it once, close it once; runs are made in between.

    Raises:
        ConfigError: a config value cannot be used.
        PluginError: a plugin given in code cannot be activated.
    """

    def __init__(self, config: Config, parts: Parts, host: Host) -> None:
        self.config = config
        self.parts = parts
        self.host = host
        endpoints = endpoints_of(config)
        servers = mcp_servers_of(config, parts.mcp_servers)
        secrets = secret_values_of(config, endpoints, servers) | parts.secrets
        self.redactor = Redactor(secrets)
        debug = debug_log(secrets)
        told = FanOut((*parts.sinks, *debug, *tracing(secrets), Guarded(host.sink)))
        self.sink: Sink = Masking(told, self.redactor)
        self.supervisor = Supervisor(sink=self.sink, clock=host.clock)
        self.executors = Executors(
            denied=config.plugins.deny,
            node=node_path_of(config),
            on_progress=parts.on_progress,
        )
        self.providers = ProviderRegistry(endpoints, watch=next(iter(debug), None))
        self.swarming = self._swarm(parts.sessions)
        self.core_ports: CorePorts | None = None
        self._mcp = self._servers(servers, parts)
        holder = NamespaceHolder()
        self.toolbox = Toolbox(
            (
                LocalSource([*self._core(parts), *parts.tools]),
                *given_plugins(parts.plugins, holder),
                configured_plugins(
                    config, sessions_path_of(config).parent, load=parts.load_plugins, holder=holder
                ),
                *parts.sources,
                *([self._mcp] if self._mcp is not None else []),
            )
        )
        self._store = ContinuationStore(clock=host.clock, spawner=self.supervisor)
        self._effective = EffectiveTools(config, self.toolbox)
        self._searching: ToolSearchPorts | None = None
        self._ports = RunPorts(
            toolbox=self.toolbox,
            effective=self._effective,
            shelf=CatalogShelf(),
            gate=self._gate(),
            tool_search=self._tool_search,
            code_mode=RuntimePorts(
                executors=self.executors.ready,
                transform=self.executors.transform,
                spawner=self.supervisor,
                store=self._store,
                sink=self.sink,
                clock=host.clock,
                config=config,
                namespaces=holder,
            ),
            sink=self.sink,
            clock=host.clock,
            reranker=host.reranker,
            swarming=self.swarming,
        )
        self._runs: set[Run] = set()
        self._started = False

    def _swarm(self, sessions: Sessions | None) -> Swarming:
        return Swarming(
            ChildRuns(self.config, self.providers),
            spawner=self.supervisor,
            sink=self.sink,
            clock=self.host.clock,
            sessions=sessions,
        )

    def _gate(self) -> Gate:
        return Gate(
            hooks=self.host.hooks,
            approver=ClosedForChildren(self.host.approver, self.swarming),
            approvals=approval_rules_of(self.config),
            sink=self.sink,
            clock=self.host.clock,
            redactor=self.redactor,
        )

    def _servers(self, servers: Mapping[str, McpServerSettings], parts: Parts) -> McpSource | None:
        if not servers:
            return None
        from toolcell.sources.mcp.source import McpSource  # noqa: PLC0415 - when there are any

        return McpSource(
            servers,
            spawner=self.supervisor,
            sink=self.sink,
            clock=self.host.clock,
            on_progress=parts.on_progress,
            options=parts.mcp,
        )

    def _tool_search(self) -> ToolSearchPorts:
        """Return what runs with Tool Search work with, made for the first of them."""
        if self._searching is None:
            from toolcell.toolsearch.child.launch import Launcher  # noqa: PLC0415 - when it is on
            from toolcell.toolsearch.runtime import ToolSearchPorts  # noqa: PLC0415 - as above

            self._searching = ToolSearchPorts(
                launcher=Launcher(), sink=self.sink, clock=self.host.clock
            )
        return self._searching

    def _has_bodies(self) -> bool:
        """Whether any agent may run `tool_search_code`, whose isolation is then shown at start."""
        agents = (DEFAULT_AGENT, *self.config.agents.entries)
        each = (tool_search_options(self.config, agent) for agent in agents)
        return any(options.enabled and options.mode == "code" for options in each)

    def _core(self, parts: Parts) -> list[Tool]:
        """Return the core tools; `core_ports.sender` may be named later."""
        if parts.workspace is None:
            return []
        from toolcell.app.core_setup import core_of, ports_of  # noqa: PLC0415 - 80 ms, when used

        self.core_ports = ports_of(self, parts.sessions, parts.expected)
        return core_of(
            self.config,
            parts.workspace,
            self.core_ports,
            spawner=self.supervisor,
            clock=self.host.clock,
        )

    async def start(self) -> None:
        """Start the supervisor and every source.

        Raises:
            ToolcellError: it was started before.
        """
        if self._started:
            msg = "this runtime was started before; make another one"
            raise ToolcellError(msg)
        self._started = True
        self.supervisor.start()
        try:
            elsewhere = self.swarming.runner.elsewhere
            if elsewhere is not None:
                await elsewhere.prepare()
            if self._has_bodies():
                await self._tool_search().launcher.prepare()
            await self.toolbox.start()
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End every cell, call, connection and thread. Safe to call again."""
        for run in tuple(self._runs):
            await self.end(run)
        await self._store.aclose()
        await self.toolbox.aclose()
        self.swarming.close()
        await self.supervisor.aclose()
        elsewhere = self.swarming.runner.elsewhere
        if elsewhere is not None:
            await elsewhere.aclose()
        await self.executors.aclose()
        if self._searching is not None:
            self._searching.launcher.close()
        await self.providers.aclose()

    def scope(
        self,
        *,
        session_id: str | None = None,
        agent_id: str = DEFAULT_AGENT,
        channel: str | None = None,
        sender: str | None = None,
    ) -> RunScope:
        """Return the scope of a new run."""
        entry = self.config.agents.entries.get(agent_id)
        if entry is None and agent_id != DEFAULT_AGENT:
            known = ", ".join(sorted({DEFAULT_AGENT, *self.config.agents.entries}))
            msg = f"there is no agent {agent_id!r}; the agents are {known}"
            raise ConfigError(msg, path="agents.entries")
        session = session_id or fresh("session")
        return RunScope(
            agent_id=agent_id,
            session_id=session,
            session_key=f"agent:{agent_id}:{session}",
            run_id=fresh("run"),
            sender=sender,
            channel=channel,
            sandboxed=entry.sandboxed if entry is not None else False,
        )

    def options(self, agent_id: str, model: str | None = None) -> CodeModeOptions:
        """Return what `tools.codeMode` comes to."""
        return code_mode_options(self.config, agent_id, model)

    def run(
        self,
        scope: RunScope,
        *,
        options: CodeModeOptions | None = None,
        model: str | None = None,
        sources: Sequence[Source] = (),
        offer: Offer = "all",
        prompt: str = "",
    ) -> Run:
        """Make a run; end it with `end`.

        Args:
            scope: Whom it acts for.
            options: The effective options, when not the configured ones.
            model: `provider/model`, for activation per model and whether it sees images.
            sources: Started sources of this run alone; whoever made them closes them.
            offer: `none` for a run without tools (rule 2.3); `replay-safe` for audited read-only
                tools alone and restart-safe cells (rule 3.13).
            prompt: The user's message: tools it asks for may be shown with their schemas.
        """
        settings = RunSettings(
            scope=scope,
            options=options or self.options(scope.agent_id, model),
            policy=self._effective.policy(scope.agent_id, sandboxed=scope.sandboxed),
            search=tool_search_options(self.config, scope.agent_id),
            prompt=prompt,
            sources=tuple(sources),
            tools_disabled=offer == "none",
            replay_safe_only=offer == "replay-safe",
            takes_images=takes_images(self.config, model),
        )
        run = Run(settings, self._ports)
        self._runs.add(run)
        return run

    async def end(self, run: Run) -> None:
        """End a run: its cells are given up."""
        self._runs.discard(run)
        await run.aclose()

    def tools(self) -> tuple[SourcedTool, ...]:
        """Return every tool, before policy."""
        return self.toolbox.tools()

    def unavailable(self) -> tuple[Unavailable, ...]:
        """Return what should be here and is not."""
        return self.toolbox.unavailable()

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return the state of every MCP server."""
        return () if self._mcp is None else self._mcp.status()

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counts of the gate, the continuations and the executors."""
        return {
            "gate": self._ports.gate.statistics(),
            "continuations": self._store.statistics(),
            "swarm": self.swarming.swarm.statistics(),
            **self.executors.statistics(),
        }
