"""Owns the input discriminator of an output schema: which branch of it an input selects.

    "x-toolcell-inputDiscriminator": {
        "version": 1, "inputProperty": "mode", "mapping": {"list": "#/anyOf/0"}
    }

Nothing is compiled here but a branch that an input selects, at its first time: declarations need no
validator, and a call needs one or two.

Above: the output contract of a call, declarations. Below: `schema.{validation,positions,refs}`.
Refuses to know: calls, and who gave an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from toolcell.errors import SchemaError
from toolcell.schema.plain import SameObject, as_object, copy_plain, values_in
from toolcell.schema.positions import walk
from toolcell.schema.refs import resolve
from toolcell.schema.validation import Validator
from toolcell.schema.violations import clipped

KEYWORD: Final = "x-toolcell-inputDiscriminator"
VERSION: Final = 1
MAX_BRANCHES: Final = 64
"""Values that one mapping may name."""
MAX_WORK: Final = 1_000_000
"""Values of a schema times its branches, each of which may refer to all of it when compiled."""
_MEMBERS: Final = ("version", "inputProperty", "mapping")
_REMEMBERED: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Branch:
    """One branch of an output schema.

    Attributes:
        input_property: The member of the input that selects it.
        value: The value of that member.
        pointer: Where it stands: `#/anyOf/0`.
        schema: The whole output schema and this branch of it.
    """

    input_property: str
    value: str
    pointer: str
    schema: Mapping[str, Any]

    def within(self, whole: Validator) -> Validator:
        """Return what checks this branch alone, from the validator of the whole output schema.

        Raises:
            SchemaError: the branch does not compile.
        """
        try:
            return whole.part(self.pointer)
        except SchemaError as error:
            raise _malformed(error.message, "mapping", self.value) from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discriminator:
    """A well-formed annotation.

    Attributes:
        input_property: The member of the input that selects.
        mapping: The branch of each value.
        default: What the input schema says of an input without that member.
    """

    input_property: str
    mapping: Mapping[str, Branch]
    default: str | None

    def selected(self, arguments: Any) -> Branch | None:
        """Return the branch that an input selects; None for a value that no branch is named for."""
        value = self.default
        if isinstance(arguments, Mapping) and self.input_property in arguments:
            value = arguments[self.input_property]
        return self.mapping.get(value) if isinstance(value, str) else None


def discriminator_of(output_schema: Any, parameters: Any) -> Discriminator | None:
    """Return the annotation of an output schema; None when it has none. Worked out once.

    Args:
        output_schema: The schema that may carry it, at its top.
        parameters: The schema of the input it speaks of.

    Raises:
        SchemaError: it is malformed, stands elsewhere, or speaks of what the input does not have.
    """
    found = _remembered(SameObject(output_schema), SameObject(parameters))
    if isinstance(found, SchemaError):
        raise SchemaError(found.message)
    return found


@lru_cache(maxsize=_REMEMBERED)
def _remembered(output: SameObject, parameters: SameObject) -> Discriminator | SchemaError | None:
    try:
        return _worked_out(output.schema, parameters.schema)
    except SchemaError as error:
        return error


def _worked_out(output_schema: Any, parameters: Any) -> Discriminator | None:
    schema = copy_plain(output_schema)
    if not isinstance(schema, dict):
        return None
    if any(KEYWORD in members for members in walk(schema) if members is not schema):
        raise _malformed("stands at the top of an outputSchema, nowhere else")
    if KEYWORD not in schema:
        return None
    annotation = schema.pop(KEYWORD)
    if "$ref" in schema:
        raise _malformed("cannot stand beside a $ref; write the schema out")
    name, mapping = _members(annotation)
    values, default = _input(copy_plain(parameters), name)
    for value in mapping:
        if values is not None and value not in values:
            msg = f"is no value of {name!r} in parameters"
            raise _malformed(msg, "mapping", value)
    branches = {
        value: _branch(schema, (name, value), pointer) for value, pointer in mapping.items()
    }
    size, distinct = values_in(schema), len(set(mapping.values()))
    if size * distinct > MAX_WORK:
        msg = (
            f"names {distinct} branches of a schema of {size} values; "
            f"one times the other may be {MAX_WORK:,}"
        )
        raise _malformed(msg, "mapping")
    return Discriminator(input_property=name, mapping=branches, default=default)


def _members(annotation: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(annotation, dict):
        msg = f"must be an object with {', '.join(_MEMBERS)}"
        raise _malformed(msg)
    if annotation.get("version") is True or annotation.get("version") != VERSION:
        msg = f"must be {VERSION}"
        raise _malformed(msg, "version")
    unknown = next((key for key in annotation if key not in _MEMBERS), None)
    if unknown is not None:
        msg = f"is unknown; there are {', '.join(_MEMBERS)}"
        raise _malformed(msg, unknown)
    name, mapping = annotation.get("inputProperty"), annotation.get("mapping")
    if not isinstance(name, str) or not name:
        raise _malformed("must be the name of a member of the input", "inputProperty")
    if not isinstance(mapping, dict) or not 0 < len(mapping) <= MAX_BRANCHES:
        msg = f"must be an object of 1 to {MAX_BRANCHES} values, each with a pointer to its branch"
        raise _malformed(msg, "mapping")
    return name, mapping


def _input(parameters: Any, name: str) -> tuple[list[Any] | None, str | None]:
    """Return the values that the input property may have, None for any, and its default."""
    members = as_object((as_object(parameters) or {}).get("properties")) or {}
    if name not in members:
        msg = f"{name!r} is no property of parameters"
        raise _malformed(msg, "inputProperty")
    found = members[name]
    if isinstance(found, dict) and "$ref" in found:
        target = resolve(parameters, found["$ref"])
        found = {**(as_object(target.schema if target else None) or {}), **found}
    if not isinstance(found, dict):
        return None, None
    values = [found["const"]] if "const" in found else found.get("enum")
    default = found.get("default")
    return values if isinstance(values, list) else None, (
        default if isinstance(default, str) else None
    )


def _branch(schema: dict[str, Any], selected_by: tuple[str, str], pointer: Any) -> Branch:
    name, value = selected_by
    target = resolve(schema, pointer) if isinstance(pointer, str) and pointer != "#" else None
    if target is None or not isinstance(target.schema, dict | bool):
        msg = "must be a pointer to a branch of this schema, such as #/anyOf/0 or #/$defs/Name"
        raise _malformed(msg, "mapping", value)
    others = schema.get("allOf")
    listed = others if isinstance(others, list) else []
    both = {**schema, "allOf": [*listed, {"$ref": pointer}]}
    return Branch(input_property=name, value=value, pointer=pointer, schema=both)


def _malformed(why: str, *path: str) -> SchemaError:
    return SchemaError(clipped(why), path=clipped(".".join((KEYWORD, *path))))
