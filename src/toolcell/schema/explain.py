"""Owns finding out why a value is invalid: a bounded walk that stops early and words it itself.

Above: the validator, which has already judged. Below: `schema.{nearest,plain,refs,violations}` and
the validator library for single keywords.
The library lists every error before the first can be read, which takes seconds for a large value,
so it only judges and this explains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from toolcell.base.jsontext import canonical
from toolcell.schema.kinds import kind_of_value
from toolcell.schema.nearest import nearest
from toolcell.schema.refs import resolve
from toolcell.schema.violations import Path, Violation, describe_kind, describe_value

MAX_VIOLATIONS = 10
MAX_STEPS = 4_000
MAX_HOPS = 64
_MAX_OPTIONS = 12

KeywordCheck = Callable[[str, Any, Any], bool]
"""`(keyword, argument, value)` → whether the value satisfies that keyword alone."""

_ARTICLES = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
_ASKED = {
    "minimum": "a number >= {}",
    "maximum": "a number <= {}",
    "exclusiveMinimum": "a number > {}",
    "exclusiveMaximum": "a number < {}",
    "multipleOf": "a multiple of {}",
    "minLength": "a string of at least {} characters",
    "maxLength": "a string of at most {} characters",
    "pattern": "a string that matches {}",
    "minItems": "an array of at least {} items",
    "maxItems": "an array of at most {} items",
    "uniqueItems": "an array without equal items",
    "minProperties": "an object of at least {} properties",
    "maxProperties": "an object of at most {} properties",
}


class _SpentError(Exception):
    """The walk has used up its steps."""


class Explainer:
    """Explains one value against one plain schema, or a part of it."""

    def __init__(self, root: Any, check: KeywordCheck, *, refs_stand_alone: bool) -> None:
        self._root = root
        self._check = check
        self._refs_stand_alone = refs_stand_alone
        self._steps = MAX_STEPS

    def explain(self, value: Any, part: Any) -> list[Violation]:
        """Return up to ten violations, missing and unknown properties first; maybe none.

        Args:
            value: What the validator found invalid.
            part: The part of the root that it was held to, or the root.
        """
        found: list[Violation] = []
        with contextlib.suppress(_SpentError, RecursionError):
            self._walk(part, value, Path(), found)
        found.sort(key=lambda violation: violation.kind == "mismatch")
        return found[:MAX_VIOLATIONS]

    def _walk(
        self, schema: Any, value: Any, path: Path, out: list[Violation], hops: int = 0
    ) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise _SpentError
        if schema is False:
            out.append(_mismatch("nothing here", value, path))
        if not isinstance(schema, dict) or hops > MAX_HOPS or len(out) >= MAX_VIOLATIONS:
            return
        if "$ref" in schema:
            target = resolve(self._root, schema["$ref"])
            if target is not None:
                self._walk(target.schema, value, path, out, hops + 1)
            if self._refs_stand_alone:
                return
        if not self._own(schema, value, path, out):
            return
        if isinstance(value, dict):
            self._members(schema, value, path, out)
        elif isinstance(value, list | tuple):
            self._items(schema, value, path, out)
        self._combinators(schema, value, path, out, hops + 1)

    def _own(self, schema: dict[str, Any], value: Any, path: Path, out: list[Violation]) -> bool:
        """Check what concerns the value as a whole; False when looking inside is pointless."""
        kinds = schema.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(names, list) and not kind_of_value(value) & set(names):
            words = [_ARTICLES.get(name, str(name)) for name in names]
            out.append(_mismatch(" or ".join(words), value, path))
            return False
        for keyword in ("const", "enum"):
            if keyword in schema and not self._check(keyword, schema[keyword], value):
                out.append(_mismatch(_options(keyword, schema[keyword]), value, path))
                return False
        for keyword, asked in _ASKED.items():
            if keyword in schema and not self._check(keyword, schema[keyword], value):
                argument = schema[keyword]
                written = canonical(argument) if isinstance(argument, str) else argument
                out.append(_mismatch(asked.format(written), value, path))
        return True

    def _members(
        self, schema: dict[str, Any], value: dict[str, Any], path: Path, out: list[Violation]
    ) -> None:
        declared = schema.get("properties", {})
        dependent = schema.get("dependentRequired", {})
        wanted = [*schema.get("required", ())]
        wanted += [n for name, names in dependent.items() if name in value for n in names]
        out.extend(
            Violation(kind="missing", path=path.member(name, declared=True))
            for name in dict.fromkeys(wanted)
            if name not in value
        )
        patterns = schema.get("patternProperties", {})
        others = schema.get("additionalProperties", True)
        for name, member in value.items():
            if len(out) >= MAX_VIOLATIONS:
                return
            if name in declared:
                self._walk(declared[name], member, path.member(name, declared=True), out)
            matched = [s for p, s in patterns.items() if self._check("pattern", p, name)]
            inner = path.member(name, declared=False)
            for pattern_schema in matched:
                self._walk(pattern_schema, member, inner, out)
            if name in declared or matched or others is True:
                continue
            if others is False:
                free = [n for n in declared if n not in value and declared[n] is not False]
                near = nearest(name, free)
                out.append(Violation(kind="unknown", path=inner, suggestion=near))
            else:
                self._walk(others, member, inner, out)

    def _items(
        self, schema: dict[str, Any], value: list[Any] | tuple[Any, ...], path: Path, out: list[Any]
    ) -> None:
        rest = schema.get("items", True)
        prefix = schema.get("prefixItems", ())
        if isinstance(rest, list):
            prefix, rest = rest, schema.get("additionalItems", True)
        for index, item in enumerate(value):
            if len(out) >= MAX_VIOLATIONS or (rest is True and index >= len(prefix)):
                return
            inner = prefix[index] if index < len(prefix) else rest
            self._walk(inner, item, path.index(index), out)

    def _combinators(
        self, schema: dict[str, Any], value: Any, path: Path, out: list[Violation], hops: int
    ) -> None:
        for branch in schema.get("allOf", ()):
            self._walk(branch, value, path, out, hops)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                tried = [self._try(branch, value, path, hops) for branch in schema[keyword]]
                out.extend(_best(tried, value, path))
                if keyword == "oneOf" and sum(not found for found in tried) > 1:
                    out.append(_mismatch("exactly one of several shapes", value, path))
        if "if" in schema:
            branch = "else" if self._try(schema["if"], value, path, hops) else "then"
            self._walk(schema.get(branch, True), value, path, out, hops)
        if "not" in schema and not self._try(schema["not"], value, path, hops):
            out.append(_mismatch("a value its schema does not exclude", value, path))
        for name, branch in schema.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and name in value:
                self._walk(branch, value, path, out, hops)

    def _try(self, branch: Any, value: Any, path: Path, hops: int) -> list[Violation]:
        found: list[Violation] = []
        self._walk(branch, value, path, found, hops)
        return found


def _mismatch(expected: str, value: Any, path: Path) -> Violation:
    return Violation(
        kind="mismatch",
        path=path,
        expected=expected,
        got=describe_kind(value),
        value=describe_value(value),
    )


def _options(keyword: str, argument: Any) -> str:
    if keyword == "const":
        return canonical(argument)
    words = [canonical(option) for option in argument[:_MAX_OPTIONS]]
    more = len(argument) - len(words)
    return "one of " + ", ".join(words) + (f" and {more} more" if more > 0 else "")


def _best(tried: list[list[Violation]], value: Any, path: Path) -> list[Violation]:
    """Return the violations of the variant that was probably meant; none when one fits."""
    if not tried or not all(tried):
        return []
    whole = [f[0] for f in tried if f[0].path == path and f[0].kind == "mismatch"]
    if len(whole) == len(tried):
        return [_mismatch(" or ".join(dict.fromkeys(v.expected for v in whole)), value, path)]
    inside = [f for f in tried if not (f[0].path == path and f[0].kind == "mismatch")]
    return min(inside, key=lambda found: sum(3 if v.kind == "mismatch" else 1 for v in found))
