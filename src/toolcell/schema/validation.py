"""Owns compiled validators: fast judgement, bounded explanation, no network, no files.

Above: the call gate. Below: `jsonschema_rs` (judges), `schema.{dialect,explain,guard,plain}`.
Refuses to know: whether a schema describes input or output, and what is done about a violation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from toolcell.base.jsontext import canonical
from toolcell.errors import SchemaError
from toolcell.schema.dialect import Dialect, dialect_of, modern
from toolcell.schema.explain import Explainer
from toolcell.schema.guard import (
    KEYWORD,
    MAX_VISITS,
    Visits,
    counting_keyword,
    guarded,
    levels_allowed,
    needs_guard,
    outweighs,
    too_deep,
)
from toolcell.schema.plain import SameObject, copy_plain
from toolcell.schema.positions import walk
from toolcell.schema.refs import resolve
from toolcell.schema.violations import (
    Path,
    Violation,
    clipped,
    describe_kind,
    did_you_mean,
    violation_lines,
)

__all__ = ["Validator", "Violation", "compile_validator", "did_you_mean", "violation_lines"]

REMEMBERED: Final = 4096
"""Compiled validators that are kept; the least recently used one goes first."""

_ROOT = "urn:x-toolcell:schema"
"""The address of a schema while its parts are compiled."""
_BACKTRACKS = 20_000
_PATTERN_BYTES = 1 << 20
_CLASSES: dict[Dialect, Any] = {
    "draft-07": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}
_DRAFTS: dict[Dialect, int] = {
    "draft-07": jsonschema_rs.Draft7,
    "2019-09": jsonschema_rs.Draft201909,
    "2020-12": jsonschema_rs.Draft202012,
}


def _native(
    schema: Any,
    dialect: Dialect,
    keywords: dict[str, Any] | None = None,
    registry: jsonschema_rs.Registry | None = None,
) -> Any:
    """Compile: offline, formats as annotations, patterns with a bound on backtracking."""
    options = jsonschema_rs.FancyRegexOptions(
        backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES
    )
    return _CLASSES[dialect](
        schema,
        offline=True,
        validate_formats=False,
        pattern_options=options,
        keywords=keywords or {},
        registry=registry,
    )


def _no_retrieval(address: str) -> Any:
    msg = f"{address} is never fetched"
    raise ValueError(msg)


class _Document:
    """A plain schema in the form that it and its parts are compiled from."""

    __slots__ = ("_registries", "counting", "dialect", "levels", "schema")

    def __init__(self, schema: Any) -> None:
        plain = copy_plain(schema)
        if not isinstance(plain, dict | bool):
            msg = f"a JSON Schema is an object or a boolean, not {describe_kind(plain)}"
            raise SchemaError(msg)
        self.dialect: Final = dialect_of(plain)
        self.schema: Final = modern(plain, self.dialect)
        self.levels: Final = levels_allowed(self.schema)
        self.counting: Final = needs_guard(self.schema)
        self._registries: Final[dict[bool, jsonschema_rs.Registry]] = {}

    def compiled(self, pointer: str, visits: Visits | None) -> Any:
        """Compile what a pointer leads to and what that refers to; the rest costs nothing.

        Raises:
            SchemaError: it is no valid JSON Schema, refers outside itself, or is too large.
        """
        keywords = {} if visits is None else {KEYWORD: counting_keyword(visits)}
        try:
            if pointer == "#":
                return _native(self._written(counting=visits is not None), self.dialect, keywords)
            registry = self._registry(counting=visits is not None)
            return _native({"$ref": _ROOT + pointer}, self.dialect, keywords, registry)
        except jsonschema_rs.ValidationError as error:
            raise _refusal(self.schema, error) from None
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            msg = f"cannot be compiled ({type(error).__name__})"
            raise SchemaError(msg) from None

    def _written(self, *, counting: bool) -> Any:
        if not counting:
            return self.schema
        return guarded(self.schema, refs_stand_alone=self.dialect == "draft-07")

    def _registry(self, *, counting: bool) -> jsonschema_rs.Registry:
        if counting not in self._registries:
            self._registries[counting] = jsonschema_rs.Registry(
                [(_ROOT, self._written(counting=counting))],
                draft=_DRAFTS[self.dialect],
                retriever=_no_retrieval,
            )
        return self._registries[counting]

    def explained(self, value: Any, part: Any) -> list[Violation]:
        """Say why a value does not match a part."""
        explainer = Explainer(
            self.schema, _keyword_holds, refs_stand_alone=self.dialect == "draft-07"
        )
        return explainer.explain(value, part) or [_whole("a value that matches its schema")]


class Validator:
    """One compiled schema. Safe to use from several threads."""

    __slots__ = ("_document", "_judge", "_part", "_parts", "_visits")

    def __init__(self, schema: Any) -> None:
        """Compile a schema.

        Raises:
            SchemaError: it is no valid JSON Schema, refers outside itself, or is too large.
        """
        document = _Document(schema)
        self._take(document, "#", document.schema, counting=document.counting)

    def _take(self, document: _Document, pointer: str, part: Any, *, counting: bool) -> None:
        self._document = document
        self._part = part
        self._parts: dict[str, _Part | SchemaError] = {}
        self._visits = Visits() if counting else None
        self._judge = document.compiled(pointer, self._visits)

    def part(self, pointer: str) -> Validator:
        """Return the validator of a part of this schema alone, compiled at its first use.

        Args:
            pointer: Where the part stands, such as `#/anyOf/0`. What it refers to may stand
                anywhere in the whole schema; what stands around it is not asked for. It comes
                from the schema's author, never from an input: each is remembered.

        Raises:
            SchemaError: there is no such part, or it cannot be compiled.
        """
        found = self._parts.get(pointer)
        if found is None:
            try:
                found = _Part(self._document, pointer)
            except SchemaError as error:
                found = error
            self._parts[pointer] = found
        if isinstance(found, SchemaError):
            raise SchemaError(found.message)
        return found

    def errors(self, value: Any) -> list[Violation]:
        """Return why a plain JSON value is invalid: nothing when it is valid, else 1 to 10."""
        if self._visits is not None:
            if too_deep(value, self._document.levels):
                return [_whole(f"at most {self._document.levels} levels of nesting")]
            self._visits.left = MAX_VISITS
        try:
            valid = self._judge.is_valid(value)
        except UnicodeEncodeError:  # lone surrogates have no UTF-8 form; look at U+FFFD instead
            return self._errors_of_copy(value)
        except ValueError:
            return self._errors_of_copy(value)
        if self._visits is not None and self._visits.left < 0:
            return [_whole("a value that can be checked in a bounded time")]
        return [] if valid else self._document.explained(value, self._part)

    def _errors_of_copy(self, value: Any) -> list[Violation]:
        try:
            plain = copy_plain(value)
        except SchemaError as error:
            return [_whole(f"plain JSON ({error.message})")]
        if self._visits is not None:
            self._visits.left = MAX_VISITS
        if self._judge.is_valid(plain):
            return []
        return self._document.explained(plain, self._part)


class _Part(Validator):
    """A part of a schema that is compiled as a whole elsewhere."""

    __slots__ = ()

    def __init__(self, document: _Document, pointer: str) -> None:
        target = resolve(document.schema, pointer)
        if target is None or not isinstance(target.schema, dict | bool):
            msg = f"{clipped(repr(pointer))} leads to no part of the schema"
            raise SchemaError(msg)
        counting = document.counting or outweighs(document.schema, target.schema)
        self._take(document, pointer, target.schema, counting=counting)


def _whole(expected: str) -> Violation:
    return Violation(kind="mismatch", path=Path(), expected=expected)


def _keyword_holds(keyword: str, argument: Any, value: Any) -> bool:
    """Whether a value satisfies one keyword that has no subschemas."""
    judge = _single(keyword, canonical(argument))
    try:
        return bool(judge.is_valid(value))
    except ValueError:  # a lone surrogate, or something that is no JSON
        try:
            return bool(judge.is_valid(copy_plain(value)))
        except SchemaError:
            return False


@lru_cache(maxsize=256)
def _single(keyword: str, argument: str) -> Any:
    return _native(f'{{"{keyword}":{argument}}}', "2020-12")


def _refusal(schema: Any, error: jsonschema_rs.ValidationError) -> SchemaError:
    """Say in our own words why a schema was refused, and where."""
    dangling = isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing)
    for members in walk(schema) if dangling else ():
        reference = members.get("$ref")
        if reference is not None and resolve(schema, reference) is None:
            return SchemaError(
                clipped(f"$ref {reference!r} leads to nothing in this schema; ")
                + "references to other documents are never fetched"
            )
    path = ".".join(str(part) for part in error.instance_path)
    keyword = str(error.instance_path[-1]) if error.instance_path else ""
    if keyword == "pattern":
        return SchemaError("is no regular expression that can be used", path=clipped(path))
    return SchemaError("is not valid JSON Schema", path=clipped(path) or "schema")


def compile_validator(schema: Any) -> Validator:
    """Return the validator of a schema object, compiled at its first use (BEHAVIOURS 289).

    The same object gives the same validator, so a schema must not be changed in place: publish
    another object instead. 4,096 are remembered.

    Raises:
        SchemaError: the schema cannot be compiled; tried again at each call.
    """
    return _compiled(SameObject(schema))


@lru_cache(maxsize=REMEMBERED)
def _compiled(same: SameObject) -> Validator:
    return Validator(same.schema)
