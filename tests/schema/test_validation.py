"""Validators: judgement, wording, bounds."""

from __future__ import annotations

import threading
import time
from types import MappingProxyType
from typing import Any

import pytest

from toolcell.errors import SchemaError
from toolcell.schema.nearest import edit_distance, nearest
from toolcell.schema.validation import (
    Validator,
    compile_validator,
    did_you_mean,
    violation_lines,
)

NUMBER = {"type": "number"}
STRING = {"type": "string"}
ADD = {
    "type": "object",
    "properties": {"a": NUMBER, "b": NUMBER},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def lines(schema: Any, value: Any, *, show_value: bool = True) -> list[str]:
    return violation_lines(compile_validator(schema).errors(value), show_value=show_value)


def test_missing_and_unknown_properties_are_named_with_the_nearest_name() -> None:
    """BR-02, BEHAVIOURS 332: our words, no library's name, no address."""
    found = compile_validator(ADD).errors({"a": 1, "c": 2})
    assert violation_lines(found, show_value=True) == ["missing property b", "unknown property c"]
    assert did_you_mean(found) == "Did you mean: b?"
    text = " ".join(violation_lines(found, show_value=True)).lower()
    assert not any(word in text for word in ("jsonschema", "pydantic", "http", "rust"))


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": "1", "b": 2}, 'a: expected a number, got "1"'),
        ([1, 2], "expected an object, got an array"),
        (None, "expected an object, got null"),
        ({"a": True, "b": 2}, "a: expected a number, got true"),
        ({"a": float("nan"), "b": 2}, "a: expected a number, got a number that JSON does not have"),
    ],
)
def test_wrong_arguments_are_refused(value: Any, line: str) -> None:
    """BR-03."""
    assert lines(ADD, value) == [line]


def test_right_arguments_pass() -> None:
    """BR-03."""
    assert compile_validator(ADD).errors({"a": 1, "b": 2.5}) == []


def test_inherited_names_are_required_like_others() -> None:
    """TS-10."""
    schema = {
        "type": "object",
        "required": ["constructor", "toString"],
        "properties": {"constructor": STRING, "toString": STRING},
    }
    assert lines(schema, {}) == ["missing property constructor", "missing property toString"]
    assert lines(schema, {"constructor": "a", "toString": "b"}) == []


def test_fractions_are_no_integers_and_whole_floats_are() -> None:
    """TS-11; JSON Schema 2020-12 counts 1.0 as an integer and true as none."""
    schema = {"type": "integer", "minimum": 1}
    assert lines(schema, 0.5) == ["expected an integer, got 0.5"]
    assert lines(schema, 0) == ["expected a number >= 1, got 0"]
    assert lines(schema, True) == ["expected an integer, got true"]
    assert lines(schema, 1.0) == []
    assert lines(schema, 10**30) == []


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        ({"enum": ["x", "y"]}, "z", 'expected one of "x", "y", got "z"'),
        ({"const": 1}, 2, "expected 1, got 2"),
        ({"anyOf": [STRING, {"type": "null"}]}, 5, "expected a string or null, got 5"),
        ({"type": "string", "pattern": "^a"}, "b", 'expected a string that matches "^a", got "b"'),
        ({"multipleOf": 5}, 7, "expected a multiple of 5, got 7"),
        ({"uniqueItems": True}, [1, 1], "expected an array without equal items, got an array"),
        ({"not": STRING}, "x", 'expected a value its schema does not exclude, got "x"'),
        ({"items": {"required": ["k"]}}, [{"k": 1}, {}], "missing property [1].k"),
        ({"properties": {"a b": NUMBER}}, {"a b": ""}, '["a b"]: expected a number, got ""'),
        ({"if": STRING, "then": {"minLength": 2}}, "x", "expected a string of at least 2"),
        ({"oneOf": [NUMBER, {"minimum": 1}]}, 5, "expected exactly one of several shapes, got 5"),
        ({"prefixItems": [NUMBER], "items": False}, [1, 2], "[1]: expected nothing here, got 2"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "missing property b"),
        ({"contains": NUMBER}, ["x"], "expected a value that matches its schema"),
    ],
)
def test_violations_say_what_was_expected(schema: Any, value: Any, line: str) -> None:
    """BEHAVIOURS 332."""
    (found,) = lines(schema, value)
    assert found.startswith(line)


def test_the_variant_that_was_meant_is_explained() -> None:
    """BR-02: of several variants the one that nearly fits."""
    variants = [
        {"type": "object", "properties": {"k": {"const": "a"}, "v": STRING}, "required": ["v"]},
        {"type": "object", "properties": {"k": {"const": "b"}, "w": NUMBER}, "required": ["w"]},
    ]
    assert lines({"oneOf": variants}, {"k": "b", "w": "no"}) == ['w: expected a number, got "no"']


def test_nothing_of_the_value_is_printed_when_it_must_not_be() -> None:
    """BEHAVIOURS 284, TS-12; rule 7.1: neither values nor names that only the value knows."""
    schema = {
        "type": "object",
        "properties": {"id": NUMBER, "kind": {"enum": ["a"]}},
        "additionalProperties": STRING,
    }
    value = {"id": "s3cret", "kind": "s3cret", "s3cret": 5}
    found = lines(schema, value, show_value=False)
    assert found == [
        "id: expected a number, got a string",
        'kind: expected one of "a", got a string',
        "[*]: expected a string, got a number",
    ]
    assert lines(ADD, {"a": 1, "b": 2, "s3cret": 5}, show_value=False) == ["[*]: unknown property"]


def test_lines_are_few_and_short() -> None:
    """BEHAVIOURS 284: five lines of 256 bytes, cut ones marked."""
    found = lines({"items": STRING}, list(range(100)))
    assert len(found) == 5
    (line,) = lines({"enum": ["é" * 300]}, "x")
    assert line.endswith(" [truncated]")
    assert 250 <= len(line.encode()) <= 256


def test_a_schema_object_is_compiled_once_and_another_one_again() -> None:
    """BEHAVIOURS 289."""
    schema = {"type": "string"}
    assert compile_validator(schema) is compile_validator(schema)
    assert compile_validator(schema) is not compile_validator(dict(schema))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "strng"}, "type: is not valid JSON Schema"),
        ({"type": "object", "properties": []}, "properties: is not valid JSON Schema"),
        ({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern: is no regular expression"),
        ({"$ref": "https://example.com/x"}, "$ref 'https://example.com/x' leads to nothing"),
        ({"$ref": "file:///etc/passwd"}, "references to other documents are never fetched"),
        ({"properties": {"a": {"$ref": "#/no"}}}, "$ref '#/no' leads to nothing"),
        ({"properties": {1: {}}}, "the key 1, which is no string"),
        ({"const": object()}, "holds a object, which has no JSON form"),
        ("x", "an object or a boolean, not a string"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: Any, reason: str) -> None:
    """BEHAVIOURS 283; nothing is ever fetched."""
    with pytest.raises(SchemaError) as caught:
        compile_validator(schema)
    assert reason in caught.value.message
    assert "jsonschema" not in caught.value.message


def test_schemas_that_are_too_deep_or_cyclic_are_refused() -> None:
    """TS-06."""
    cyclic: dict[str, Any] = {}
    cyclic["properties"] = {"a": cyclic}
    with pytest.raises(SchemaError, match="deeper than 200 levels, or in a cycle"):
        compile_validator(cyclic)


@pytest.mark.parametrize(
    ("count", "wrap", "reason"),
    [
        (50, "allOf", "follows more than 40 references for one value"),
        (5000, "oneOf", "more than 40 references|more than 2000 references"),
    ],
)
def test_long_chains_of_references_are_refused(count: int, wrap: str, reason: str) -> None:
    """TS-06: each reference costs native stack and time."""
    chain: dict[str, Any] = {f"a{i}": {wrap: [{"$ref": f"#/$defs/a{i + 1}"}]} for i in range(count)}
    with pytest.raises(SchemaError, match=reason):
        compile_validator({"$defs": {**chain, f"a{count}": STRING}, "$ref": "#/$defs/a0"})


def test_the_dialects_that_tools_send_are_understood() -> None:
    """OpenAPI's nullable and draft 4's exclusive limits are as in hints (BEHAVIOURS 269)."""
    assert lines({"type": "string", "nullable": True}, None) == []
    assert lines({"type": "array", "items": [NUMBER, STRING]}, ["a", "b"]) == [
        '[0]: expected a number, got "a"'
    ]
    strict = {"type": "number", "minimum": 1, "exclusiveMinimum": True}
    assert lines(strict, 1) == ["expected a number > 1, got 1"]
    seven = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [NUMBER]}
    assert lines(seven, ["a"]) == ['[0]: expected a number, got "a"']
    beside = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/s",
        "minLength": 5,
        "definitions": {"s": STRING},
    }
    assert lines(beside, "x") == []
    assert lines(beside, 1) == ["expected a string, got 1"]
    assert lines({"$schema": "https://example.com/own", "type": "string"}, 1) != []


def test_schemas_may_be_frozen_mappings() -> None:
    """A published catalog may hold read-only schemas."""
    schema = MappingProxyType({"type": "object", "properties": MappingProxyType({"a": NUMBER})})
    assert lines(schema, {"a": ""}) == ['a: expected a number, got ""']


def test_formats_are_annotations() -> None:
    """BEHAVIOURS 281."""
    assert lines({"type": "string", "format": "date-time"}, "yesterday") == []


def test_values_with_lone_surrogates_are_judged() -> None:
    """A JavaScript string may hold half a pair."""
    assert lines(ADD, {"a": 1, "b": 2, "\ud800": 1}) == ['unknown property ["\\ud800"]']
    both = {"type": "object", "properties": {"s": {"pattern": "^a"}}, "required": ["t"]}
    assert lines(both, {"s": "\ud800"})[0] == "missing property t"
    assert lines({"enum": [["a"]]}, ["\ud800"]) != []
    assert lines(STRING, "\ud800") == []


def test_values_that_are_not_json_are_refused() -> None:
    """BR-03."""
    assert lines(ADD, {1: 2}) == ["expected plain JSON (holds the key 1, which is no string)"]


def too_many(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"p": value, "q": 1, "r": 1}
    return value


RECURSIVE = {
    "$defs": {
        "n": {
            "type": "object",
            "anyOf": [
                {"properties": {"p": {"$ref": "#/$defs/n"}}, "required": ["q"]},
                {"properties": {"p": {"$ref": "#/$defs/n"}}, "required": ["r"]},
            ],
        }
    },
    "$ref": "#/$defs/n",
}
FANNING: dict[str, Any] = {
    "$defs": {
        **{f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(18)},
        "a18": STRING,
    },
    "$ref": "#/$defs/a0",
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(RECURSIVE, too_many(30), id="exponential variants"),
        pytest.param(RECURSIVE, too_many(20_000), id="a deep value"),
        pytest.param(RECURSIVE, too_many(120), id="a value as deep as allowed"),
        pytest.param(FANNING, 1, id="references that fan out"),
        pytest.param({"items": STRING}, list(range(200_000)), id="many errors"),
        pytest.param({"pattern": "^(a+)+$"}, "a" * 100_000 + "b", id="a slow pattern"),
        pytest.param(
            {"pattern": "^(?=(a+)+$)(a|aa)+\\1$"}, "a" * 5000 + "b", id="a pattern that backtracks"
        ),
        pytest.param({"anyOf": [{"required": ["x"]}, STRING]}, {"d": ["x"] * 100_000}, id="large"),
    ],
)
def test_validation_is_bounded_in_time_and_stack(schema: Any, value: Any) -> None:
    """TS-06: hostile values and patterns end in a violation, not in a crash or a hang."""
    validator = Validator(schema)
    start = time.thread_time()
    found = validator.errors(value)
    assert time.thread_time() - start < 1.0
    assert 1 <= len(found) <= 10


def test_recursive_schemas_still_judge_ordinary_values() -> None:
    """TS-03."""
    node = {
        "type": "object",
        "properties": {"name": STRING, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
        "additionalProperties": False,
    }
    tree = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    assert lines(node, tree) == []
    tree["children"][0]["children"][0]["name"] = 5  # type: ignore[index]
    assert lines(node, tree) == ["children[0].children[0].name: expected a string, got 5"]


def test_a_recursive_validator_serves_threads_at_once() -> None:
    """The visit budget belongs to the thread that checks."""
    validator = Validator(RECURSIVE)
    good = {"p": {"q": 1}, "r": 1}
    wrong: list[Any] = []

    def check() -> None:
        for _ in range(200):
            wrong.extend(validator.errors(good))

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert wrong == []


def test_checking_a_small_valid_value_takes_microseconds() -> None:
    """About 1.5 µs; the bound is generous for a busy machine."""
    value = {"a": 1, "b": 2}
    start = time.thread_time()
    for _ in range(10_000):
        compile_validator(ADD).errors(value)
    assert (time.thread_time() - start) / 10_000 < 100e-6


@pytest.mark.parametrize(
    ("name", "candidates", "found"),
    [
        ("c", ["b"], "b"),
        ("titel", ["title", "tile"], "title"),
        ("repository", ["repo"], None),
        ("userID", ["user", "user_id"], "user_id"),
        ("ID", ["id"], "id"),
        ("descriptoin", ["description"], "description"),
        ("xy", ["ab"], None),
        ("abcd", ["abxy"], "abxy"),
        ("q" * 100, ["q" * 100 + "x"], None),
    ],
)
def test_the_nearest_name_is_a_few_edits_away(name: str, candidates: list[str], found: Any) -> None:
    """BEHAVIOURS 332: at most min(3, max(1, ceil(length / 3))) edits."""
    assert nearest(name, candidates) == found


def test_edit_distance_counts_single_edits() -> None:
    """BEHAVIOURS 332."""
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "ab") == 2


PARTED: dict[str, Any] = {
    "type": "object",
    "required": ["whole"],
    "anyOf": [
        {"properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]},
        {"properties": {"below": {"$ref": "#/anyOf/1"}, "n": {"$ref": "#few"}}},
        {"properties": {"all": {"$ref": "#"}}},
        False,
    ],
    "$defs": {"N": {"type": "integer"}, "Few": {"$anchor": "few", "maximum": 9}, "a b": NUMBER},
}


@pytest.mark.parametrize("dialect", [None, "https://json-schema.org/draft/2019-09/schema"])
@pytest.mark.parametrize("identifier", [None, "https://example.org/parted"])
@pytest.mark.parametrize(
    ("pointer", "fits", "breaks", "line"),
    [
        ("#/anyOf/0", {"n": 1}, {"n": "x"}, "n: expected an integer, got a string"),
        ("#/anyOf/0", {"n": 1}, {"whole": 1}, "missing property n"),
        ("#/anyOf/1", {"below": {"n": 9}}, {"below": {"n": 10}}, "expected a number <= 9"),
        ("#/anyOf/2", {"all": {"whole": 1, "n": 1}}, {"all": {}}, "missing property all.whole"),
        ("#/$defs/a%20b", 1, "x", "expected a number, got a string"),
        ("#few", 9, 10, "expected a number <= 9"),
    ],
)
def test_a_part_is_checked_without_what_stands_around_it(
    dialect: str | None, identifier: str | None, pointer: str, fits: Any, breaks: Any, line: str
) -> None:
    """BEHAVIOURS 292: it may refer to anything in the whole schema, the whole included."""
    words = {"$schema": dialect, "$id": identifier}
    schema = {**PARTED, **{word: value for word, value in words.items() if value}}
    part = compile_validator(schema).part(pointer)
    assert part.errors(fits) == []
    (found,) = violation_lines(part.errors(breaks), show_value=False)
    assert line in found
    assert compile_validator(schema).part(pointer) is part


def test_a_part_of_draft_7_ignores_what_stands_beside_a_reference() -> None:
    """BEHAVIOURS 292: the dialect of the whole is that of its parts."""
    beside = {"$ref": "#/definitions/N", "maximum": 1}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"N": {"type": "integer"}, "Beside": beside},
    }
    part = compile_validator(schema).part("#/definitions/Beside")
    assert (part.errors(2), bool(part.errors("x"))) == ([], True)


def test_a_part_has_the_guards_that_it_needs() -> None:
    """A schema that is harmless without a definition may have a part that is not."""
    fan: dict[str, Any] = {
        f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 4} for n in range(9)
    }
    schema = {
        "type": "object",
        "$defs": {**fan, "D9": {"properties": {"a": {"$ref": "#/$defs/D0"}}}},
    }
    whole = compile_validator(schema)
    assert whole.errors({}) == []
    (found,) = whole.part("#/$defs/D0").errors({})
    assert found.expected == "a value that can be checked in a bounded time"


@pytest.mark.parametrize(
    ("pointer", "why"),
    [
        ("#/anyOf/9", "leads to no part of the schema"),
        ("#/required", "leads to no part of the schema"),
        ("https://example.org/x", "leads to no part of the schema"),
        ("#/x-kept/bad", "is not valid JSON Schema"),
        ("#/x-kept/far", "is not valid JSON Schema"),
    ],
)
def test_a_part_that_cannot_be_had_leaves_the_whole_as_it_is(pointer: str, why: str) -> None:
    """BEHAVIOURS 292: what nobody refers to is compiled by nobody; nothing is fetched."""
    kept = {"bad": {"type": "nothing"}, "far": {"$ref": "https://example.org/far"}}
    whole = compile_validator({**PARTED, "x-kept": kept})
    for _ in range(2):
        with pytest.raises(SchemaError, match=why):
            whole.part(pointer)
    assert whole.errors({"whole": 1}) == []
