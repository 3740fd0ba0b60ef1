"""Owns which tools of a server are taken: `include`, `exclude` and `max_tools`.

Above: the listing. Below: settings. A pattern matches a raw name, a glob over raw names, or the
projected name that listings and providers show, `<server>__<tool>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from toolcell.sources.mcp.settings import McpServerSettings

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_GLOB = re.compile(r"[*?\[]")


def projected(server: str, tool: str) -> str:
    """Return `<server>__<tool>` with every character a provider refuses made `-`."""
    return f"{_UNSAFE.sub('-', server)}__{_UNSAFE.sub('-', tool)}"


def left_out(server: str, settings: McpServerSettings, names: Sequence[str]) -> dict[str, str]:
    """Return the names that are not taken, each with the setting that left it out."""
    out: dict[str, str] = {}
    if settings.include is not None:
        wanted = _selected(server, settings.include, names)
        out.update({name: "not in 'include'" for name in names if name not in wanted})
    for name in _selected(server, settings.exclude, names):
        out[name] = "in 'exclude'"
    if settings.max_tools is not None:
        kept = [name for name in names if name not in out]
        for name in kept[settings.max_tools :]:
            out[name] = f"over 'maxTools' ({settings.max_tools})"
    return out


def _selected(server: str, patterns: Iterable[str], names: Sequence[str]) -> set[str]:
    by_projection: dict[str, list[str]] = {}
    for name in names:
        by_projection.setdefault(projected(server, name), []).append(name)
    known = set(names)
    chosen: set[str] = set()
    for pattern in patterns:
        # A projected name stands for its own tool, so a tool whose raw name happens to read the
        # same is not caught with it (REPORTS MC-12).
        if pattern in by_projection:
            chosen.update(by_projection[pattern])
        elif pattern in known:
            chosen.add(pattern)
        elif _GLOB.search(pattern):
            chosen.update(name for name in names if fnmatchcase(name, pattern))
    return chosen
