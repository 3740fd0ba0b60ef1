"""`output_by_input`: declared with types, seen by a model as a union, held to in cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import jsonschema_rs
import pytest

from toolcell import CodeMode, Completed, Failed, output_by_input, tool
from toolcell.errors import ToolDefinitionError
from toolcell.schema.discriminator import KEYWORD, discriminator_of
from toolcell.schema.hints import output_hint
from toolcell.schema.validation import compile_validator

pytestmark = pytest.mark.anyio


class Listed(TypedDict):
    names: list[str]


@dataclass
class Read:
    text: str
    size: int = 0


@dataclass
class Tree:
    name: str
    below: list[Tree]


NAMES = {"type": "object", "properties": {"mode": {"enum": ["list", "read", "tree"]}}}
UNION = "{ names: Array<string> } | { size: number; text: string }"


@tool(output_schema=output_by_input("mode", {"list": Listed, "read": Read}))
async def notes(mode: Literal["list", "read"] = "list", *, lie: bool = False) -> Any:
    """List the notes, or read one."""
    listed = (mode == "list") != lie
    return {"names": ["a"]} if listed else Read("hello", 5)


def test_types_become_a_closed_union_with_its_mapping() -> None:
    """BEHAVIOURS 292, rule 7.2: the hint is the union, complete, as short as without a mapping."""
    schema = notes.output_schema
    assert schema is not None
    assert schema[KEYWORD] == {
        "version": 1,
        "inputProperty": "mode",
        "mapping": {"list": "#/anyOf/0", "read": "#/anyOf/1"},
    }
    assert schema["type"] == "object"
    assert output_hint(schema) == UNION
    found = discriminator_of(schema, notes.parameters)
    assert found is not None
    assert output_hint(found.mapping["read"].schema) == "{ size: number; text: string }"


def test_recursive_types_and_schemas_stand_side_by_side() -> None:
    """BEHAVIOURS 292: references of each branch still lead to what they meant."""
    flag = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]}
    schema = output_by_input("mode", {"list": Listed, "tree": Tree, "read": flag})
    found = discriminator_of(schema, NAMES)
    assert found is not None
    leaf = {"name": "a", "below": []}
    whole = compile_validator(schema)
    tree, read = (found.mapping[value].within(whole) for value in ("tree", "read"))
    assert tree.errors({"name": "r", "below": [leaf]}) == []
    assert tree.errors({"name": "r", "below": [{"name": 1, "below": []}]})
    assert tree.errors({"names": []})
    assert (read.errors({"ok": True}), bool(read.errors({"ok": False}))) == ([], True)
    jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize(
    ("name", "branches", "why"),
    [
        ("", {"a": Listed}, "must be the name of an input property"),
        ("mode", {}, "give 1 to 64 values"),
        ("mode", {f"v{n}": Listed for n in range(65)}, "give 1 to 64 values"),
        ("mode", {1: Listed}, "value 1: values must be strings"),
        ("mode", {"a": "Listed"}, "give a Python type or a JSON Schema object"),
        ("mode", {"a": bytes}, "no JSON Schema can be made"),
        ("mode", {"a": {"items": {"$ref": "#/$defs/X"}}}, r"may not hold '\$ref'"),
    ],
)
def test_what_cannot_be_a_branch_is_refused_where_it_is_declared(
    name: Any, branches: Any, why: str
) -> None:
    """BEHAVIOURS 292: the error names the value and what to give."""
    with pytest.raises(ToolDefinitionError, match=why):
        output_by_input(name, branches)


@pytest.mark.parametrize("executor", ["node", "quickjs"])
@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_a_cell_gets_the_branch_it_asked_for(executor: Any, api: Any) -> None:
    """BEHAVIOURS 292, rule 7.1, rule 4.6: the quick index shows the union and no mapping."""
    call = "notes" if api == "catalog" else "tools.notes"
    async with CodeMode(tools=[notes], executor=executor, guest_api=api) as cm:
        shown = cm.definitions()[0]["function"]["description"]
        assert UNION in shown
        assert KEYWORD not in shown
        body = "(await ids[0].describe())" if api == "catalog" else "(await tools.describe(ids[0]))"
        ids = "catalog.all()" if api == "catalog" else "ALL_TOOLS.map(each => each.id)"
        outcome = await cm.exec(f"const ids = {ids}; return {body}.outputSchema")
        assert isinstance(outcome, Completed), outcome
        assert outcome.value == notes.output_schema
        outcome = await cm.exec(f"return [await {call}({{}}), await {call}({{mode: 'read'}})]")
        assert isinstance(outcome, Completed), outcome
        assert outcome.value == [{"names": ["a"]}, {"text": "hello", "size": 5}]
        caught = f"try {{ await {call}({{lie: true}}) }} catch (e) {{ return e.message }}"
        outcome = await cm.exec(caught)
        assert isinstance(outcome, Completed), outcome
        assert 'With the caller\'s mode "list" it is #/anyOf/0.' in outcome.value
        failed = await cm.exec(f"return await {call}({{mode: 'read', lie: true}})")
        assert isinstance(failed, Failed)


async def test_the_declaration_file_says_what_each_value_gives() -> None:
    """BEHAVIOURS 182, 292: a line for each value beside the union."""
    async with CodeMode(tools=[notes], executor="quickjs") as cm:
        outcome = await cm.exec("return await API.read('tools/notes.d.ts')")
        assert isinstance(outcome, Completed), outcome
        assert ' * With mode "list": { names: Array<string> }\n' in outcome.value
        assert ' * With mode "read": { size: number; text: string }\n' in outcome.value
