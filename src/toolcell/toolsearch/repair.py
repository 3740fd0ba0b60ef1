"""Owns reading `tool_call` as models write it: which tool, and its arguments (BEHAVIOURS 326-328).

Small models flatten arguments, prefix them with `args.`, wrap them twice or put the id among them.
What they mean is found where only one reading is possible; between two tools no guess is made.

Above: the controls' bodies. Below: `selection`. Refuses to know: how a call runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.catalog.entry import Entry
from toolcell.toolsearch.selection import AMBIGUOUS_SELECTORS, NO_ID, Selection, bad_input

SELECTORS: Final = ("id", "toolId", "name")
_PREFIX: Final = "args."
_ALIASES: Final = ("input", "arguments", "parameters", "params")


def target(given: Mapping[str, Any], selection: Selection) -> tuple[Entry, Any]:
    """Return the tool that is called and its arguments.

    Raises:
        CallError: no tool is named, it cannot be found, or two tools are named.
    """
    key = _selector(given, selection)
    args = _decoded(given.get("args"))
    if key is None:
        if isinstance(args, Mapping) and _selector(args, selection) is not None:
            return target(args if "args" in args else _unwrapped(args, selection), selection)
        raise bad_input(NO_ID)
    entry = selection.require(given[key])
    rest = {name: value for name, value in given.items() if name not in (key, "args")}
    if args is None or isinstance(args, Mapping):
        rest = _without_echoes(rest, entry, selection)
        return entry, _arguments(args or {}, rest, _property_names(entry))
    return entry, args


def selected(given: Mapping[str, Any], selection: Selection) -> Entry:
    """Return the tool that `tool_describe` is asked about.

    Raises:
        CallError: as `target`.
    """
    return target({name: given.get(name) for name in SELECTORS if name in given}, selection)[0]


def _selector(given: Mapping[str, Any], selection: Selection) -> str | None:
    """Return the key that names the tool: the first that names one, else the first with a text.

    Something that looks like an exact id is never passed over for a name beside it.

    Raises:
        CallError: two keys name different tools.
    """
    texts = [key for key in SELECTORS if isinstance(v := given.get(key), str) and v.strip()]
    found = {key: entry for key in texts if (entry := selection.find(given[key])) is not None}
    if len({id(entry) for entry in found.values()}) > 1:
        raise bad_input(AMBIGUOUS_SELECTORS)
    if texts and ":" in given[texts[0]]:
        return texts[0]
    return next(iter(found), texts[0] if texts else None)


def _without_echoes(rest: Mapping[str, Any], entry: Entry, selection: Selection) -> dict[str, Any]:
    """Leave out further selectors that name the same tool again."""
    return {
        name: value
        for name, value in rest.items()
        if name not in SELECTORS or selection.find(value) is not entry
    }


def _unwrapped(args: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    """Return arguments that hold their own tool's id as a call of that tool."""
    key = _selector(args, selection)
    inner = {name: value for name, value in args.items() if name != key}
    return {"id": args[key], "args": inner} if key is not None else dict(args)


def _arguments(
    args: Mapping[str, Any], rest: Mapping[str, Any], properties: frozenset[str]
) -> dict[str, Any]:
    dotted, flat = {}, {}
    for name, value in rest.items():
        if name.startswith(_PREFIX) and name not in properties:
            dotted[name.removeprefix(_PREFIX)] = value
        else:
            flat[name] = value
    own = _once(args, properties)
    if own:
        literal = {n: v for n, v in flat.items() if n.startswith(_PREFIX)}
        return {**dotted, **literal, **own}
    for alias in _ALIASES:
        inside = _decoded(flat.get(alias))
        if isinstance(inside, Mapping) and alias not in properties:
            others = {name: value for name, value in flat.items() if name != alias}
            return {**dotted, **others, **inside}
    return {**dotted, **flat}


def _once(args: Mapping[str, Any], properties: frozenset[str]) -> Mapping[str, Any]:
    """Return arguments that were wrapped twice without the second wrapping."""
    inner = args.get("args")
    if len(args) == 1 and isinstance(inner, Mapping) and "args" not in properties:
        return inner
    return args


def _decoded(value: Any) -> Any:
    """Return an object that was written as JSON text; a text can never be a tool's arguments."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            read = loads(value)
        except (ValueError, RecursionError):
            return value
        return read if isinstance(read, dict) else value
    return value


def _property_names(entry: Entry) -> frozenset[str]:
    """Return the names on top of a tool's schema; nothing below them is looked at."""
    properties: Iterable[Any] | Any = entry.sourced.tool.parameters.get("properties")
    return frozenset(properties) if isinstance(properties, Mapping) else frozenset()
