"""Owns the named sets of tools: groups and profiles, as data.

Above: rules. Below: `errors`. Refuses to know: which tools exist. A group names core tools only, so
a plugin or a server cannot join one by choosing a name (PO-08).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Profile = Literal["minimal", "coding", "messaging", "full"]

GROUP_PREFIX: Final = "group:"
MCP_GROUP: Final = "bundle-mcp"
"""Every tool of every MCP server."""
CLIENT_GROUP: Final = "group:client"
"""Every tool that a client sent with its request."""
PLUGIN_GROUP: Final = "group:plugins"
"""Every tool of every plugin. One plugin's tools are named by its id."""

CORE_GROUPS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "group:fs": frozenset(
            {"read", "ls", "find", "grep", "write", "edit", "apply_patch", "image"}
        ),
        "group:runtime": frozenset({"exec", "process", "terminal"}),
        "group:sessions": frozenset(
            {
                "agents_list",
                "agents_wait",
                "sessions_history",
                "sessions_list",
                "sessions_search",
                "sessions_send",
                "sessions_spawn",
                "session_status",
                "spawn_task",
            }
        ),
        "group:messaging": frozenset(
            {"conversations_list", "conversations_send", "conversations_turn", "message"}
        ),
        "group:web": frozenset({"web_fetch", "web_search"}),
    }
)
"""Core tool names by group."""

GROUPS: Final = frozenset({*CORE_GROUPS, CLIENT_GROUP, PLUGIN_GROUP, MCP_GROUP})
"""Every group a pattern may name, besides plugin ids."""

PROFILES: Final[Mapping[str, tuple[str, ...] | None]] = MappingProxyType(
    {
        "minimal": ("openclaw:core:session_status",),
        "coding": ("group:fs", "group:runtime", "group:sessions", "group:web"),
        "messaging": (
            "group:messaging",
            "openclaw:core:sessions_history",
            "openclaw:core:sessions_list",
            "openclaw:core:sessions_send",
            "openclaw:core:session_status",
        ),
        "full": None,
    }
)
"""What each profile starts from; None is everything."""

SANDBOX_ALLOW: Final = ("openclaw:*", CLIENT_GROUP)
"""What a sandboxed run may have when `tools.sandbox.tools.allow` is absent: no MCP tools, unless
`alsoAllow` names `bundle-mcp` or some of them."""
