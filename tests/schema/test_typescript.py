"""The compiler as judge: real tools, and values that are valid under a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcell.base.jsontext import canonical
from toolcell.errors import SchemaError
from toolcell.schema.declaration import (
    MCP_STYLE,
    FunctionSpec,
    function_declaration,
    namespace_declaration,
    type_text,
)
from toolcell.schema.hints import MAX_INPUT, input_hint, output_hint
from toolcell.schema.validation import Validator

pytestmark = pytest.mark.network

CATALOG = Path(__file__).parents[2].parent / "shared" / "data" / "mcp_catalog.jsonl"
NAMES = st.sampled_from(["a", "b", "c-d", "kind", "constructor"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.25]),
    st.sampled_from(["", "x", "y", 'q"\n', "*/"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(NAMES | st.just("zz"), inner, max_size=3)
    ),
    max_leaves=6,
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAMES, inner, max_size=3)
    extra = st.one_of(st.booleans(), inner)
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": members,
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": extra,
            "patternProperties": st.dictionaries(st.just("^z"), inner, max_size=1),
            "nullable": st.booleans(),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": extra,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
        },
    )
    branches = st.lists(inner, min_size=1, max_size=3)
    combined = st.fixed_dictionaries(
        {},
        optional={
            "anyOf": branches,
            "oneOf": branches,
            "allOf": branches,
            "type": st.sampled_from(["object", "array", "string", "number"]),
            "properties": members,
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": extra,
            "unevaluatedProperties": st.booleans(),
            "if": inner,
            "then": inner,
            "not": inner,
        },
    )
    return st.one_of(objects, arrays, combined)


LEAVES = st.one_of(
    st.booleans(),
    st.just({}),
    st.sampled_from(["string", "number", "integer", "boolean", "null"]).map(lambda t: {"type": t}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "string", "nullable": True}),
    st.sampled_from(["#/$defs/one", "#/$defs/two", "#", "#/$defs/a~1b"]).map(lambda r: {"$ref": r}),
    VALUES.map(lambda value: {"const": value}),
    st.lists(VALUES, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    st.just({"type": "integer", "enum": [1, 2, 2.5]}),
    st.just({"type": "object", "properties": {"kind": {"const": "x"}}, "required": ["kind"]}),
)
PARTS = st.recursive(LEAVES, containers, max_leaves=8)
DIALECTS = st.sampled_from([None, None, "http://json-schema.org/draft-07/schema#"])


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    body = draw(PARTS)
    root = dict(body) if isinstance(body, dict) else {}
    root["$defs"] = {"one": draw(PARTS), "two": draw(LEAVES), "a/b": draw(LEAVES)}
    dialect = draw(DIALECTS)
    return {"$schema": dialect, **root} if dialect else root


@st.composite
def fitting(draw: st.DrawFn, schema: Any, root: Any, depth: int = 0) -> Any:
    """Draw a value that tries to fit; the validator has the last word."""
    if not isinstance(schema, dict) or depth > 4:
        return draw(VALUES)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2].replace("~1", "/")
        return draw(fitting(root["$defs"].get(name, root), root, depth + 1))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema and draw(st.booleans()):
            return draw(fitting(draw(st.sampled_from(schema[key])), root, depth + 1))
    return draw(shaped(schema, root, depth))


@st.composite
def shaped(draw: st.DrawFn, schema: Any, root: Any, depth: int) -> Any:
    if schema.get("type") == "object":
        declared = schema.get("properties", {})
        wanted = [*schema.get("required", ())]
        wanted += [name for name in declared if draw(st.booleans())]
        value = {n: draw(fitting(declared.get(n, True), root, depth + 1)) for n in wanted}
        if draw(st.booleans()):
            extra = schema.get("additionalProperties", True)
            value["zz"] = draw(fitting(extra, root, depth + 1))
        return value
    if schema.get("type") == "array":
        prefix = schema.get("prefixItems", [])
        size = draw(st.integers(0, 3))
        items = [prefix[i] if i < len(prefix) else schema.get("items", True) for i in range(size)]
        return [draw(fitting(item, root, depth + 1)) for item in items]
    scalar = {"string": "x", "number": 0.5, "integer": 2, "boolean": True, "null": None}
    return scalar.get(str(schema.get("type")), draw(VALUES))


def test_values_that_are_valid_type_check_against_the_declaration(type_check: Any) -> None:
    """Rule 5.2, rule 7.2, TS-04: neither types nor output hints are narrower than a schema."""
    lines: list[str] = []
    schemas_used: list[Any] = []

    @settings(
        max_examples=200,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        schema = data.draw(schemas())
        try:
            validator = Validator(schema)
        except SchemaError:
            return
        texts = [type_text(schema).replace("\n", " ")]
        hint = output_hint(schema)
        if hint is not None and "constructor?" not in hint:
            texts.append(hint)
        tries = [data.draw(fitting(schema, schema)) for _ in range(4)]
        tries += [data.draw(VALUES) for _ in range(2)]
        for value in tries:
            if not validator.errors(value):
                for text in texts:
                    lines.append(f"export const v{len(lines)}: {text} = {canonical(value)};")
                    schemas_used.append(schema)

    collect()
    interesting = [line for line in lines if ": unknown =" not in line]
    assert len(interesting) > 100
    complaints = type_check("values.ts", "\n".join(lines) + "\n")
    detail = []
    for complaint in complaints[:5]:
        at = int(complaint.partition("(")[2].partition(",")[0]) - 1
        detail.append(f"{complaint}\n{lines[at]}\n{canonical(schemas_used[at])}")
    assert not complaints, "\n\n".join(detail)


def catalog() -> list[dict[str, Any]]:
    if not CATALOG.exists():
        pytest.skip("the catalog of public MCP tools is not beside the repository")
    return [json.loads(line) for line in CATALOG.read_text(encoding="utf-8").splitlines()]


def test_every_public_tool_has_a_hint_and_a_valid_declaration(type_check: Any) -> None:
    """Rule 4.3 and rule 5.2 over 1,743 real tools."""
    tools = catalog()
    assert len(tools) >= 1743
    servers: dict[str, list[FunctionSpec]] = {}
    plain = []
    for index, tool in enumerate(tools):
        schema = tool["inputSchema"]
        hint = input_hint(schema)
        assert 0 < len(hint) <= MAX_INPUT
        spec = FunctionSpec(
            name=f"t{index}", description=tool["description"] or "", input_schema=schema
        )
        servers.setdefault(tool["server"], []).append(spec)
        output = type_text(schema)
        plain.append(function_declaration(spec.name, spec.description, schema, output=output))
    spaces = [
        namespace_declaration(f"MCP.s{i}", members, style=MCP_STYLE)
        for i, members in enumerate(servers.values())
    ]
    assert type_check("mcp.d.ts", "\n".join(spaces)) == []
    assert type_check("tools.d.ts", "\n".join(plain)) == []
