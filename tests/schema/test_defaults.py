"""Defaults that an MCP call fills in."""

from __future__ import annotations

from typing import Any

from toolcell.schema.defaults import fill_defaults, missing_required

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "body": {"type": "string", "default": ""},
        "currency": {"type": "string", "default": "EUR"},
        "labels": {"type": "array", "default": []},
    },
    "required": ["title", "body"],
}


def test_absent_members_get_their_defaults_and_null_is_kept() -> None:
    """BEHAVIOURS 227."""
    given = {"title": "t", "currency": None}
    filled = fill_defaults(SCHEMA, given)
    assert filled == {"title": "t", "currency": None, "body": "", "labels": []}
    assert given == {"title": "t", "currency": None}


def test_defaults_are_copied_for_each_call() -> None:
    """BEHAVIOURS 227."""
    fill_defaults(SCHEMA, {})["labels"].append("x")
    assert fill_defaults(SCHEMA, {})["labels"] == []


def test_required_members_without_a_default_are_missed() -> None:
    """BEHAVIOURS 228."""
    assert missing_required(SCHEMA, {}) == ["title"]
    assert missing_required(SCHEMA, {"title": None}) == []
    two = {"required": ["owner", "repo", "owner"]}
    assert missing_required(two, {}) == ["owner", "repo"]


def test_a_member_named_proto_is_an_ordinary_one() -> None:
    """BEHAVIOURS 229, TS-10."""
    schema = {"properties": {"__proto__": {"default": 1}}, "required": ["__proto__", "constructor"]}
    assert fill_defaults(schema, {}) == {"__proto__": 1}
    assert fill_defaults(schema, {"__proto__": 2}) == {"__proto__": 2}
    assert missing_required(schema, {}) == ["constructor"]


def test_schemas_of_any_shape_are_survived() -> None:
    """TS-06."""
    for schema in (None, True, 5, {"properties": 5, "required": "x"}, {"properties": {1: {}}}):
        assert fill_defaults(schema, {"a": 1}) == {"a": 1}
        assert missing_required(schema, {}) == []
