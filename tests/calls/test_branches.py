"""The branch of an output schema that the input selects: the caller's and the executed one."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.calls.kit import Counted, core, gate, invocation, mcp
from toolcell.errors import CallError
from toolcell.protocol.hooks import BeforeToolCall, Hooks, Proceed
from toolcell.schema import validation
from toolcell.schema.discriminator import KEYWORD, MAX_WORK, discriminator_of

pytestmark = pytest.mark.anyio


def closed(**kinds: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": list(kinds),
        "additionalProperties": False,
    }


PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"mode": {"enum": ["list", "read", "any"], "default": "list"}},
}
LISTED, READ = {"count": 2}, {"text": "x"}


def annotated(**changes: Any) -> dict[str, Any]:
    annotation: dict[str, Any] = {
        "version": 1,
        "inputProperty": "mode",
        "mapping": {"list": "#/anyOf/0", "read": "#/$defs/Read"},
        **changes,
    }
    return {
        "anyOf": [closed(count="integer"), {"$ref": "#/$defs/Read"}],
        "$defs": {"Read": closed(text="string")},
        KEYWORD: annotation,
    }


def notes(details: Any, schema: Mapping[str, Any] | None = None) -> tuple[Any, Counted]:
    body = Counted(details)
    return core("notes", body, parameters=PARAMETERS, output_schema=schema or annotated()), body


async def error_of(tool: Any, arguments: Any, hooks: Hooks | None = None) -> CallError:
    made, _ = gate(hooks=hooks or Hooks())
    with pytest.raises(CallError) as caught:
        await made.call(invocation(tool, arguments))
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "fits", "breaks"),
    [
        ({"mode": "list"}, LISTED, READ),
        ({}, LISTED, READ),
        ({"mode": "read"}, READ, LISTED),
        ({"mode": "any"}, READ, {"other": 1}),
    ],
)
async def test_details_hold_to_the_branch_that_the_input_selects(
    arguments: Any, fits: Any, breaks: Any
) -> None:
    """BEHAVIOURS 292: its default counts; a value that no branch is named for has the union."""
    made, _ = gate()
    tool, _ = notes(fits)
    assert (await made.call(invocation(tool, arguments))).details == fits
    tool, body = notes(breaks)
    error = await error_of(tool, arguments)
    assert (error.code, error.effect, body.count) == ("output_contract", "unknown", 1)


@pytest.mark.parametrize("schema", ["http://json-schema.org/draft-07/schema#", None])
async def test_the_error_names_the_branch_and_no_value(schema: str | None) -> None:
    """BEHAVIOURS 284, 292: in draft 7, too, where nothing may stand beside a reference."""
    written = annotated() if schema is None else {"$schema": schema, **annotated()}
    tool, _ = notes({"count": "S3CR3T"}, written)
    error = await error_of(tool, {"mode": "read"})
    assert error.message.startswith(
        'Tool "openclaw:core:notes" returned details that do not match its declared outputSchema. '
        'With the caller\'s mode "read" it is #/$defs/Read. It has run: check the state it left'
    )
    assert "S3CR3T" not in error.message


def to(mode: str) -> Hooks:
    def rewrite(view: BeforeToolCall) -> Proceed:
        return Proceed(arguments={**view.arguments, "mode": mode})

    return Hooks(before=[rewrite])


async def test_the_callers_branch_holds_although_a_hook_made_the_tool_run_another() -> None:
    """BEHAVIOURS 292: the program was promised what it asked for."""
    tool, body = notes(READ)
    error = await error_of(tool, {"mode": "list"}, to("read"))
    assert 'With the caller\'s mode "list" it is #/anyOf/0.' in error.message
    assert body.seen == [{"mode": "read"}]


async def test_the_executed_branch_holds_although_the_caller_asked_for_another() -> None:
    """BEHAVIOURS 292: details of the caller's branch alone are not what the tool ran."""
    tool, _ = notes(LISTED)
    error = await error_of(tool, {"mode": "list"}, to("read"))
    assert 'With the executed mode "read" it is #/$defs/Read.' in error.message


async def test_a_result_that_is_of_both_branches_passes() -> None:
    """BEHAVIOURS 292: both must hold, and both may."""
    schema = annotated(mapping={"list": "#/$defs/Loose", "read": "#/$defs/Read"})
    schema["$defs"]["Loose"] = {"type": "object"}
    tool, _ = notes(READ, schema)
    made, _ = gate(hooks=to("read"))
    assert (await made.call(invocation(tool, {"mode": "list"}))).details == READ


async def test_a_caller_that_gives_no_string_is_held_to_the_executed_branch() -> None:
    """BEHAVIOURS 292: a hook may repair the input; a number selects nothing."""
    tool, _ = notes(READ)
    made, _ = gate(hooks=to("read"))
    assert (await made.call(invocation(tool, {"mode": 7}))).details == READ


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"version": 2}, "version: must be 1"),
        ({"version": True}, "version: must be 1"),
        ({"inputProperty": ""}, "inputProperty: must be the name"),
        ({"inputProperty": "kind"}, "inputProperty: 'kind' is no property of parameters"),
        ({"mapping": {}}, "mapping: must be an object of 1 to 64 values"),
        ({"mapping": {f"v{n}": "#/anyOf/0" for n in range(65)}}, "mapping: must be an object"),
        ({"mapping": {"lsit": "#/anyOf/0"}}, "mapping.lsit: is no value of 'mode'"),
        ({"mapping": {"list": "#/anyOf/7"}}, "mapping.list: must be a pointer to a branch"),
        ({"mapping": {"list": "#"}}, "mapping.list: must be a pointer to a branch"),
        ({"mapping": {"list": "https://example.org/x"}}, "mapping.list: must be a pointer"),
        ({"mapping": {"list": "#/anyOf"}}, "mapping.list: must be a pointer to a branch"),
        ({"mapping": {"list": 0}}, "mapping.list: must be a pointer to a branch"),
        ({"maping": {}}, "maping: is unknown"),
    ],
)
async def test_a_malformed_annotation_stops_the_call_before_the_tool_runs(
    changes: Mapping[str, Any], where: str
) -> None:
    """BEHAVIOURS 283, 292: the error says where it is and what would be right."""
    tool, body = notes(LISTED, annotated(**changes))
    error = await error_of(tool, {"mode": "list"})
    assert error.message.startswith(
        f'Tool "openclaw:core:notes" has an invalid outputSchema: {KEYWORD}.{where}'
    )
    assert (error.code, error.effect, body.count) == ("invalid_contract", "none", 0)


@pytest.mark.parametrize(
    "schema",
    [
        {**annotated(), KEYWORD: "mode"},
        {"type": "object", "properties": {"inner": annotated()}},
        {**annotated(), "$ref": "#/$defs/Read"},
        {
            "$defs": {"Read": closed(text="string"), "Bad": {"pattern": "("}},
            "anyOf": [{}],
            KEYWORD: {"version": 1, "inputProperty": "mode", "mapping": {"list": "#/$defs/Bad"}},
        },
    ],
)
async def test_an_annotation_of_another_kind_or_place_stops_it_too(
    schema: Mapping[str, Any],
) -> None:
    """BEHAVIOURS 292: it is never ignored."""
    tool, body = notes(LISTED, schema)
    error = await error_of(tool, {"mode": "list"})
    assert (error.code, body.count) == ("invalid_contract", 0)


async def test_the_annotation_of_a_remote_tool_is_ignored_with_its_schema() -> None:
    """BEHAVIOURS 291, 292, rule 7.3: not even a malformed one stops a call."""
    made, _ = gate()
    for schema in (annotated(), annotated(version=9)):
        tool = mcp("fx", "notes", Counted([1]), parameters=PARAMETERS, output_schema=schema)
        assert (await made.call(invocation(tool, {"mode": "read"}))).details == [1]


async def test_a_republished_tool_has_its_new_annotation() -> None:
    """BEHAVIOURS 289, 292."""
    made, _ = gate()
    tool, _ = notes(READ)
    await made.call(invocation(tool, {"mode": "read"}))
    turned = annotated(mapping={"list": "#/$defs/Read", "read": "#/anyOf/0"})
    tool, _ = notes(READ, turned)
    assert (await error_of(tool, {"mode": "read"})).code == "output_contract"
    assert (await made.call(invocation(tool, {"mode": "list"}))).details == READ


def unlike(count: int, **words: Any) -> dict[str, Any]:
    """A schema of `count` branches, each selected by an input of its own."""
    names = [f"v{n}" for n in range(count)]
    mapping = {name: f"#/anyOf/{n}" for n, name in enumerate(names)}
    return {
        "anyOf": [{"required": [name]} for name in names],
        KEYWORD: {"version": 1, "inputProperty": "mode", "mapping": mapping},
        **words,
    }


OPEN: Mapping[str, Any] = {"type": "object", "properties": {"mode": {"type": "string"}}}


async def test_a_branch_that_does_not_compile_stops_the_calls_that_select_it() -> None:
    """BEHAVIOURS 292: a branch is compiled when an input selects it, before the tool runs."""
    schema = annotated(mapping={"list": "#/x-kept/bad", "read": "#/$defs/Read"})
    schema["x-kept"] = {"bad": {"type": "nothing"}}
    tool, body = notes(READ, schema)
    for _ in range(2):
        error = await error_of(tool, {"mode": "list"})
        assert (error.code, error.effect, body.count) == ("invalid_contract", "none", 0)
        assert f"{KEYWORD}.mapping.list: " in error.message
    error = await error_of(tool, {"mode": "list"}, to("read"))
    assert (error.code, body.count) == ("invalid_contract", 0)
    error = await error_of(tool, {"mode": "read"}, to("list"))
    assert (error.code, body.count) == ("invalid_contract", 0)
    made, _ = gate()
    assert (await made.call(invocation(tool, {"mode": "read"}))).details == READ


async def test_the_whole_schema_holds_beside_the_branch() -> None:
    """BEHAVIOURS 292: what the branch allows is no more than the whole does."""
    schema = annotated(mapping={"list": "#/$defs/Loose", "read": "#/$defs/Read"})
    schema["$defs"]["Loose"] = {"type": "object"}
    schema["unevaluatedProperties"] = False
    tool, body = notes({"other": 1}, schema)
    error = await error_of(tool, {"mode": "list"})
    assert (error.code, body.count) == ("output_contract", 1)
    assert "With the caller's" not in error.message


async def test_only_the_branches_that_inputs_select_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """BEHAVIOURS 292: a declaration needs no validator, and a call no more than its own."""
    compiled: list[Any] = []
    native = validation._native

    def watched(schema: Any, *given: Any) -> Any:
        compiled.append(schema)
        return native(schema, *given)

    monkeypatch.setattr(validation, "_native", watched)
    schema = unlike(64)
    assert len(discriminator_of(schema, OPEN).mapping) == 64  # type: ignore[union-attr]
    assert compiled == []
    made, _ = gate()
    tool = core("many", Counted({"v0": 1, "v1": 1}), parameters=OPEN, output_schema=schema)
    for mode, more in (("v0", 3), ("v0", 0), ("v1", 1)):  # first the input, the whole, the branch
        before = len(compiled)
        await made.call(invocation(tool, {"mode": mode}))
        assert len(compiled) - before == more


async def test_a_large_schema_has_few_branches() -> None:
    """BEHAVIOURS 292: each branch may refer to all of it, so their product has a bound."""
    large = {f"p{n}": {"const": n} for n in range(MAX_WORK // 64)}
    schema = unlike(64, properties=large)
    body = Counted({})
    tool = core("large", body, parameters=OPEN, output_schema=schema)
    error = await error_of(tool, {"mode": "v0"})
    assert (error.code, body.count) == ("invalid_contract", 0)
    assert f"{KEYWORD}.mapping: names 64 branches of a schema of " in error.message
    same = dict.fromkeys(schema[KEYWORD]["mapping"], "#/anyOf/0")
    schema = {**schema, KEYWORD: {**schema[KEYWORD], "mapping": same}}
    assert discriminator_of(schema, OPEN) is not None
