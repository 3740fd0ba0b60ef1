"""Compact hints: the table of measured values, completeness, and schemas meant to hurt."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from toolcell.schema.hints import MAX_INPUT, input_hint, output_hint

STRING = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


def shape(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return shape(properties, *required, additionalProperties=False, **more)


def nested_arrays(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = STRING
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


INPUTS = [
    pytest.param(
        shape({"b": NUMBER, "o": {"type": "boolean"}, "a": STRING}, "b", "a"),
        "{ a: string; b: number; o?: boolean }",
        id="266 required ones sorted, then optional ones",
    ),
    pytest.param(
        shape({"n": {"type": "integer", "minimum": 1, "maximum": 50}}),
        "{ n?: number /* integer, >= 1, <= 50 */ }",
        id="268 bounds of an integer",
    ),
    pytest.param(
        shape({"n": {"type": "integer", "exclusiveMinimum": 0}}),
        "{ n?: number /* integer, > 0 */ }",
        id="268 exclusive bound",
    ),
    pytest.param(
        shape({"x": {"type": ["string", "null"]}, "y": {"type": "string", "nullable": True}}),
        "{ x?: string | null; y?: string | null }",
        id="269 nullable both ways",
    ),
    pytest.param(
        shape({"c": {"const": "k"}, "e": {"enum": ["a", 1, True, None]}}),
        '{ c?: "k"; e?: "a" | 1 | true | null }',
        id="270 const and mixed enum",
    ),
    pytest.param(
        shape({"e": {"enum": list("abcdefgh")}}),
        '{ e?: "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" }',
        id="271 eight values",
    ),
    pytest.param(
        shape({"e": {"enum": list("abcdefghi")}}), "{ e?: unknown }", id="271 nine values"
    ),
    pytest.param(
        shape({"u": {"anyOf": [STRING, NUMBER, {"type": "boolean"}, {"type": "array"}]}}),
        "{ u?: string | number | boolean | Array<unknown> }",
        id="272 four variants",
    ),
    pytest.param(
        shape({"u": {"anyOf": [closed({name: STRING}) for name in "abcdef"]}}),
        "{ u?: unknown }",
        id="272 six variants",
    ),
    pytest.param(
        shape({"a-b": STRING, "1x": STRING}, "a-b"),
        '{ "a-b": string; "1x"?: string }',
        id="273 quoted names",
    ),
    pytest.param(closed({}), "{}", id="274 empty closed"),
    pytest.param({"type": "object"}, "{ ... }", id="274 empty open"),
    pytest.param(shape({"id": STRING}, "id"), "{ id: string }", id="275 open with known members"),
    pytest.param(shape({"a": {"$ref": "#/nope"}}, "a"), "{ a: unknown }", id="276 dangling ref"),
    pytest.param({"type": "array"}, "Array<unknown>", id="276 array without items"),
    pytest.param(
        shape({"a": STRING}, "a", "b"), "{ a: string; ... }", id="276 undeclared required"
    ),
    pytest.param(
        shape({"a": STRING}, "a", patternProperties={"^x": NUMBER}),
        "{ a: string; ... }",
        id="276 patterns",
    ),
    pytest.param(
        shape({f"p{i:02}": NUMBER for i in range(17)}),
        "{ " + "; ".join(f"p{i:02}?: number" for i in range(16)) + "; ... }",
        id="277 seventeenth property",
    ),
    pytest.param(
        nested_arrays(6), "Array<Array<Array<Array<unknown>>>>", id="278 six nested arrays"
    ),
    pytest.param(
        shape({f"a_rather_long_name_{i:02}": STRING for i in range(16)}),
        "unknown",
        id="279 more than 300 characters",
    ),
    pytest.param(
        shape({"x" * 129: STRING, "y": STRING}, "y"), "{ y: string; ... }", id="279 long name"
    ),
    pytest.param(shape({"e": {"enum": ["x" * 97]}}), "{ e?: unknown }", id="279 long enum text"),
    pytest.param(
        shape({"s": {"type": "string", "minLength": 2, "pattern": "^a", "format": "date"}}),
        "{ s?: string }",
        id="281 string constraints",
    ),
    pytest.param(True, "unknown", id="true"),
    pytest.param(None, "unknown", id="none"),
    pytest.param({}, "unknown", id="empty"),
]


@pytest.mark.parametrize(("schema", "hint"), INPUTS)
def test_input_hints_are_as_measured(schema: Any, hint: str) -> None:
    """Rule 4.3.

    BEHAVIOURS 266, BEHAVIOURS 268, BEHAVIOURS 269, BEHAVIOURS 270, BEHAVIOURS 271, BEHAVIOURS 272,
    BEHAVIOURS 273, BEHAVIOURS 274, BEHAVIOURS 275, BEHAVIOURS 276, BEHAVIOURS 277, BEHAVIOURS 278,
    BEHAVIOURS 279, BEHAVIOURS 281; rule 4.3.
    """
    assert input_hint(schema) == hint


ROWS = {"type": "array", "items": closed({"id": STRING, "paid": {"type": "boolean"}}, "id", "paid")}
OUTPUTS = [
    pytest.param(ROWS, "Array<{ id: string; paid: boolean }>", id="267 closed array"),
    pytest.param(
        closed({"n": {"type": "integer", "minimum": 1, "maximum": 50}}),
        "{ n?: number }",
        id="268 no integer comment",
    ),
    pytest.param(
        closed({"e": {"enum": list("abcdefghi")}}), None, id="271 nine values give no hint"
    ),
    pytest.param(
        {"anyOf": [closed({name: STRING}) for name in "abcdef"]}, None, id="272 six variants"
    ),
    pytest.param(closed({}), "{}", id="274 empty closed"),
    pytest.param({"type": "object"}, None, id="274 empty open"),
    pytest.param(shape({"id": STRING}, "id"), None, id="275 open"),
    pytest.param(closed({"a": {"$ref": "#/nope"}}), None, id="276 dangling ref"),
    pytest.param(closed({"a": STRING}, patternProperties={"^x": STRING}), None, id="276 patterns"),
    pytest.param({"type": "array"}, None, id="276 array without items"),
    pytest.param(closed({"a": STRING}, "a", "b"), None, id="276 undeclared required"),
    pytest.param(closed({f"p{i:02}": NUMBER for i in range(23)}), None, id="277 twenty-three"),
    pytest.param(nested_arrays(6), "Array<" * 6 + "string" + ">" * 6, id="278 six levels"),
    pytest.param(nested_arrays(7), None, id="278 seven levels"),
    pytest.param(
        closed({f"{'n' * 40}{i:02}": STRING for i in range(20)}), None, id="279 over 800 characters"
    ),
    pytest.param(closed({"m": shape({}, additionalProperties=NUMBER)}), None, id="a map is open"),
    pytest.param(closed({"a": STRING}, **{"not": {"required": ["a"]}}), None, id="not"),
    pytest.param(
        closed({"k": {"$ref": "#/$defs/k"}}, **{"$defs": {"k": closed({"v": INTEGER}, "v")}}),
        "{ k?: { v: number } }",
        id="7.2 a resolved reference",
    ),
    pytest.param(
        {
            "type": "object",
            "properties": {"a": STRING},
            "allOf": [{"properties": {"b": NUMBER}, "required": ["b"]}],
            "unevaluatedProperties": False,
        },
        "{ b: number; a?: string }",
        id="7.2 allOf closed as a whole",
    ),
    pytest.param(
        {"type": "array", "prefixItems": [STRING, NUMBER], "minItems": 2, "items": False},
        "[string, number]",
        id="7.2 a closed tuple",
    ),
    pytest.param({"type": "array", "prefixItems": [STRING]}, None, id="an open tuple"),
    pytest.param({"const": {"ok": True}}, "{ ok: true }", id="7.2 a constant object"),
    pytest.param(
        {"oneOf": [closed({"ok": {"const": True}}, "ok"), closed({"error": STRING}, "error")]},
        "{ ok: true } | { error: string }",
        id="a union of closed objects",
    ),
    pytest.param(None, None, id="none"),
    pytest.param(True, None, id="true"),
]


@pytest.mark.parametrize(("schema", "hint"), OUTPUTS)
def test_output_hints_are_complete_or_absent(schema: Any, hint: str | None) -> None:
    """Area U for outputs: BEHAVIOURS 267, BEHAVIOURS 276, TS-12; rule 4.6 and rule 7.2."""
    assert output_hint(schema) == hint


def test_a_long_nested_input_gives_up_its_depth_before_its_names() -> None:
    """Rule 4.3 wants a bounded signature; better than `unknown` is a shallower one."""
    leaf = closed({f"member_{i}": STRING for i in range(12)})
    hint = input_hint(shape({"filter": leaf, "sort": leaf, "page": NUMBER}, "filter"))
    assert hint == "{ filter: unknown; page?: number; sort?: unknown }"


def test_arrays_of_unions_are_bracketed_whole() -> None:
    """TS-01."""
    sizes = {"type": "array", "items": {"type": "string", "enum": ["S", "M", "L"]}}
    either = {"type": "array", "items": {"anyOf": [STRING, NUMBER]}}
    maybe = {"type": "array", "items": {"type": "string", "nullable": True}}
    assert input_hint(shape({"sizes": sizes}, "sizes")) == '{ sizes: Array<"S" | "M" | "L"> }'
    assert input_hint(either) == "Array<string | number>"
    assert input_hint(maybe) == "Array<string | null>"


def test_recursion_ends_in_unknown() -> None:
    """TS-03."""
    node = shape({"name": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/n"}}})
    tree = shape({"root": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": node}})
    assert input_hint(tree) == "{ root?: { children?: Array<unknown>; name?: string } }"
    assert output_hint(tree) is None
    anything = {
        "$defs": {
            "Any": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/Any"}},
                    STRING,
                ]
            }
        },
        "$ref": "#/$defs/Any",
    }
    assert input_hint(anything) == "{ ... } | string"
    assert output_hint(anything) is None


def test_references_with_escapes_are_resolved() -> None:
    """TS-04."""
    inner = shape({"k": INTEGER}, "k")
    slash = shape({"q": {"$ref": "#/definitions/a~1b"}}, definitions={"a/b": inner})
    blank = shape({"q": {"$ref": "#/$defs/x%20y"}}, **{"$defs": {"x y": inner}})
    assert input_hint(slash) == "{ q?: { k: number /* integer */ } }"
    assert input_hint(blank) == "{ q?: { k: number /* integer */ } }"


def test_boolean_subschemas_are_unknown_and_never() -> None:
    """TS-09."""
    assert input_hint(shape({"payload": True, "gone": False})) == (
        "{ gone?: never; payload?: unknown }"
    )


def test_inherited_names_are_ordinary_names() -> None:
    """TS-10."""
    schema = shape({"constructor": STRING, "toString": STRING}, "constructor", "toString")
    assert input_hint(schema) == "{ constructor: string; toString: string }"


def test_integer_limits_are_kept() -> None:
    """TS-11."""
    offset = {"type": "integer", "minimum": 1}
    limit = {"type": "integer", "minimum": 1, "maximum": 500}
    assert input_hint(shape({"offset": offset, "limit": limit})) == (
        "{ limit?: number /* integer, >= 1, <= 500 */; offset?: number /* integer, >= 1 */ }"
    )


def test_hints_are_the_same_for_any_order_of_members() -> None:
    """TS-13; rule 4.6 wants the index deterministic."""
    schema = shape({"a": STRING, "b": NUMBER, "c": STRING}, "c", "a")
    shuffled = shape({"c": STRING, "b": NUMBER, "a": STRING}, "a", "c")
    assert input_hint(schema) == input_hint(shuffled)


def test_text_in_names_and_literals_cannot_carry_control_characters() -> None:
    """Rule 4.6: hostile text must not steer the model; TS-07."""
    hint = input_hint(shape({"a\u202e\n*/": {"const": "x\u2028\ud800\U000e0041"}}))
    assert hint == '{ "a\\u202e\\n*/"?: "x\\u2028\\ud800\\udb40\\udc41" }'


class Throwing(Mapping[str, Any]):
    """A mapping that refuses everything."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


class Endless(Mapping[str, Any]):
    """A mapping whose names never end."""

    def __getitem__(self, key: str) -> Any:
        return STRING

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"n{number}"

    def __len__(self) -> int:
        return 1


def hostile() -> dict[str, Any]:
    deep: dict[str, Any] = STRING
    for _ in range(3000):
        deep = {"type": "object", "properties": {"p": deep}}
    chain: dict[str, Any] = STRING
    for _ in range(3000):
        chain = {"allOf": [chain]}
    combined: dict[str, Any] = {}
    for _ in range(40):
        combined = {"type": "object", "properties": {"p": combined}}
        for _ in range(23):
            combined = {"anyOf": [combined, {"allOf": [STRING]}]}
    cyclic: dict[str, Any] = {"type": "object", "properties": {}}
    cyclic["properties"]["self"] = cyclic
    cyclic["allOf"] = [cyclic]
    fan = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 8} for i in range(30)}
    wide = {f"p{i}": STRING for i in range(20_000)}
    return {
        "a cycle of allOf": {
            "$defs": {
                "A": {"allOf": [{"$ref": "#/$defs/B"}]},
                "B": {"allOf": [{"$ref": "#/$defs/A"}]},
            },
            "$ref": "#/$defs/A",
        },
        "3,000 levels": deep,
        "3,000 allOf": chain,
        "20,000 properties": {"type": "object", "properties": wide},
        "shared wide objects": {
            "$defs": {"w": {"type": "object", "properties": {"x" * 200 + n: 1 for n in wide}}},
            "type": "object",
            "properties": {f"p{i}": {"anyOf": [{"$ref": "#/$defs/w"}] * 60} for i in range(256)},
        },
        "a Python cycle": cyclic,
        "combinators at every level": combined,
        "references that fan out": {"$defs": fan, "$ref": "#/$defs/a0"},
        "a throwing mapping": Throwing(),
        "a throwing member": {"type": "object", "properties": {"a": Throwing()}},
        "an endless mapping": {"type": "object", "properties": Endless()},
        "keys that are no strings": {"type": "object", "properties": {1: STRING, None: STRING}},
        "wrong types throughout": {
            "type": {"a": 1},
            "properties": [1],
            "required": 5,
            "enum": {},
            "anyOf": "x",
            "items": 3,
            "$ref": 7,
            "minimum": "x",
        },
        "a long enum": {"enum": [f"value {i}" for i in range(200_000)]},
        "a number": 5,
        "numbers that JSON has not": {"enum": [float("nan"), 10**400, float("inf")]},
        "300 KB": {
            "type": "object",
            "properties": {
                f"p{i}": {"type": "string", "description": "x" * 3000} for i in range(99)
            },
        },
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_hostile_schemas_give_a_bounded_hint_in_time(name: str) -> None:
    """TS-06, TS-13: never a crash, less than a second, bounded."""
    schema = hostile()[name]
    start = time.thread_time()
    hint = input_hint(schema)
    output = output_hint(schema)
    assert time.thread_time() - start < 1.0
    assert hint
    assert len(hint) <= MAX_INPUT
    assert output is None


def test_omitted_members_leave_a_mark() -> None:
    """TS-06: a marker for the omitted part."""
    assert input_hint(shape({f"p{i}": STRING for i in range(200)})).endswith("; ... }")


def test_a_thousand_hints_take_less_than_two_seconds() -> None:
    """TS-13; about 0.1 s on two cores."""
    schemas = [shape({f"p{j}_{i}": STRING for j in range(10)}, f"p0_{i}") for i in range(1000)]
    start = time.thread_time()
    for schema in schemas:
        input_hint(schema)
    assert time.thread_time() - start < 2.0
