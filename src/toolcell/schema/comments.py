"""Owns doc comments: text of any origin, made unable to end the comment or to fake a tag.

Above: declarations. Below: `base.jsontext`, `schema.plain`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolcell.base.jsontext import clip_utf16, dumps
from toolcell.errors import SchemaError
from toolcell.schema.literals import property_name
from toolcell.schema.plain import as_object, copy_plain

MAX_LINES = 12
"""Lines of a description that are kept (BEHAVIOURS 236)."""
MAX_LINE = 512
"""UTF-16 units of one line, as for MCP descriptions (rule 4.9)."""
MAX_PARAMETERS = 64
_MAX_DEFAULT = 120
_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def one_line(text: str) -> str:
    """Return `text` on one line that stays inside its comment: `*/` becomes `* /`."""
    flat = " ".join(clip_utf16(text, 4 * MAX_LINE).split())
    flat = flat if flat.isprintable() else "".join(c if c.isprintable() else "" for c in flat)
    while "*/" in flat:
        flat = flat.replace("*/", "* /")
    return clip_utf16(flat, MAX_LINE).rstrip()


def doc_comment(description: str, tags: Iterable[str], prefix: str) -> str:
    """Return a doc comment with a line break at its end, or nothing when there is nothing to say.

    Args:
        description: Any text; its first 12 lines that are not blank are kept.
        tags: Lines such as `@param owner Who.`, made by `param_tags`.
        prefix: The indent of every line.
    """
    lines = [one_line(line) for line in _LINE_ENDS.split(description[: 64 * MAX_LINE])]
    # A backslash keeps a line of the description from being read as a tag.
    lines = [f"\\{line}" if line.startswith("@") else line for line in lines if line]
    del lines[MAX_LINES:]
    body = [*lines, *tags]
    if not body:
        return ""
    if len(body) == 1 and not body[0].startswith("@"):
        return f"{prefix}/** {body[0]} */\n"
    return "".join([f"{prefix}/**\n", *(f"{prefix} * {line}\n" for line in body), f"{prefix} */\n"])


def param_tags(
    names: Iterable[str], properties: Mapping[Any, Any], needed: Iterable[str]
) -> list[str]:
    """Return the `@param` lines of an input's members that have a description or a default.

    Args:
        names: The members, in the order to print.
        properties: Their schemas.
        needed: Those that must be given; the others are marked `?`.
    """
    mandatory = frozenset(needed)
    tags = []
    for name in names:
        members = as_object(properties.get(name)) or {}
        text = members.get("description")
        parts = [one_line(text)] if isinstance(text, str) else []
        if "default" in members:
            parts += [_default(members["default"])]
        said = " ".join(part for part in parts if part)
        if said:
            mark = "" if name in mandatory else "?"
            tags.append(f"@param {one_line(property_name(name))}{mark} {said}")
    return tags[:MAX_PARAMETERS]


def _default(value: Any) -> str:
    try:
        text = dumps(copy_plain(value))
    except (SchemaError, ValueError):
        return ""
    return f"Default: {one_line(text)}." if len(text) <= _MAX_DEFAULT else ""
