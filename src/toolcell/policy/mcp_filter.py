"""Owns the include and exclude lists of one MCP server (MC-12).

Above: the MCP source. Below: `globs`. Refuses to know: how a shown name is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcell.policy.globs import Globs


def selected(patterns: Sequence[str], shown: Mapping[str, str]) -> frozenset[str]:
    """Return the raw names of the tools that the patterns pick.

    A pattern that is exactly some tool's shown name picks that tool alone, even where another
    tool's raw name reads the same. Any other pattern is a raw name or a glob over raw names.

    Args:
        patterns: Shown names, raw names or globs.
        shown: Raw name to the name that listings and providers show, for every tool of the server.
    """
    by_shown = {name: raw for raw, name in shown.items()}
    aliases = {by_shown[pattern] for pattern in patterns if pattern in by_shown}
    raw_patterns = Globs(pattern for pattern in patterns if pattern not in by_shown)
    return frozenset(aliases | {raw for raw in shown if raw_patterns.match(raw)})


def filtered(
    shown: Mapping[str, str], *, include: Sequence[str] | None = None, exclude: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the raw names that stay, in the order given; `exclude` beats `include`."""
    kept = frozenset(shown) if include is None else selected(include, shown)
    dropped = selected(exclude, shown)
    return tuple(raw for raw in shown if raw in kept and raw not in dropped)
