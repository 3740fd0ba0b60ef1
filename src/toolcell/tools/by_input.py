"""Owns `output_by_input`: an output schema whose branch the caller's input selects.

Above: authors of tools. Below: `tools.typeschema`, `schema.discriminator`. Refuses to know: calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from toolcell.base.jsontext import JsonObject
from toolcell.errors import ToolDefinitionError
from toolcell.schema.discriminator import KEYWORD, MAX_BRANCHES, VERSION
from toolcell.schema.positions import walk
from toolcell.tools.typeschema import (
    TYPE_ERRORS,
    SchemaMaker,
    adapter_for,
    first_line,
    inline,
    schema_for,
    tidy,
)

_OWN: Final = ("$ref", "$defs", "definitions", "$id", "$schema", KEYWORD)
"""What a branch given as JSON Schema may not hold: inside the whole it would mean another thing."""


def output_by_input(input_property: str, branches: Mapping[str, Any]) -> JsonObject:
    """Return an `output_schema` in which the input says what comes back.

    A call is then held to the branch that its caller's input selects, and to the one that the tool
    ran with where a hook changed the input. A value without a branch is held to the whole alone.

    Args:
        input_property: The member of the input that selects: a string, best a `Literal`.
        branches: For each of its values a Python type, or a JSON Schema without references.

    Raises:
        ToolDefinitionError: there are no branches, more than 64, or one that has no schema.
    """
    if not isinstance(input_property, str) or not input_property:
        message = f"output_by_input: {input_property!r} must be the name of an input property."
        raise ToolDefinitionError(message)
    if not isinstance(branches, Mapping) or not 0 < len(branches) <= MAX_BRANCHES:
        message = (
            f"output_by_input({input_property!r}): give 1 to {MAX_BRANCHES} values, each with the "
            "type of what comes back."
        )
        raise ToolDefinitionError(message)
    schemas, definitions = _schemas(input_property, branches)
    out = inline({"anyOf": schemas, "$defs": definitions} if definitions else {"anyOf": schemas})
    if all(schema.get("type") == "object" for schema in out["anyOf"]):
        out = {"type": "object", **out}
    mapping = {value: f"#/anyOf/{index}" for index, value in enumerate(branches)}
    out[KEYWORD] = {"version": VERSION, "inputProperty": input_property, "mapping": mapping}
    return out


def _schemas(name: str, branches: Mapping[str, Any]) -> tuple[list[JsonObject], JsonObject]:
    """Return the branches in order, and the definitions that they share."""
    written: dict[str, JsonObject] = {}
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = []
    for value, described in branches.items():
        where = f"output_by_input({name!r}), value {value!r}"
        if not isinstance(value, str):
            message = f"{where}: values must be strings."
            raise ToolDefinitionError(message)
        if isinstance(described, Mapping):
            written[value] = _whole(dict(described), where)
        else:
            adapters.append((value, "serialization", _adapter(described, where)))
    made, shared = TypeAdapter.json_schemas(adapters, schema_generator=SchemaMaker)
    for value, _, _ in adapters:
        written[value] = tidy(made[value, "serialization"])
    definitions = tidy(shared).get("$defs", {}) if shared else {}
    return [written[value] for value in branches], definitions


def _adapter(described: Any, where: str) -> TypeAdapter[Any]:
    if described is None or isinstance(described, str | int | float | list | tuple):
        message = f"{where} is {described!r}: give a Python type or a JSON Schema object."
        raise ToolDefinitionError(message)
    try:
        adapter = adapter_for(described)
        schema_for(adapter, "serialization")
    except TYPE_ERRORS as error:
        message = f"{where}: no JSON Schema can be made from {described!r}: {first_line(error)}"
        raise ToolDefinitionError(message) from error
    return adapter


def _whole(schema: JsonObject, where: str) -> JsonObject:
    for members in walk(schema):
        word = next((word for word in _OWN if word in members), None)
        if word is not None:
            message = (
                f"{where}: a branch written as JSON Schema may not hold {word!r}. Give a Python "
                f"type, or write the whole output_schema with {KEYWORD!r} yourself."
            )
            raise ToolDefinitionError(message)
    return schema
