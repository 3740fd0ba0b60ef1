"""Provider schemas: what a model's provider accepts, no narrower than the original."""

from __future__ import annotations

import copy

from toolcell.schema.normalise import provider_schema

STRING = {"type": "string"}
NUMBER = {"type": "number"}


def test_root_combinators_are_merged_into_one_object() -> None:
    """PP-03: merged properties, required only what every variant requires."""
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"id": STRING, "a": STRING}, "required": ["id", "a"]},
            {"type": "object", "properties": {"id": NUMBER, "b": STRING}, "required": ["id"]},
        ]
    }
    before = copy.deepcopy(schema)
    assert provider_schema(schema) == {
        "type": "object",
        "properties": {"id": {"anyOf": [STRING, NUMBER]}, "a": STRING, "b": STRING},
        "required": ["id"],
    }
    assert schema == before


def test_root_all_of_and_references_are_merged_too() -> None:
    """PP-03."""
    schema = {
        "$defs": {"base": {"type": "object", "properties": {"a": STRING}, "required": ["a"]}},
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": STRING}}],
        "properties": {"c": STRING},
    }
    out = provider_schema(schema)
    assert out == {
        "$defs": schema["$defs"],
        "type": "object",
        "properties": {"c": STRING, "a": STRING, "b": STRING},
        "required": ["a"],
    }


def test_missing_properties_and_items_are_added_and_nothing_else() -> None:
    """PP-05."""
    assert provider_schema({"type": "object"}) == {"type": "object", "properties": {}}
    array = {"type": "object", "properties": {"a": {"type": "array"}}}
    assert provider_schema(array) == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {}}},
    }
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"anyOf": [STRING, {"type": "null"}], "default": None},
            "o": {"type": "object", "additionalProperties": True},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert provider_schema(whole) == whole


def test_boolean_subschemas_become_objects() -> None:
    """TS-09."""
    schema = {"type": "object", "properties": {"payload": True, "gone": False}}
    assert provider_schema(schema)["properties"] == {"payload": {}, "gone": {"not": {}}}


def test_a_property_named_like_a_keyword_is_left_alone() -> None:
    """PP-03."""
    schema = {"type": "object", "properties": {"oneOf": STRING, "items": STRING, "enum": STRING}}
    assert provider_schema(schema) == schema


def test_schemas_that_cannot_be_copied_take_any_object() -> None:
    """TS-03: one bad schema never costs the server its tools."""
    cyclic: dict[str, object] = {"type": "object"}
    cyclic["properties"] = {"a": cyclic}
    assert provider_schema(cyclic) == {"type": "object", "properties": {}}
    assert provider_schema(True) == {"type": "object", "properties": {}}


def test_root_cycles_of_references_end() -> None:
    """TS-06."""
    schema = {
        "$defs": {
            "a": {"anyOf": [{"$ref": "#/$defs/b"}] * 9},
            "b": {"anyOf": [{"$ref": "#/$defs/a"}] * 9},
        },
        "$ref": "#/$defs/a",
    }
    assert provider_schema(schema)["properties"] == {}
