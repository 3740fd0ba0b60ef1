"""Owns the tool policy: which tools a run may have at all (rules 2.1, 2.3, 4.4).

Above: `app`, which builds the tool list; the catalog only ever sees what passed here. Below:
`globs`, `groups`, `tools`. Refuses to know: hooks, approvals, config files. Pure functions.

Where a pattern could mean more or less, `deny` reads it widely and `allow` narrowly: a denied name
matches in any case and also the raw names of MCP tools; an allowed name matches exactly, and MCP
tools only by a name that says their server. So no server gains rights by naming a tool `read`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from toolcell.errors import ConfigError
from toolcell.policy.globs import Globs
from toolcell.policy.groups import (
    CLIENT_GROUP,
    CORE_GROUPS,
    GROUP_PREFIX,
    GROUPS,
    MCP_GROUP,
    PLUGIN_GROUP,
    PROFILES,
    SANDBOX_ALLOW,
    Profile,
)
from toolcell.tools.tool import SourcedTool, ToolKind


class Selector:
    """Patterns that pick tools: names, ids, globs, groups, plugin ids, `mcp:<server>:*`.

    Args:
        patterns: The patterns.
        wide: Read them widely, as `deny` does.
        place: Names the setting in an error.

    Raises:
        ConfigError: a pattern is blank, or names a group that does not exist.
    """

    __slots__ = ("_core", "_globs", "_groups", "_mcp_globs", "_servers", "_wide")

    def __init__(self, patterns: tuple[str, ...], *, wide: bool, place: str) -> None:
        cleaned = [_checked(pattern, place) for pattern in patterns]
        named = [pattern for pattern in cleaned if pattern not in GROUPS]
        servers = {pattern: server for pattern in named if (server := _server(pattern))}
        self._wide = wide
        self._groups = frozenset(cleaned) & GROUPS
        self._core = frozenset[str]().union(*(CORE_GROUPS.get(name, ()) for name in self._groups))
        self._globs = Globs(named, fold_case=wide)
        self._servers = Globs(servers.values(), fold_case=wide)
        self._mcp_globs = (
            self._globs if wide else Globs(name for name in named if name not in servers)
        )

    def match(self, sourced: SourcedTool, shown_name: str | None = None) -> bool:
        """Whether one of the patterns picks this tool."""
        if self._in_group(sourced):
            return True
        mcp = sourced.source == "mcp"
        if mcp and self._servers.match(sourced.owner):
            return True
        globs = self._mcp_globs if mcp else self._globs
        return any(globs.match(name) for name in _names(sourced, shown_name, wide=self._wide))

    def _in_group(self, sourced: SourcedTool) -> bool:
        if not self._groups:
            return False
        if sourced.source == "mcp":
            return MCP_GROUP in self._groups
        if sourced.source == "client":
            return CLIENT_GROUP in self._groups
        if sourced.owner == "core":
            return sourced.tool.name in self._core
        return PLUGIN_GROUP in self._groups


def _checked(pattern: str, place: str) -> str:
    cleaned = pattern.strip()
    if not cleaned:
        raise ConfigError("a tool pattern must not be blank; remove it", path=place)
    if cleaned.startswith(GROUP_PREFIX) and cleaned not in GROUPS:
        known = ", ".join(sorted(GROUPS))
        msg = f"unknown tool group {cleaned!r}; the groups are {known}"
        raise ConfigError(msg, path=place)
    return cleaned


def _server(pattern: str) -> str:
    """Return the server that `mcp:<server>:*` or `<server>__*` names, whole; else nothing.

    So `mcp:a:*` never picks the tools of a server called `a:b` unless it denies.
    """
    if pattern.startswith("mcp:") and pattern.endswith(":*"):
        return pattern[4:-2]
    return pattern[:-3] if pattern.endswith("__*") else ""


def _names(sourced: SourcedTool, shown_name: str | None, *, wide: bool) -> tuple[str, ...]:
    """Return every name by which a pattern may pick the tool."""
    name = sourced.tool.name
    shown = () if shown_name is None else (shown_name,)
    if sourced.source == "mcp":
        raw = (name,) if wide else ()
        return (sourced.id, f"{sourced.owner}__{name}", *shown, *raw)
    if sourced.source == "openclaw" and sourced.owner != "core":
        return (sourced.id, name, sourced.owner, *shown)
    return (sourced.id, name, *shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """One layer of policy: the global one, an agent's, or that of the sandbox.

    Attributes:
        allow: Only these; None for no such limit; empty for no tools at all (rule 2.3).
        deny: Never these; beats everything else.
        also_allow: These too, on top of `allow` and of the profile.
        profile: A named starting set; None leaves it to the layer above.

    Raises:
        ConfigError: an unknown profile or group, or a blank pattern.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    also_allow: tuple[str, ...] = ()
    profile: Profile | None = None
    _allow: Selector | None = field(init=False, repr=False, compare=False)
    _deny: Selector = field(init=False, repr=False, compare=False)
    _profile: Selector | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns."""
        allow = None if self.allow is None else (*self.allow, *self.also_allow)
        deny = Selector(self.deny, wide=True, place="tools.deny")
        object.__setattr__(self, "_deny", deny)
        object.__setattr__(self, "_allow", _narrow(allow, "tools.allow"))
        object.__setattr__(self, "_profile", profile_selector(self.profile, self.also_allow))

    def passes_lists(self, sourced: SourcedTool, shown_name: str | None = None) -> bool:
        """Whether `allow` and `deny` let the tool pass, whatever the profile says."""
        if self._deny.match(sourced, shown_name):
            return False
        return self._allow is None or self._allow.match(sourced, shown_name)

    def permits(self, sourced: SourcedTool, shown_name: str | None = None) -> bool:
        """Whether the lists and the profile let the tool pass."""
        if self._profile is not None and not self._profile.match(sourced, shown_name):
            return False
        return self.passes_lists(sourced, shown_name)

    @property
    def empty(self) -> bool:
        """Whether nothing can pass (rule 2.3): `allow` is given and empty, and nothing is added."""
        return self.allow is not None and not self.allow and not self.also_allow


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """Several layers at once: a tool must pass the lists of each, and one profile.

    Attributes:
        layers: The global layer and the agent's; only their lists count.
        profile: The profile in force.
        profile_extra: What is allowed on top of the profile.
        sandbox: The layer of a sandboxed run, with its own profile if it has one.
    """

    layers: tuple[ToolPolicy, ...]
    profile: Profile | None = None
    profile_extra: tuple[str, ...] = ()
    sandbox: ToolPolicy | None = None
    _profile: Selector | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the profile."""
        object.__setattr__(self, "_profile", profile_selector(self.profile, self.profile_extra))

    def permits(self, sourced: SourcedTool, shown_name: str | None = None) -> bool:
        """Whether every layer and the profile let the tool pass."""
        if self._profile is not None and not self._profile.match(sourced, shown_name):
            return False
        if not all(layer.passes_lists(sourced, shown_name) for layer in self.layers):
            return False
        return self.sandbox is None or self.sandbox.permits(sourced, shown_name)

    @property
    def empty(self) -> bool:
        """Whether nothing can pass, so that the run has no tools (rule 2.3)."""
        return any(layer.empty for layer in self.layers) or (
            self.sandbox is not None and self.sandbox.empty
        )


Policy: TypeAlias = ToolPolicy | EffectivePolicy


def profile_selector(profile: Profile | None, extra: tuple[str, ...]) -> Selector | None:
    """Return what a profile and its additions pick; None when they pick everything.

    Raises:
        ConfigError: there is no such profile, or an addition is no pattern.
    """
    if profile is not None and profile not in PROFILES:
        known = ", ".join(PROFILES)
        msg = f"unknown profile {profile!r}; the profiles are {known}"
        raise ConfigError(msg, path="tools.profile")
    _narrow(extra, "tools.alsoAllow")
    names = PROFILES["full" if profile is None else profile]
    return None if names is None else _narrow((*names, *extra), "tools.profile")


def _narrow(patterns: tuple[str, ...] | None, place: str) -> Selector | None:
    return None if patterns is None else Selector(patterns, wide=False, place=place)


def effective(
    everyone: ToolPolicy, agent: ToolPolicy | None = None, sandbox: ToolPolicy | None = None
) -> EffectivePolicy:
    """Combine the global policy with an agent's and, for a sandboxed run, that of the sandbox.

    Lists can only narrow. The agent's profile replaces the global one, and what either of the two
    also allows is added to it; the sandbox's profile, if any, is a further limit. A sandbox without
    an `allow` has local and client tools, and MCP tools only where it also allows them.
    """
    if sandbox is not None and sandbox.allow is None:
        sandbox = replace(sandbox, allow=SANDBOX_ALLOW)
    layers = (everyone,) if agent is None else (everyone, agent)
    profiles = [layer.profile for layer in layers if layer.profile is not None]
    return EffectivePolicy(
        layers=layers,
        profile=profiles[-1] if profiles else None,
        profile_extra=tuple(pattern for layer in layers for pattern in layer.also_allow),
        sandbox=sandbox,
    )


def denies(policy: Policy, sourced: SourcedTool) -> bool:
    """Whether a `deny` list picks this tool by name, control tool or not (BEHAVIOURS 298).

    `allow` lists say nothing here: they name what is behind a control, not the control.
    """
    layers: tuple[ToolPolicy, ...]
    if isinstance(policy, ToolPolicy):
        layers = (policy,)
    else:
        layers = policy.layers if policy.sandbox is None else (*policy.layers, policy.sandbox)
    return any(layer._deny.match(sourced, None) for layer in layers)


def allows(policy: Policy, sourced: SourcedTool, shown_name: str | None = None) -> bool:
    """Whether the run may have this tool.

    Control tools are no subject of policy: rules about the shell's `exec` never reach the code
    cell's (PO-06).

    Args:
        policy: One layer or several.
        sourced: The tool.
        shown_name: The name a provider sees it by, where that differs from its own (MC-12).
    """
    if sourced.tool.kind is ToolKind.CONTROL:
        return True
    return policy.permits(sourced, shown_name)
