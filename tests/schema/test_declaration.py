"""Declarations: the text of types, functions, namespaces and their doc comments."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.schema.test_hints import hostile
from toolcell.schema.declaration import (
    MAX_DECLARATION,
    MCP_STYLE,
    FunctionSpec,
    NamespaceSpec,
    function_declaration,
    local_name,
    namespace_declaration,
    type_text,
)

STRING = {"type": "string"}
NUMBER = {"type": "number"}


def flat(text: str) -> str:
    return " ".join(text.split())


def shape(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


TYPES = [
    pytest.param({"type": ["string", "null"]}, "string | null", id="238 nullable"),
    pytest.param({"type": "string", "enum": ["a"], "nullable": True}, '"a"', id="238 enum"),
    pytest.param({"type": "array"}, "Array<unknown>", id="238 array without items"),
    pytest.param({"type": "integer", "enum": [1, 2, 2.5]}, "1 | 2", id="238 integer enum"),
    pytest.param({"enum": [f"v{i}" for i in range(17)]}, "string", id="238 seventeen values"),
    pytest.param({"enum": [f"v{i}" for i in range(900)]}, "string", id="238 nine hundred values"),
    pytest.param({}, "unknown", id="238 empty"),
    pytest.param({"$ref": "#/no"}, "unknown", id="238 ref"),
    pytest.param(
        shape({"id": STRING}, "id"), "{ id: string; [key: string]: unknown; }", id="239 open"
    ),
    pytest.param(
        shape({"id": STRING}, additionalProperties=False), "{ id?: string; }", id="239 closed"
    ),
    pytest.param(shape({}, additionalProperties=NUMBER), "Record<string, number>", id="239 map"),
    pytest.param(
        shape({"id": STRING}, "id", additionalProperties=NUMBER),
        "{ id: string; [key: string]: number | string; }",
        id="239 extra numbers beside a string",
    ),
    pytest.param(
        shape({"id": STRING}, additionalProperties=STRING),
        "{ id?: string; [key: string]: string | undefined; }",
        id="an index signature holds the optional member",
    ),
    pytest.param(
        {"anyOf": [{"const": i} for i in range(8)]}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7", id="240 eight"
    ),
    pytest.param(shape({}, additionalProperties=False), "Record<string, never>", id="282 closed"),
    pytest.param(
        {"type": "array", "prefixItems": [STRING, NUMBER], "minItems": 1},
        "[string, (number)?, ...Array<unknown>]",
        id="tuple",
    ),
    pytest.param({"properties": {"a": STRING}}, "unknown", id="a missing type says nothing"),
    pytest.param(False, "never", id="false"),
    pytest.param(
        shape({"constructor": STRING, "toString": STRING}, "toString", additionalProperties=False),
        "{ toString: string; constructor?: unknown; }",
        id="an inherited name that may be left out",
    ),
]


@pytest.mark.parametrize(("schema", "text"), TYPES)
def test_types_are_as_measured(schema: Any, text: str) -> None:
    """BEHAVIOURS 238, BEHAVIOURS 239, BEHAVIOURS 240, BEHAVIOURS 282."""
    assert flat(type_text(schema)) == text


def test_deep_types_end_in_unknown() -> None:
    """BEHAVIOURS 240, BEHAVIOURS 282: eight levels for MCP, twelve for other tools."""
    schema: dict[str, Any] = STRING
    for _ in range(14):
        schema = {"type": "array", "items": schema}
    assert type_text(schema, style=MCP_STYLE) == "Array<" * 8 + "unknown" + ">" * 8
    assert type_text(schema) == "Array<" * 12 + "unknown" + ">" * 12


def test_a_function_has_the_shape_of_the_documented_example() -> None:
    """BEHAVIOURS 236, BEHAVIOURS 237; rule 5.2."""
    schema = shape(
        {
            "body": STRING,
            "title": {"type": "string", "description": "Issue title"},
            "owner": {"type": "string", "description": "Repository\nowner"},
        },
        *("owner", "title"),
        additionalProperties=False,
    )
    text = namespace_declaration(
        "MCP.github",
        [
            FunctionSpec(
                name="$api",
                description="Returns this header.",
                parameters="toolName?: string, options?: { schema?: boolean }",
                output="McpApiHeader",
            ),
            FunctionSpec(
                name="createIssue",
                description="Create an issue.",
                input_schema=schema,
                output="McpToolResult",
            ),
        ],
    )
    assert text == (
        "declare namespace MCP.github {\n"
        "  /** Returns this header. */\n"
        "  function $api(toolName?: string, options?: { schema?: boolean })"
        ": Promise<McpApiHeader>;\n"
        "\n"
        "  /**\n"
        "   * Create an issue.\n"
        "   * @param owner Repository owner\n"
        "   * @param title Issue title\n"
        "   */\n"
        "  function createIssue(input: {\n"
        "    owner: string;\n"
        "    title: string;\n"
        "    body?: string;\n"
        "  }): Promise<McpToolResult>;\n"
        "}\n"
    )


def test_members_with_defaults_need_not_be_given_where_defaults_are_filled_in() -> None:
    """BEHAVIOURS 227, BEHAVIOURS 236, BEHAVIOURS 237."""
    schema = shape(
        {"body": {"type": "string", "default": ""}, "n": NUMBER}, "body", additionalProperties=False
    )
    filled = function_declaration("f", "", schema, output="unknown", style=MCP_STYLE)
    assert '@param body? Default: "".' in filled
    assert "function f(input?: { body?: string; n?: number; })" in flat(filled)
    strict = function_declaration("f", "", schema, output="unknown")
    assert "function f(input: { body: string; n?: number; })" in flat(strict)


def test_needed_members_come_first_in_the_order_of_required() -> None:
    """BEHAVIOURS 237."""
    schema = shape({"z": STRING, "a": STRING, "m": STRING, "b": STRING}, "m", "z")
    text = flat(function_declaration("f", "", schema, output="unknown", style=MCP_STYLE))
    assert "{ m: string; z: string; a?: string; b?: string;" in text


def test_a_description_cannot_leave_its_comment_or_fake_a_tag() -> None:
    """TS-07, BEHAVIOURS 236."""
    evil = "*/ }; globalThis.x = 1; /*\n@param fake no\u2028*\n/ **//"
    schema = shape({"a": {"type": "string", "description": "real\r\n@param fake no */ x"}})
    text = function_declaration("f", evil, schema, output="unknown")
    comment, _, code = text.partition(" */\n")
    assert "*/" not in comment
    assert "globalThis" not in code
    tags = [line for line in comment.splitlines() if line.lstrip(" *").startswith("@param")]
    assert tags == [" * @param a? real @param fake no * / x"]


def test_long_descriptions_are_cut() -> None:
    """BEHAVIOURS 236: twelve lines that are not blank."""
    text = function_declaration(
        "f", "\n\n".join(f"line {i}" for i in range(40)), None, output="unknown"
    )
    assert "line 11" in text
    assert "line 12" not in text


def test_reserved_words_are_exported_under_their_own_name() -> None:
    """CN-04."""
    assert local_name("delete", frozenset({"delete_"})) == (
        "delete__",
        "export { delete__ as delete };",
    )
    assert local_name("remove", frozenset()) == ("remove", None)
    text = namespace_declaration(
        "MCP.fx", [FunctionSpec(name="delete"), FunctionSpec(name="ping"), FunctionSpec(name="$a")]
    )
    assert "  function delete_(" in text
    assert "  export { delete_ as delete };" in text
    assert "  export function ping(" in text
    alone = function_declaration("new", "", None, output="unknown")
    assert alone.splitlines()[-1] == "export { new_ as new };"


@pytest.mark.parametrize("name", ["a-b", "", "1a", "a;b", "x\n", "é"])
def test_names_that_are_no_identifiers_are_refused(name: str) -> None:
    """CN-04: names are made safe before they are declared."""
    with pytest.raises(ValueError, match="make names safe"):
        function_declaration(name, "", None, output="unknown")
    with pytest.raises(ValueError, match="make names safe"):
        namespace_declaration(f"MCP.{name}", [])


@pytest.mark.parametrize("name", list(hostile()))
def test_hostile_schemas_are_declared_bounded_and_in_time(name: str) -> None:
    """TS-03, TS-06, BEHAVIOURS 282."""
    schema = hostile()[name]
    start = time.thread_time()
    text = function_declaration("f", "x" * 100_000, schema, output="unknown", style=MCP_STYLE)
    body = type_text(schema)
    assert time.thread_time() - start < 1.0
    assert len(text) <= MAX_DECLARATION
    assert len(body) <= MAX_DECLARATION


@pytest.mark.network
def test_declarations_of_hard_cases_are_valid_typescript(type_check: Any) -> None:
    """TS-07, CN-04: the compiler accepts them, and every name can be called."""
    evil = "*/ }; globalThis.x = 1; /*"
    schema = {
        **shape({"*/": {"type": "string", "description": evil}, "__proto__": STRING, "a\n": True}),
        "patternProperties": {"^x": NUMBER},
    }
    words = ["delete", "await", "enum", "new", "eval", "static", "delete_", "ping"]
    members = [FunctionSpec(name=w, description=evil, input_schema=schema) for w in words]
    inner = NamespaceSpec(name="resources", members=(FunctionSpec(name="list"),))
    text = namespace_declaration("MCP.fx", [*members, inner], description=evil)
    calls = "".join(f"MCP.fx.{word}({{}});\n" for word in [*words, "resources.list"])
    hard = "".join(
        f"{function_declaration(f'h{i}', evil, s, output=type_text(s))}\n"
        for i, s in enumerate(hostile().values())
    )
    params = "".join(
        f"declare const t{i}: {type_text(p.values[0])};\n" for i, p in enumerate(TYPES)
    )
    assert type_check("hard.ts", text + calls + hard + params) == []
