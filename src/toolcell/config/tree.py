"""Owns the config tree: every key toolcell reads, as documented models.

Above: everyone who is configured. Below: `config.fields`, `config.tools_tree`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from toolcell.config.fields import Settings, clamped
from toolcell.config.gateway_tree import GatewaySettings
from toolcell.config.paths import FilePath, PluginPath, WorkspacePath, server_paths
from toolcell.config.tools_tree import AgentToolSettings, ToolsSettings
from toolcell.config.web_tree import ChannelSettings


class ModelRowSettings(Settings):
    """`agents.*.models["provider/model"]`: what differs for one model."""

    code_mode: bool | None = None
    """Turns code mode on or off for this model (rule 1.4). Not allowed on wildcard rows."""


def _no_wildcards(rows: dict[str, ModelRowSettings]) -> dict[str, ModelRowSettings]:
    for key, row in rows.items():
        if "*" in key and row.code_mode is not None:
            msg = f"model row {key!r} has a wildcard and cannot carry codeMode; name one model"
            raise ValueError(msg)
    return rows


class SubagentSettings(Settings):
    """`agents.*.subagents`: which child agents an agent may start (rule 11)."""

    allow_agents: list[str] | None = None
    """Agent ids its children may run as, beside its own; `*` is every configured agent.
    Default: `tools.swarm.defaultAgentId`."""
    max_spawn_depth: Annotated[int | None, clamped(1, 5)] = None
    """How deep children may start children of their own. Default 1: they may not."""


class CompactionSettings(Settings):
    """`agents.*.compaction`: [long conversations](sessions.md#long-conversations)."""

    enabled: bool | None = None
    """Compact by itself when a conversation no longer fits. Default true."""
    reserve_tokens: Annotated[int | None, clamped(256, 10_000_000)] = None
    """Tokens of the model's `contextWindow` that are kept free for its answer, half of it at most.
    Default 16384."""
    keep_recent_tokens: Annotated[int | None, clamped(0, 10_000_000)] = None
    """About how many tokens of the newest messages stay as they are. Default 20000."""


class AgentBase(Settings):
    """What both `agents.defaults` and one agent's entry may hold."""

    model: str | None = None
    """`provider/model`."""
    fallbacks: list[str] = Field(default_factory=list)
    """Models tried in turn when the first one cannot answer."""
    models: dict[str, ModelRowSettings] = Field(default_factory=dict)
    """What differs for one model, keyed `provider/model`."""
    workspace: WorkspacePath | None = None
    """The folder the file and shell tools work in. Default: the folder toolcell is started in."""
    system_prompt: str | None = None
    """Put before the conversation."""
    max_turns: Annotated[int | None, clamped(1, 1000)] = None
    """Model calls in one run. Default 50."""
    compaction: CompactionSettings = Field(default_factory=CompactionSettings.model_construct)
    """When and how a long conversation is shortened."""
    subagents: SubagentSettings = Field(default_factory=SubagentSettings.model_construct)
    """Which child agents it may start."""

    @field_validator("models")
    @classmethod
    def _rows(cls, rows: dict[str, ModelRowSettings]) -> dict[str, ModelRowSettings]:
        return _no_wildcards(rows)


class AgentDefaultsSettings(AgentBase):
    """`agents.defaults`: what every agent starts from."""


class AgentEntrySettings(AgentBase):
    """`agents.entries.<id>`: one agent."""

    tools: AgentToolSettings = Field(default_factory=AgentToolSettings.model_construct)
    """What differs in its tools."""
    sandboxed: bool = False
    """Apply `tools.sandbox` to it."""


class AgentsSettings(Settings):
    """`agents`: who runs."""

    defaults: AgentDefaultsSettings = Field(default_factory=AgentDefaultsSettings.model_construct)
    """What every agent starts from."""
    entries: dict[str, AgentEntrySettings] = Field(default_factory=dict)
    """Agents by id. The agent `main` always exists."""


class ModelCompatSettings(Settings):
    """`models.providers.<id>.models[].compat`: what a model is good at."""

    code_mode: Literal["preferred", "capable"] | None = None
    """`preferred` lets `tools.codeMode: "auto"` turn it on."""
    thinking: Literal["adaptive", "budget"] = "adaptive"
    """How a level of thinking is asked for on the `anthropic` wire: `adaptive` with an effort, or
    `budget`, a number of tokens, for models before Claude 4.6."""


class ModelCostSettings(Settings):
    """`models.providers.<id>.models[].cost`: dollars for a million tokens."""

    input: float = Field(ge=0)
    """Of what is sent."""
    output: float = Field(ge=0)
    """Of what is written, thinking included."""
    cache_read: float | None = Field(default=None, ge=0)
    """Of what is read from the provider's cache; as `input` when absent."""
    cache_write: float | None = Field(default=None, ge=0)
    """Of what is put into it; as `input` when absent."""


def _text_only() -> list[Literal["text", "image"]]:
    return ["text"]


class ModelSettings(Settings):
    """One model of a provider."""

    id: str
    """The provider's own name of it."""
    context_window: Annotated[int | None, clamped(1024, 100_000_000)] = None
    """Tokens it takes, prompt and answer together. A conversation is compacted before it is longer;
    without it, when the endpoint says that a request was too long."""
    compat: ModelCompatSettings = Field(default_factory=ModelCompatSettings.model_construct)
    """What it is good at."""
    input: list[Literal["text", "image"]] = Field(default_factory=_text_only)
    """What it takes: add `image` for one that sees. Others, and models that are not listed, read a
    note in place of each image."""
    cost: ModelCostSettings | None = None
    """What it costs, for an endpoint that does not say so itself."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further keys of each request to it in the wire's own words, such as `temperature`."""

    @field_validator("input")
    @classmethod
    def _text_too(cls, kinds: list[str]) -> list[str]:
        if "text" not in kinds:
            msg = 'every model takes text; write ["text"] or ["text", "image"]'
            raise ValueError(msg)
        return kinds


class ProviderSettings(Settings):
    """`models.providers.<id>`: an endpoint that serves models."""

    api: Literal["openai-chat", "openai-responses", "anthropic"] = "openai-chat"
    """The wire it speaks: `openai-chat` (most servers do), `openai-responses` or `anthropic`."""
    base_url: str | None = None
    """Its address; the vendor's own when absent."""
    api_key: str | None = None
    """Its key; `${NAME}` takes an environment variable."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further request headers; `${NAME}` takes an environment variable."""
    models: list[ModelSettings] = Field(default_factory=list)
    """Models with something to say about them; others may be used all the same."""


class ModelsSettings(Settings):
    """`models`: where models are."""

    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    """Endpoints by id, as in `provider/model`."""


class McpSettings(Settings):
    """`mcp`: MCP servers."""

    servers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Servers by name; their keys are those of docs/mcp.md."""

    _paths = field_validator("servers")(server_paths)


class PluginsSettings(Settings):
    """`plugins`: further tools and bundled parts."""

    bundled: list[Literal["notes"]] = Field(default_factory=list)
    """Plugins that come with toolcell and are wanted: `notes`."""
    paths: list[PluginPath] = Field(default_factory=list)
    """Python files or `module:attribute`."""
    entry_points: bool = True
    """Load installed plugins (entry point group `toolcell.plugins`)."""
    deny: list[str] = Field(default_factory=list)
    """Plugin ids that are never loaded; `code-mode-quickjs` blocks the QuickJS executor."""


class SessionsSettings(Settings):
    """`sessions`: what happened."""

    path: FilePath | None = None
    """The SQLite file. Default `~/.toolcell/sessions.db`."""


class Config(Settings):
    """The whole tree. Everything is off by default."""

    tools: ToolsSettings = Field(default_factory=ToolsSettings.model_construct)
    """How tools are offered, and which."""
    agents: AgentsSettings = Field(default_factory=AgentsSettings.model_construct)
    """Who runs."""
    models: ModelsSettings = Field(default_factory=ModelsSettings.model_construct)
    """Where models are."""
    mcp: McpSettings = Field(default_factory=McpSettings.model_construct)
    """MCP servers."""
    plugins: PluginsSettings = Field(default_factory=PluginsSettings.model_construct)
    """Further tools and bundled parts."""
    sessions: SessionsSettings = Field(default_factory=SessionsSettings.model_construct)
    """What happened."""
    channels: dict[str, ChannelSettings] = Field(default_factory=dict)
    """Places where conversations are, by id; for the `conversations_*` tools."""
    gateway: GatewaySettings = Field(default_factory=GatewaySettings.model_construct)
    """The HTTP door."""
