"""Owns local references: `#`, `#/json/pointer` (RFC 6901) and `#anchor`, inside one document.

Above: the type reader, the validator's guards. Below: `schema.plain`.
Refuses to know: the network and the file system; a reference that leaves the document is nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import unquote

from toolcell.schema.plain import as_list, as_object

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})", re.ASCII)
_BAD_TILDE = re.compile(r"~(?![01])")
_MAX_POINTER = 2048
_MAX_PARTS = 64
_MAX_ANCHORS = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """Where a reference leads: the subschema, and the document its own references start from."""

    schema: Any
    root: Any


def is_document(schema: dict[Any, Any]) -> bool:
    """Whether a subschema is a document of its own: `$id` with more than a fragment."""
    identifier = schema.get("$id")
    return isinstance(identifier, str) and not identifier.startswith("#") and bool(identifier)


def pointer_parts(fragment: str) -> list[str] | None:
    """Return the unescaped parts of a JSON pointer fragment, or None when it is malformed."""
    try:
        text = unquote(fragment, errors="strict")
    except UnicodeDecodeError:
        return None
    if not text.startswith("/") or _BAD_TILDE.search(text):
        return None
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def resolve(root: Any, reference: Any) -> Target | None:
    """Follow one local reference; one step, so a cycle is the caller's to see.

    Args:
        root: The document (a mapping).
        reference: The value of `$ref`.

    Returns:
        The target, or None when it dangles, is malformed or leaves the document.
    """
    if type(reference) is not str or not reference.startswith("#"):
        return None
    if reference == "#":
        return Target(root, root)
    if len(reference) > _MAX_POINTER:
        return None
    if not reference.startswith(("#/", "#%2F", "#%2f")):
        return _anchor(root, unquote(reference[1:]))
    parts = pointer_parts(reference[1:])
    if parts is None or len(parts) > _MAX_PARTS:
        return None
    return _walk(root, parts)


def _walk(root: Any, parts: list[str]) -> Target | None:
    here, document = root, root
    for part in parts:
        items = as_list(here)
        if items is not None:
            # "00", "0x0" and "+0" are no array indices (RFC 6901, 4).
            if not _INDEX.fullmatch(part) or int(part) >= len(items):
                return None
            here = items[int(part)]
            continue
        members = as_object(here)
        if members is None or part not in members:
            return None
        if members is not root and is_document(members):
            document = here
        here = members[part]
    return Target(here, document)


def _anchor(root: Any, name: str) -> Target | None:
    """Find `$anchor: name` (or draft-07's `$id: "#name"`) among the definitions."""
    members = as_object(root) or {}
    for keyword in ("$defs", "definitions"):
        definitions = as_object(members.get(keyword)) or {}
        for schema in islice(definitions.values(), _MAX_ANCHORS):
            found = as_object(schema)
            if found and (found.get("$anchor") == name or found.get("$id") == f"#{name}"):
                return Target(schema, root)
    return None
