"""Owns reading the config tree into the values that lower rooms take.

Above: `app.runtime`. Below: `config`, `policy`, `providers`, `sources`. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcell.config.env import MIN_SECRET_CHARS, expand, home, secret_values
from toolcell.config.resolve import agent_setting, model_row, swarm_options
from toolcell.config.tokens import usable_token
from toolcell.config.tools_tree import ToolPolicySettings
from toolcell.config.tree import Config, ModelCostSettings, ProviderSettings
from toolcell.errors import ConfigError
from toolcell.policy.approvals import ASK_BEFORE_SHELL, ApprovalRule, ApprovalRules
from toolcell.policy.rules import EffectivePolicy, ToolPolicy, effective
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.providers.prices import Price
from toolcell.providers.registry import Endpoint

if TYPE_CHECKING:
    from toolcell.sources.mcp.settings import McpServerSettings

DEFAULT_MAX_TURNS = 50
MIN_SIGNING_CHARS = 16


def policy_of(config: Config, agent_id: str, *, sandboxed: bool) -> EffectivePolicy:
    """Return the policy of a run: the global layer, the agent's, and the sandbox's."""
    entry = config.agents.entries.get(agent_id)
    own = _layer(entry.tools) if entry is not None else None
    sandbox = _layer(config.tools.sandbox.tools) if sandboxed else None
    return effective(_layer(config.tools), own, sandbox)


def approval_rules_of(config: Config) -> ApprovalRules:
    """Return the configured rules; the last one asks before the shell tool runs."""
    rules = [
        ApprovalRule(
            tool=rule.tool,
            decision=rule.decision,
            agent=rule.agent,
            arguments=rule.arguments,
            reason=rule.reason,
        )
        for rule in config.tools.approvals.rules
    ]
    return ApprovalRules((*rules, ASK_BEFORE_SHELL))


def mcp_servers_of(
    config: Config, more: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, McpServerSettings]:
    """Return every MCP server; `more` comes from a library call and wins over the config."""
    servers = {**config.mcp.servers, **(more or {})}
    if not servers:
        return {}
    from toolcell.sources.mcp.settings import parse_server  # noqa: PLC0415 - when there are any

    return {
        name: parse_server(name, _expanded(mapping, f"mcp.servers.{name}"))
        for name, mapping in servers.items()
    }


def check_mcp_keys(config: Config) -> None:
    """Refuse a key of an MCP server that nothing reads; settings may be incomplete yet.

    Raises:
        ConfigError: an unknown key.
    """
    from toolcell.sources.mcp.settings import check_server_keys  # noqa: PLC0415 - for writing only

    for name, mapping in config.mcp.servers.items():
        check_server_keys(name, mapping)


def endpoints_of(config: Config) -> dict[str, Endpoint]:
    """Return every model endpoint; one that cannot be used says so when it is asked for."""
    return {
        name: _endpoint(provider, f"models.providers.{name}")
        for name, provider in config.models.providers.items()
    }


def _endpoint(provider: ProviderSettings, path: str) -> Endpoint:
    key, url = provider.api_key, provider.base_url
    try:
        return Endpoint(
            api=provider.api,
            base_url=None if url is None else expand(url, path=f"{path}.baseUrl"),
            api_key=None if key is None else expand(key, path=f"{path}.apiKey"),
            headers={
                header: expand(value, path=f"{path}.headers.{header}")
                for header, value in provider.headers.items()
            },
            prices={row.id: _price(row.cost) for row in provider.models if row.cost},
        )
    except ConfigError as error:
        return Endpoint(api=provider.api, problem=error.message)


def _price(cost: ModelCostSettings) -> Price:
    return Price(
        input=cost.input,
        output=cost.output,
        cache_read=cost.cache_read,
        cache_write=cost.cache_write,
    )


def secrets_of(
    endpoints: Mapping[str, Endpoint], servers: Mapping[str, McpServerSettings]
) -> frozenset[str]:
    """Return the values that must never be stored: keys, and what servers get as secrets.

    Those are the values of `env` and `headers` and the client secret of `oauth`. A header such as
    `Bearer abc` counts as a whole and by its last word.
    """
    keys = {each.api_key for each in endpoints.values() if each.api_key}
    texts = [
        *(value for each in endpoints.values() for value in each.headers.values()),
        *(value for server in servers.values() for value in server.env.values()),
        *(value for server in servers.values() for value in server.headers.values()),
        *(value for server in servers.values() for value in _oauth_secrets(server)),
    ]
    given = {value for value in texts if len(value) >= MIN_SECRET_CHARS}
    return frozenset(keys | given | {value.rpartition(" ")[2] for value in given})


def gateway_token_of(config: Config) -> str | None:
    """Return the configured token of the gateway; None when it is to have one of its own."""
    given = config.gateway.token
    return None if given is None else expand(given, path="gateway.token")


def usable_gateway_token_of(config: Config) -> str | None:
    """Return the same for a gateway that is to be served or asked.

    Raises:
        ConfigError: it keeps nobody out, or clients cannot send it.
    """
    token = gateway_token_of(config)
    return None if token is None else usable_token(token, path="gateway.token")


def secret_values_of(
    config: Config,
    endpoints: Mapping[str, Endpoint],
    servers: Mapping[str, McpServerSettings],
) -> frozenset[str]:
    """Return every value that must never be stored: of the config and of the environment."""
    token = gateway_token_of(config)
    own = frozenset(
        {
            token or "",
            search_key_of(config) or "",
            *channel_secrets_of(config).values(),
            *receive_secrets_of(config).values(),
        }
    )
    return secrets_of(endpoints, servers) | (own - {""}) | secret_values()


def search_key_of(config: Config) -> str | None:
    """Return the key of the search provider."""
    search = config.tools.web.search
    given = None if search is None else search.api_key
    return None if given is None else expand(given, path="tools.web.search.apiKey")


def channel_secrets_of(config: Config) -> dict[str, str]:
    """Return the secret of each channel.

    Raises:
        ConfigError: one is too short to sign with.
    """
    return {
        name: _signing(channel.secret, f"channels.{name}.secret")
        for name, channel in config.channels.items()
    }


def receive_secrets_of(config: Config) -> dict[str, str]:
    """Return what signs messages that come in, for each channel that takes some.

    Raises:
        ConfigError: one is too short to sign with.
    """
    found = {}
    for name, channel in config.channels.items():
        if channel.receive is not None:
            own, path = channel.receive.secret, f"channels.{name}.receive.secret"
            given = (channel.secret, f"channels.{name}.secret") if own is None else (own, path)
            found[name] = _signing(*given)
    return found


def model_options_of(config: Config, name: str) -> Mapping[str, Any]:
    """Return the configured options of the model `provider/model`."""
    row = model_row(config, name)
    return {} if row is None else row.options


def _signing(given: str, path: str) -> str:
    secret = expand(given, path=path)
    if len(secret) < MIN_SIGNING_CHARS:
        msg = f"must have at least {MIN_SIGNING_CHARS} characters, not {len(secret)}"
        raise ConfigError(msg, path=path)
    return secret


def _oauth_secrets(server: McpServerSettings) -> tuple[str, ...]:
    secret = None if server.oauth is None else server.oauth.client_secret
    return () if secret is None else (secret,)


def sessions_path_of(config: Config) -> Path:
    """Return the session database's path."""
    given = config.sessions.path
    return Path(given).expanduser() if given is not None else home() / "sessions.db"


def node_path_of(config: Config) -> Path | None:
    """Return the configured Node program, for the whole process."""
    given = config.tools.code_mode.node_path if config.tools.code_mode is not None else None
    return None if given is None else Path(given).expanduser()


def workspace_of(config: Config, agent_id: str) -> Path:
    """Return the folder an agent's file tools work in."""
    given = agent_setting(config, agent_id, "workspace")
    return Path(given).expanduser() if given is not None else Path.cwd()


def uses_ray(config: Config) -> bool:
    """Return whether children of any agent run on Ray workers."""
    agents = (DEFAULT_AGENT, *config.agents.entries)
    each = (swarm_options(config, agent) for agent in agents)
    return any(options.enabled and options.backend == "ray" for options in each)


def max_turns_of(config: Config, agent_id: str) -> int:
    """Return how many model calls one run of an agent may make."""
    given = agent_setting(config, agent_id, "max_turns")
    return int(given) if given is not None else DEFAULT_MAX_TURNS


def _layer(settings: ToolPolicySettings) -> ToolPolicy:
    return ToolPolicy(
        allow=None if settings.allow is None else tuple(settings.allow),
        deny=tuple(settings.deny),
        also_allow=tuple(settings.also_allow),
        profile=settings.profile,
    )


def _expanded(value: Any, path: str) -> Any:
    """Return `value` with `${NAME}` replaced in the texts of `env`, `headers` and `oauth`."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: (
            {
                name: expand(text, path=f"{path}.{key}.{name}") if isinstance(text, str) else text
                for name, text in item.items()
            }
            if key in {"env", "headers", "oauth"} and isinstance(item, Mapping)
            else item
        )
        for key, item in value.items()
    }
