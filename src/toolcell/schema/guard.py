"""Owns the guards that keep validation bounded.

A visit counter for schemas that recurse or fan out through references, and a depth limit for the
values they meet.

Above: the validator. Below: `schema.{positions,refs}`, `errors`.
A small recursive schema can take exponential time on a small value, and a deep value can overflow
the native stack of the validator, which would end the process.
"""

from __future__ import annotations

import threading
from typing import Any

from toolcell.errors import SchemaError
from toolcell.schema.positions import DEFINITIONS, rewrite, subschemas, walk
from toolcell.schema.refs import resolve

MAX_VALUE_DEPTH = 128
"""Levels of a value checked against a recursive schema; 1,000 overflow a stack of 512 KiB."""
MAX_HOPS = 640
"""Levels of a value times the references and combinators followed at each level."""
MAX_CHAIN = 40
"""References and combinators followed for one and the same value."""
MAX_REFERENCES = 2_000
"""References in a schema; compiling takes time that grows with their square."""
MAX_VISITS = 100_000
"""Visits of referenced subschemas in one check: about 0.1 s."""
MAX_WEIGHT = 4_000
"""Subschemas, references unfolded, up to which a schema needs no guard."""
KEYWORD = "x-toolcell-visit"

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAX_WALK = 120
_SAME_VALUE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"))


class Visits(threading.local):
    """What is left of the budget, for each thread by itself."""

    left: int = MAX_VISITS


class TooManyVisitsError(Exception):
    """Ends a visit; the validator turns it into a failed branch."""


def counting_keyword(visits: Visits) -> type:
    """Return the class of a custom keyword that counts visits and fails when none are left."""

    class CountVisit:
        def __init__(self, parent_schema: Any, value: Any, schema_path: Any) -> None:
            del parent_schema, value, schema_path

        def validate(self, instance: Any) -> None:
            del instance
            visits.left -= 1
            if visits.left < 0:
                raise TooManyVisitsError

    return CountVisit


class _Weigher:
    """Counts subschemas with references unfolded; infinite for a cycle."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.known: dict[int, float] = {}

    def weigh(self, schema: Any, depth: int = 0) -> float:
        """Return the weight of a subschema."""
        if not isinstance(schema, dict):
            return 1
        if depth > _MAX_WALK:
            return float("inf")
        key = id(schema)
        if key in self.known:
            return self.known[key]
        self.known[key] = float("inf")  # met again while open: a cycle
        weight = 1.0
        for word, child in subschemas(schema):
            if word not in DEFINITIONS:
                weight += self.weigh(child, depth + 1)
        for word in _REFERENCES:
            if word in schema:
                target = resolve(self.root, schema[word]) if word == "$ref" else None
                weight += float("inf") if target is None else self.weigh(target.schema, depth + 1)
        self.known[key] = weight
        return weight


class _Chains:
    """Measures how many references and combinators lead to one value."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.known: dict[int, int] = {}

    def longest(self, schema: Any, depth: int = 0) -> int:
        """Return the longest chain below a subschema; a cycle counts once.

        Raises:
            SchemaError: it is longer than `MAX_CHAIN`.
        """
        if not isinstance(schema, dict):
            return 0
        length = self.known.get(id(schema))
        if length is None:
            self.known[id(schema)] = 0
            length = 0 if depth > MAX_CHAIN else self._below(schema, depth)
            self.known[id(schema)] = length
        if depth + length > MAX_CHAIN:
            msg = f"follows more than {MAX_CHAIN} references for one value"
            raise SchemaError(msg)
        return length

    def _below(self, schema: dict[str, Any], depth: int) -> int:
        target = resolve(self.root, schema.get("$ref"))
        nexts = [child for word, child in subschemas(schema) if word in _SAME_VALUE]
        nexts += [target.schema] if target is not None else []
        return max((1 + self.longest(child, depth + 1) for child in nexts), default=0)


def levels_allowed(schema: Any) -> int:
    """Return how deep a value may be for a guarded schema.

    Raises:
        SchemaError: the schema has too many references, or too many in a row.
    """
    chains = _Chains(schema)
    longest, references = 0, 0
    for members in walk(schema):
        references += sum(word in members for word in _REFERENCES)
        if references > MAX_REFERENCES:
            msg = f"more than {MAX_REFERENCES} references"
            raise SchemaError(msg)
        longest = max(longest, chains.longest(members))
    return min(MAX_VALUE_DEPTH, MAX_HOPS // max(longest, 1))


def needs_guard(schema: Any) -> bool:
    """Whether checking a value may take more steps than the schema has parts."""
    if not any(word in members for members in walk(schema) for word in _REFERENCES):
        return False
    return outweighs(schema, schema)


def outweighs(root: Any, part: Any) -> bool:
    """Whether a part of a schema weighs too much to be checked without a guard."""
    return _Weigher(root).weigh(part) > MAX_WEIGHT


def guarded(schema: Any, *, refs_stand_alone: bool) -> Any:
    """Return a schema in which following a reference is counted first.

    Args:
        schema: A plain schema.
        refs_stand_alone: Its dialect ignores the keywords beside `$ref`.
    """

    def change(members: dict[str, Any]) -> dict[str, Any]:
        found = [word for word in _REFERENCES if word in members]
        if not found:
            return members
        # `if` is the one keyword after which the rest is skipped when the count has run out.
        steps = [
            {"if": {KEYWORD: True}, "then": {word: members.pop(word)}, "else": False}
            for word in found
        ]
        if refs_stand_alone:
            kept = {k: members[k] for k in DEFINITIONS if k in members}
            return {**kept, "allOf": steps}
        return {**members, "allOf": [*members.get("allOf", ()), *steps]}

    return rewrite(schema, change)


def too_deep(value: Any, levels: int) -> bool:
    """Whether a value nests deeper than `levels`."""
    level = [value]
    for _ in range(levels):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(v for v in item.values() if isinstance(v, dict | list | tuple))
            elif isinstance(item, list | tuple):
                below.extend(v for v in item if isinstance(v, dict | list | tuple))
        if not below:
            return False
        level = below
    return True
