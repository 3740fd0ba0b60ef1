"""Owns what core tools are made from: config values, and what the runtime tells of itself.

Above: `app.runtime`. Below: `app.settings`, `sources.core`. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from toolcell.app.host import Host
from toolcell.app.settings import channel_secrets_of, search_key_of
from toolcell.app.swarming import Swarming
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import JsonObject
from toolcell.base.spawner import Spawner
from toolcell.base.version import VERSION
from toolcell.calls.redaction import MASK, Redactor
from toolcell.config.env import expand, shell_environment
from toolcell.config.resolve import agent_setting
from toolcell.config.tree import Config
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.sessions.contract import Sessions
from toolcell.sources.contract import Unavailable
from toolcell.sources.core.addresses import AddressRules
from toolcell.sources.core.conversations import Conversations
from toolcell.sources.core.expecting import ExpectedReplies
from toolcell.sources.core.fetching import FetchOptions
from toolcell.sources.core.http import LazyHttp
from toolcell.sources.core.ports import AgentInfo, CorePorts, OwnStatus, ServerInfo
from toolcell.sources.core.search_engines import ENGINES
from toolcell.sources.core.shell import ShellOptions
from toolcell.sources.core.toolset import Online, core_tools, online_tools, program_tools
from toolcell.sources.core.web_search import SearchSetup
from toolcell.sources.core.webhook import WebhookChannel
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.sources.mcp.status import ServerStatus
from toolcell.tools.tool import SourcedTool, Tool

_SECRET_KEYS: Final = frozenset({"apikey", "token", "secret", "clientsecret", "password"})
_SECRET_MAPS: Final = frozenset({"headers", "env", "oauth"})


def core_of(
    config: Config, workspace: Path, ports: CorePorts, *, spawner: Spawner, clock: Clock
) -> list[Tool]:
    """Return the core tools.

    Raises:
        ConfigError: a value cannot be used.
    """
    shell = ShellOptions(env=shell_environment())
    online = online_of(config, ports.expected, clock=clock)
    files = core_tools(
        WorkspaceRoots([workspace]),
        shell,
        spawner=spawner,
        clock=clock,
        pictures=online.pages if config.tools.web.images else None,
        picture_seconds=online.fetch.seconds,
    )
    return [
        *files,
        *online_tools(online, clock=clock),
        *program_tools(ports, clock=clock),
    ]


def ports_of(
    runtime: Watched, sessions: Sessions | None, expected: ExpectedReplies | None
) -> CorePorts:
    """Return what core tools need of a runtime; `sender` may be named later."""
    return CorePorts(
        sessions=sessions,
        agents=lambda: agents_of(runtime.config),
        may_start=runtime.swarming.may_start,
        own=OwnProcess(runtime),
        expected=expected,
    )


def online_of(
    config: Config, expected: ExpectedReplies | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> Online:
    """Return how core tools reach the network.

    Raises:
        ConfigError: a value cannot be used.
    """
    fetch = config.tools.web.fetch
    return Online(
        pages=LazyHttp(AddressRules(fetch.allow)),
        services=services(),
        conversations=conversations_of(config, expected, clock=clock),
        fetch=FetchOptions(
            max_bytes=fetch.max_bytes,
            seconds=fetch.timeout_ms / 1000,
            cache_seconds=fetch.cache_seconds,
        ),
        search=_search(config),
    )


def conversations_of(
    config: Config, expected: ExpectedReplies | None, *, clock: Clock
) -> Conversations:
    """Return whom messages can be sent to.

    Args:
        config: Its `channels`.
        expected: Where turns wait for replies that come in as messages; None when none can.
        clock: For signatures.

    Raises:
        ConfigError: a value cannot be used.
    """
    channels = list(channels_of(config).values())
    return Conversations(services(), channels, clock=clock, expected=expected)


def services() -> LazyHttp:
    """Return what sends to addresses that the operator names, which may be private."""
    return LazyHttp(AddressRules(("*",)))


def agents_of(config: Config) -> Sequence[AgentInfo]:
    """Return every agent; `main` always exists."""
    names = dict.fromkeys((DEFAULT_AGENT, *config.agents.entries))
    return [
        AgentInfo(
            id=name,
            model=agent_setting(config, name, "model"),
            sandboxed=name in config.agents.entries and config.agents.entries[name].sandboxed,
        )
        for name in names
    ]


class Watched(Protocol):
    """What `OwnProcess` asks of a runtime."""

    config: Config
    host: Host
    redactor: Redactor
    swarming: Swarming

    def tools(self) -> tuple[SourcedTool, ...]:
        """Return every tool."""
        ...

    def unavailable(self) -> tuple[Unavailable, ...]:
        """Return what is missing."""
        ...

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return the MCP servers."""
        ...

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return counts."""
        ...


class OwnProcess:
    """Tells of a runtime, for its owner."""

    def __init__(self, runtime: Watched) -> None:
        self._runtime = runtime
        self._started = runtime.host.clock.monotonic()

    def status(self) -> OwnStatus:
        """Return how it stands."""
        runtime = self._runtime
        counts = {
            f"{group}.{name}": value
            for group, values in runtime.statistics().items()
            for name, value in values.items()
        }
        return OwnStatus(
            version=VERSION,
            uptime_seconds=runtime.host.clock.monotonic() - self._started,
            tools=len(runtime.tools()),
            agents=[each.id for each in agents_of(runtime.config)],
            servers=[ServerInfo(name=s.name, state=s.state) for s in runtime.servers()],
            unavailable=[each.owner for each in runtime.unavailable()],
            counts=counts,
        )

    def config(self) -> JsonObject:
        """Return the config tree as JSON, secrets masked."""
        tree = self._runtime.config.model_dump(mode="json", by_alias=True, exclude_none=True)
        masked: JsonObject = self._runtime.redactor.value(_masked(tree))
        return masked


def _search(config: Config) -> SearchSetup | None:
    search = config.tools.web.search
    if search is None:
        return None
    url = search.base_url
    base = None if url is None else expand(url, path="tools.web.search.baseUrl")
    engine = ENGINES[search.provider](base, search_key_of(config))
    return SearchSetup(engine=engine, seconds=search.timeout_ms / 1000)


def channels_of(config: Config) -> dict[str, WebhookChannel]:
    """Return every channel by its name.

    Raises:
        ConfigError: a value cannot be used.
    """
    secrets = channel_secrets_of(config)
    return {
        name: WebhookChannel(
            id=name,
            url=expand(channel.url, path=f"channels.{name}.url"),
            secret=secrets[name],
            conversations=channel.conversations,
            seconds=channel.timeout_ms / 1000,
            receives=channel.receive is not None,
        )
        for name, channel in config.channels.items()
    }


def _masked(value: Any, *, all_texts: bool = False) -> Any:
    """Mask what stands under the name of a secret, whatever it is."""
    if isinstance(value, dict):
        return {
            key: MASK
            if key.lower() in _SECRET_KEYS and isinstance(item, str)
            else _masked(item, all_texts=all_texts or key.lower() in _SECRET_MAPS)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(item, all_texts=all_texts) for item in value]
    return MASK if all_texts and isinstance(value, str) else value
