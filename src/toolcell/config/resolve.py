"""Owns what the tree comes to for one agent and model: rules 1.1, 1.3 to 1.5 and 10.1.

Above: `app`, surface, `toolcell config get`. Below: `config.tree`, `config.code_mode`.
"""

from __future__ import annotations

from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any, Literal

from toolcell.config.code_mode import CodeModeOptions, GuestApi
from toolcell.config.compaction import CompactionOptions
from toolcell.config.swarm import SwarmOptions
from toolcell.config.tool_search import ToolSearchOptions
from toolcell.config.tools_tree import CodeModeSettings
from toolcell.config.tree import AgentBase, AgentEntrySettings, Config, ModelSettings

Switch = bool | Literal["auto"]

_LIMITS = (
    "timeout_ms",
    "memory_limit_bytes",
    "max_output_bytes",
    "max_snapshot_bytes",
    "max_pending_tool_calls",
    "snapshot_ttl_seconds",
    "search_default_limit",
    "max_search_limit",
)

_COMPACTION_FIELDS = ("enabled", "reserve_tokens", "keep_recent_tokens")

_SEARCH_FIELDS = ("mode", "code_timeout_ms", "search_default_limit", "max_search_limit")


def code_mode_options(
    config: Config, agent_id: str, model: str | None = None, *, default_enabled: bool = False
) -> CodeModeOptions:
    """Return the effective options of `agent_id` on `model` (`provider/model`).

    Activation and limits are separate: a model's row changes activation only (rule 1.4).
    `default_enabled` is what no setting at all means; the library's `CodeMode` passes True.
    """
    entry = config.agents.entries.get(agent_id)
    layers = _layers(config, entry)
    fields: dict[str, Any] = {}
    for name in _LIMITS:
        for layer in layers:
            value = getattr(layer, name)
            if value is not None:
                fields[name] = value
                break
    guest_api: GuestApi = _first(layers, "guest_api") or "catalog"
    languages = _first(layers, "languages")
    if languages is not None:
        fields["languages"] = tuple(languages)
    options = CodeModeOptions(
        enabled=_enabled(config, entry, model, default=default_enabled),
        executor=_executor(layers) or ("quickjs" if guest_api == "tools" else "node"),
        guest_api=guest_api,
        **fields,
    )
    return _search_limits_agree(options)


def tool_search_options(
    config: Config, agent_id: str, *, default_enabled: bool = False
) -> ToolSearchOptions:
    """Return the effective `tools.toolSearch` options of `agent_id` (rule 10.1).

    An object turns it on unless it says `enabled: false`; an agent's own setting, field by field,
    beats the global one. `default_enabled` is what no setting at all means.
    """
    entry = config.agents.entries.get(agent_id)
    own = entry.tools.tool_search if entry is not None else None
    layers = [layer for layer in (own, config.tools.tool_search) if layer is not None]
    fields: dict[str, Any] = {}
    for name in _SEARCH_FIELDS:
        layer = next((each for each in layers if name in each.model_fields_set), None)
        if layer is not None:
            fields[name] = getattr(layer, name)
    nearest = next(iter(layers), None)
    enabled = default_enabled if nearest is None else nearest.enabled is not False
    options = ToolSearchOptions(enabled=enabled, **fields)
    if options.search_default_limit <= options.max_search_limit:
        return options
    return replace(options, search_default_limit=options.max_search_limit)


def swarm_options(config: Config, agent_id: str) -> SwarmOptions:
    """Return the effective `tools.swarm` options of `agent_id` (rule 11).

    An agent's own setting, field by field, beats the global one; limits alone do not enable.
    """
    entry = config.agents.entries.get(agent_id)
    own = entry.tools.swarm if entry is not None else None
    fields: dict[str, Any] = {}
    for layer in (config.tools.swarm, own):
        if layer is not None:
            set_here = layer.model_fields_set & {each.name for each in fields_of(SwarmOptions)}
            fields |= {name: getattr(layer, name) for name in set_here}
    return SwarmOptions(**fields)


def compaction_options(config: Config, agent_id: str) -> CompactionOptions:
    """Return the effective `compaction` of `agent_id`, field by field its own or the default's."""
    entry = config.agents.entries.get(agent_id)
    fields: dict[str, Any] = {}
    layers = [config.agents.defaults.compaction]
    if entry is not None:
        layers.append(entry.compaction)
    for layer in layers:
        for name in _COMPACTION_FIELDS:
            value = getattr(layer, name)
            if value is not None:
                fields[name] = value
    return CompactionOptions(**fields)


def context_window(config: Config, model: str | None) -> int | None:
    """Return how many tokens `model` (`provider/model`) takes; None when nobody said."""
    row = model_row(config, model)
    return None if row is None else row.context_window


def agent_setting(config: Config, agent_id: str, name: str) -> Any:
    """Return one plain setting of an agent: its own value, else that of `agents.defaults`."""
    entry = config.agents.entries.get(agent_id)
    own = getattr(entry, name, None) if entry is not None else None
    return own if own not in (None, []) else getattr(config.agents.defaults, name)


def code_mode_preferred(config: Config, model: str | None) -> bool:
    """Return whether `model` is marked `compat.codeMode: "preferred"`."""
    row = model_row(config, model)
    return row is not None and row.compat.code_mode == "preferred"


def takes_images(config: Config, model: str | None) -> bool:
    """Return whether `model` (`provider/model`) is configured to see images."""
    row = model_row(config, model)
    return row is not None and "image" in row.input


def model_row(config: Config, model: str | None) -> ModelSettings | None:
    """Return what the config says of `provider/model`; None when it says nothing."""
    provider_id, _, name = (model or "").partition("/")
    provider = config.models.providers.get(provider_id)
    rows = provider.models if provider is not None else []
    return next((row for row in rows if row.id == name), None)


def _layers(config: Config, entry: AgentEntrySettings | None) -> list[CodeModeSettings]:
    own = entry.tools.code_mode if entry is not None else None
    return [layer for layer in (own, config.tools.code_mode) if layer is not None]


def _first(layers: list[CodeModeSettings], name: str) -> Any:
    return next((v for layer in layers if (v := getattr(layer, name)) is not None), None)


def _executor(layers: list[CodeModeSettings]) -> Any:
    """The nearest layer that says anything wins; in it, `executor` beats the legacy `runtime`."""
    for layer in layers:
        if layer.executor is not None:
            return layer.executor
        if layer.runtime is not None:
            return "quickjs"
    return None


def _enabled(
    config: Config, entry: AgentEntrySettings | None, model: str | None, *, default: bool
) -> Switch:
    own = entry.tools.code_mode.enabled if entry is not None and entry.tools.code_mode else None
    everywhere = config.tools.code_mode.enabled if config.tools.code_mode is not None else None
    chain = (_row(entry, model), own, _row(config.agents.defaults, model), everywhere)
    value: Switch = next((v for v in chain if v is not None), default)
    return code_mode_preferred(config, model) if value == "auto" else value


def _row(base: AgentBase | None, model: str | None) -> bool | None:
    if base is None or model is None:
        return None
    row = base.models.get(model)
    return row.code_mode if row is not None else None


def _search_limits_agree(options: CodeModeOptions) -> CodeModeOptions:
    if options.search_default_limit <= options.max_search_limit:
        return options
    return replace(options, search_default_limit=options.max_search_limit)
