"""Owns which tools of a server are taken: `include`, `exclude` and `max_tools`.

Above: the listing. Below: `policy.mcp_filter`, `catalog.names`, settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from toolcell.catalog.names import provider_names
from toolcell.policy.mcp_filter import selected
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.tools import ListedTool, listed_tool

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def left_out(
    server: str, settings: McpServerSettings, tools: Sequence[ListedTool]
) -> dict[str, str]:
    """Return the names of the tools that are not taken, each with the setting that left it out."""
    names = [tool.name for tool in tools]
    out: dict[str, str] = {}
    if settings.include is not None:
        wanted = _selected(server, settings.include, tools)
        out.update({name: "not in 'include'" for name in names if name not in wanted})
    if settings.exclude:
        out.update(dict.fromkeys(_selected(server, settings.exclude, tools), "in 'exclude'"))
    if settings.max_tools is not None:
        kept = [name for name in names if name not in out]
        over = f"over 'maxTools' ({settings.max_tools})"
        out.update(dict.fromkeys(kept[settings.max_tools :], over))
    return out


def _selected(server: str, patterns: Sequence[str], tools: Sequence[ListedTool]) -> frozenset[str]:
    """Match a pattern in the three forms a name is shown in: as the provider sees it, and plainly.

    Plainly: `<server>__<tool>` with the characters a provider refuses made `-` or `_`.
    """
    sourced = [listed_tool(server, tool, _never) for tool in tools]
    provider = provider_names(sourced).by_id
    raw = [each.tool.name for each in sourced]
    forms = [
        {each.tool.name: provider[each.id] for each in sourced if each.id in provider},
        {name: _plain(server, name, "-") for name in raw},
        {name: _plain(server, name, "_") for name in raw},
    ]
    chosen: set[str] = set()
    for pattern in patterns:
        form = next((each for each in forms if pattern in each.values()), forms[0])
        chosen |= selected([pattern], form)
    return frozenset(chosen)


def _plain(server: str, tool: str, filler: str) -> str:
    return f"{_UNSAFE.sub(filler, server)}__{_UNSAFE.sub(filler, tool)}"


async def _never(*_: Any) -> NoReturn:
    """Stand where a tool needs a body; these tools only lend their names."""
    raise NotImplementedError
