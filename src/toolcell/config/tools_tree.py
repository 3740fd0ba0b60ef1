"""Owns the `tools` branch of the config tree: code mode, tool search, swarm, policy, approvals.

Above: the tree, resolution. Below: `config.fields`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from toolcell.config.fields import Settings, clamped
from toolcell.config.paths import FilePath
from toolcell.config.swarm import address_problem
from toolcell.config.web_tree import WebSettings


class CodeModeSettings(Settings):
    """`tools.codeMode`: hide the tools behind `exec` and `wait` (rule 1.2)."""

    enabled: bool | Literal["auto"] | None = None
    """Only `true` turns it on; `auto` does for models marked `compat.codeMode: "preferred"`."""
    executor: Literal["node", "quickjs"] | None = None
    """The engine: `quickjs` is the sandbox, `node` is trusted execution. Default `node`."""
    runtime: Literal["quickjs-wasi"] | None = None
    """Legacy; read as `executor: "quickjs"`. `toolcell doctor --fix` replaces it."""
    node_path: FilePath | None = None
    """The Node program of the `node` executor; the one that came with toolcell when absent."""
    guest_api: Literal["catalog", "tools"] | None = None
    """What guest programs see. Default `catalog`."""
    mode: Literal["only"] = "only"
    """The one value there is."""
    languages: list[Literal["javascript", "typescript"]] | None = None
    """Languages of cells; read only with `guestApi: "tools"`."""
    timeout_ms: Annotated[int | None, clamped(100, 60_000)] = None
    """Wall-clock budget of one `exec` or `wait`, in milliseconds. Default 10000."""
    memory_limit_bytes: Annotated[int | None, clamped(1 << 20, 1 << 30)] = None
    """What a cell may add to the engine's image, in bytes. Default 64 MiB."""
    max_output_bytes: Annotated[int | None, clamped(1024, 10 << 20)] = None
    """Output, value and error of a cell together, in bytes of JSON. Default 65536."""
    max_snapshot_bytes: Annotated[int | None, clamped(1024, 256 << 20)] = None
    """State of a parked cell before compression, in bytes (QuickJS). Default 10 MiB."""
    max_pending_tool_calls: Annotated[int | None, clamped(1, 128)] = None
    """Nested calls in flight at once; more are queued. Default 16."""
    snapshot_ttl_seconds: Annotated[int | None, clamped(1, 86_400)] = None
    """How long a parked cell lives. Default 900."""
    search_default_limit: Annotated[int | None, clamped(1, 50)] = None
    """Hits of a search that names no limit. Default 8."""
    max_search_limit: Annotated[int | None, clamped(1, 50)] = None
    """The most hits a search may ask for. Default 50."""


class ToolSearchSettings(Settings):
    """`tools.toolSearch`: search, describe and call instead of every schema (rule 10.1)."""

    enabled: bool | None = None
    """`false` turns it off; an object without it turns it on."""
    mode: Literal["code", "tools", "directory"] = "code"
    """How the model reaches the catalog."""
    code_timeout_ms: Annotated[int, clamped(1000, 60_000)] = 10_000
    """Wall-clock budget of `tool_search_code`, in milliseconds."""
    search_default_limit: Annotated[int, clamped(1, 50)] = 8
    """Hits of a search that names no limit."""
    max_search_limit: Annotated[int, clamped(1, 50)] = 20
    """The most hits a search may ask for."""


class RaySettings(Settings):
    """`tools.swarm.ray`: the workers of `backend: "ray"`; see [swarm](swarm.md#on-ray-workers)."""

    address: str | None = None
    """The cluster: `host:port`, or `auto` for the one this machine belongs to. Without an address
    a Ray of toolcell's own is started on this machine."""
    workers: Annotated[int, clamped(1, 1000)] = 2
    """Worker processes that run children."""
    concurrency: Annotated[int, clamped(1, 1000)] = 64
    """Children running at once in one worker, of all groups together."""
    retries: Annotated[int, clamped(0, 10)] = 0
    """How often a child is begun again whose worker died. What it did before is done twice."""

    @field_validator("address")
    @classmethod
    def _known(cls, address: str | None) -> str | None:
        problem = None if address is None else address_problem(address)
        if problem is not None:
            raise ValueError(problem)
        return address


class AgentSwarmSettings(Settings):
    """`tools.swarm` of one agent (rule 11). Limits alone do not enable it."""

    enabled: bool = False
    """Turns it on, beside code mode."""
    max_concurrent: Annotated[int, clamped(1, 1000)] = 8
    """Children running at once in a group."""
    max_children_per_group: Annotated[int, clamped(1, 10_000)] = 50
    """Live children of a group."""
    max_total_per_group: Annotated[int, clamped(1, 100_000)] = 200
    """Children of a group over its life."""
    wait_timeout_seconds_max: Annotated[int, clamped(1, 86_400)] = 600
    """The longest one wait for children, in seconds."""
    default_agent_id: str = ""
    """The agent children run as when none is named."""
    backend: Literal["local", "ray"] = "local"
    """Where children run: `local`, in this process, or on the workers of `tools.swarm.ray`."""


class SwarmSettings(AgentSwarmSettings):
    """`tools.swarm`: many child agents from one cell (rule 11). Limits alone do not enable it."""

    ray: RaySettings = Field(default_factory=RaySettings.model_construct)
    """The workers of `backend: "ray"`."""


class ApprovalRuleSettings(Settings):
    """One rule of `tools.approvals.rules`; the first that matches a call decides."""

    tool: str
    """A tool name, id, group or glob."""
    agent: str | None = None
    """An agent id or glob; every agent when absent."""
    decision: Literal["ask", "allow", "deny"]
    """What happens."""
    arguments: dict[str, str] = Field(default_factory=dict)
    """Argument name to a regular expression that must be found in its text."""
    reason: str = ""
    """Shown to the person asked, and to the caller when the answer is no."""


class ApprovalSettings(Settings):
    """`tools.approvals`: which calls a person must approve."""

    rules: list[ApprovalRuleSettings] = Field(default_factory=list)
    """In order. After them, one built-in rule asks before the shell tool `exec` runs."""


class ToolPolicySettings(Settings):
    """Which tools a run may use; names, ids, `group:<name>`, `mcp:<server>:*` and globs."""

    profile: Literal["minimal", "coding", "messaging", "full"] | None = None
    """A named starting set; `full` when absent."""
    allow: list[str] | None = None
    """Only these. An empty list means no tools at all."""
    also_allow: list[str] = Field(default_factory=list)
    """These too, on top of a profile or `allow`."""
    deny: list[str] = Field(default_factory=list)
    """Never these."""


class SandboxSettings(Settings):
    """`tools.sandbox`: the further policy of sandboxed agents."""

    tools: ToolPolicySettings = Field(default_factory=ToolPolicySettings.model_construct)
    """Applied after the other policies when the agent is sandboxed."""


def _switch(value: Any) -> Any:
    return {"enabled": value} if isinstance(value, bool) else value


def _code_mode_switch(value: Any) -> Any:
    return {"enabled": value} if isinstance(value, bool) or value == "auto" else value


CodeModeField = Annotated[CodeModeSettings, BeforeValidator(_code_mode_switch)]
ToolSearchField = Annotated[ToolSearchSettings, BeforeValidator(_switch)]
SwarmField = Annotated[SwarmSettings, BeforeValidator(_switch)]
AgentSwarmField = Annotated[AgentSwarmSettings, BeforeValidator(_switch)]


class AgentToolSettings(ToolPolicySettings):
    """`agents.entries.<id>.tools`: what differs for one agent."""

    code_mode: CodeModeField | None = None
    """`true`, `false`, `"auto"` or an object; its fields win over the global ones."""
    tool_search: ToolSearchField | None = None
    """`true`, `false` or an object."""
    swarm: AgentSwarmField | None = None
    """`true`, `false` or an object."""


class ToolsSettings(AgentToolSettings):
    """`tools`: how tools are offered, and which."""

    swarm: SwarmField | None = None
    """`true`, `false` or an object."""
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings.model_construct)
    """The further policy of sandboxed agents."""
    approvals: ApprovalSettings = Field(default_factory=ApprovalSettings.model_construct)
    """Which calls a person must approve."""
    web: WebSettings = Field(default_factory=WebSettings.model_construct)
    """The web tools."""

    @model_validator(mode="before")
    @classmethod
    def _approvals_list(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("approvals"), list):
            return {**data, "approvals": {"rules": data["approvals"]}}
        return data
