"""Reports TS: what a schema becomes, seen where a model or a program sees it."""

import gc
import json
import random
import time

import pytest

from tests.reports.rig import agent, cells, fixture_server, named_server, obj, raw
from toolcell import Tool, ToolResult
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
}
CYCLE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "$defs": {"node": NODE},
}
ANY = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/Any"}},
    "$defs": {
        "Any": {
            "anyOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/Any"}},
                {"type": "string"},
            ]
        }
    },
}


async def input_of(guest, parameters):
    """The input hint of one trusted tool, as a program reads it."""
    every = "catalog.all()" if guest[1] == "catalog" else "ALL_TOOLS"
    async with cells(guest, tools=[raw("it", parameters)]) as open_:
        return await open_.value(f"return {every}[0].input")


async def test_an_array_of_a_union_is_an_array_of_all_members(guest):
    """TS-01."""
    union = {"type": "array", "items": {"type": "string", "enum": ["S", "M", "L"]}}
    either = {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}
    perhaps = {"type": "array", "items": {"type": ["string", "null"]}}
    hint = await input_of(guest, obj(sizes=union, mixed=either, perhaps=perhaps))
    assert 'Array<"S" | "M" | "L">' in hint
    assert "Array<string | number>" in hint
    assert "Array<string | null>" in hint


async def test_schemas_that_refer_to_themselves_take_nothing_down(guest):
    """TS-03: the server keeps every tool; the full schema keeps its reference."""
    server = named_server(
        {"name": "cycle", "inputSchema": CYCLE, "outputSchema": CYCLE},
        {"name": "any", "inputSchema": ANY},
        {"name": "plain"},
    )
    async with cells(guest, tools=[raw("own", CYCLE)], mcp={"fx": server}) as open_:
        kinds = "return [typeof MCP.fx.cycle, typeof MCP.fx.any, typeof MCP.fx.plain]"
        assert await open_.value(kinds) == ["function"] * 3
        own = (
            "return await catalog.all()[0].describe()"
            if open_.api == "catalog"
            else "return await tools.describe('openclaw:core:own')"
        )
        described = await open_.value(own)
        assert described["parameters"]["properties"]["root"] == {"$ref": "#/$defs/node"}
        assert len(described["input"]) < 2000
        declared = await open_.value('return await API.read("mcp/fx.d.ts")')
        assert "function cycle(" in declared
        header = await open_.value(
            'return JSON.stringify(await MCP.fx.$api("cycle", {schema: true}))'
        )
        assert '"$ref":"#/$defs/node"' in header


async def test_local_references_resolve_as_json_pointers(guest):
    """TS-04."""
    shape = {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}}
    parameters = {
        "type": "object",
        "properties": {
            "q": {"$ref": "#/definitions/a~1b"},
            "r": {"$ref": "#/$defs/x%20y"},
            "s": {"$ref": "#/$defs/absent"},
        },
        "definitions": {"a/b": shape},
        "$defs": {"x y": {"type": "boolean"}},
    }
    hint = await input_of(guest, parameters)
    assert "q?: { k: number" in hint
    assert "r?: boolean" in hint
    assert "s?: unknown" in hint


async def test_array_indices_in_pointers_are_canonical(guest):
    """TS-05."""
    pointers = {"a": "0x0", "b": "00", "c": "0e0", "d": "0"}
    parameters = {
        "type": "object",
        "properties": {
            **{name: {"$ref": f"#/prefixItems/{at}"} for name, at in pointers.items()},
            "e": {"$ref": "#/$defs/00"},
        },
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "$defs": {"00": {"type": "boolean"}},
    }
    hint = await input_of(guest, parameters)
    assert "d?: number" in hint
    assert "e?: boolean" in hint
    for name in "abc":
        assert f"{name}?: unknown" in hint


def nested(levels):
    made = {"type": "object", "properties": {}}
    for _ in range(levels):
        made = obj(p=made)
    return made


HOSTILE = {
    "loop": {
        "type": "object",
        "allOf": [{"$ref": "#/$defs/A"}],
        "$defs": {
            "A": {"allOf": [{"$ref": "#/$defs/B"}]},
            "B": {"allOf": [{"$ref": "#/$defs/A"}]},
        },
    },
    "wide": obj(**{f"p{n}": {"type": "string"} for n in range(20_000)}),
    "deep": nested(150),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_schemas_give_bounded_hints_quickly(guest, kind):
    """TS-06."""
    start = time.perf_counter()
    async with cells(guest, tools=[raw("bad", HOSTILE[kind]), raw("good")]) as open_:
        every = "catalog.all()" if guest[1] == "catalog" else "ALL_TOOLS"
        hints = await open_.value(f"return {every}.map((t) => t.input)")
        assert len(hints) == 2
        assert all(len(hint) < 2500 for hint in hints)
    assert time.perf_counter() - start < 3


async def test_four_hundred_levels_do_not_take_the_sibling_tools_down(guest):
    """TS-06: from a server, where nobody checked before."""
    text = '{"type":"object","properties":{"p":' * 400 + '{"type":"string"}' + "}}" * 400
    entry = {"name": "bad", "inputSchema": json.loads(text)}
    server = named_server(entry, {"name": "good"})
    async with cells(guest, tools=[raw("own")], mcp={"fx": server}) as open_:
        assert await open_.value("return typeof MCP.fx.good") == "function"
        assert await open_.value("return typeof MCP.fx.bad") == "function"


async def test_descriptions_stay_inside_their_comment(guest):
    """TS-07."""
    entry = {
        "name": "evil",
        "description": "*/ }; globalThis.x = 1; /*",
        "inputSchema": obj(p={"type": "string", "description": "one\n@param fake two"}),
    }
    server = named_server(entry)
    async with cells(guest, tools=[raw("own")], mcp={"fx": server}) as open_:
        declared = await open_.value('return await API.read("mcp/fx.d.ts")')
    code, inside = "", declared
    while "/*" in inside:
        before, _, rest = inside.partition("/*")
        code += before
        _, _, inside = rest.partition("*/")
    code += inside
    assert "globalThis" not in code
    assert "globalThis" in declared
    params = [line for line in declared.splitlines() if line.strip().startswith("* @param")]
    assert len(params) == 1


async def test_boolean_schemas_are_schemas(guest, tmp_path):
    """TS-09: `true` is sent as `{}`."""
    hint = await input_of(guest, obj(payload=True, gone=False))
    assert "payload?: unknown" in hint
    assert "gone?: never" in hint or "gone" not in hint
    async with cells(guest, tools=[raw("own")], mcp={"fx": fixture_server("--odd")}) as open_:
        assert await open_.value("return [typeof MCP.fx.booleans, typeof MCP.fx.echo]") == [
            "function",
            "function",
        ]
    async with agent(tmp_path, tools=[raw("it", obj(payload=True))]) as made:
        await made.turn("nothing")
        assert made.definition("it")["parameters"]["properties"]["payload"] == {}


async def test_properties_named_like_inherited_ones_are_properties(guest):
    """TS-10."""
    got = []
    names = ["constructor", "toString"]
    parameters = {**obj(**{n: {"type": "string"} for n in names}), "required": names}

    async def execute(arguments, _context):
        got.append(dict(arguments))
        return ToolResult(details=None)

    it = Tool(name="it", description="It.", parameters=parameters, execute=execute)
    call = "it" if guest[1] == "catalog" else "tools.it"
    async with cells(guest, tools=[it]) as open_:
        outcome = await open_.failed(f"await {call}({{}})")
        for name in names:
            assert name in outcome.error
        assert got == []
        await open_.value(f'await {call}({{constructor: "a", toString: "b"}})')
    assert got == [{"constructor": "a", "toString": "b"}]
    hint = await input_of(guest, parameters)
    assert "constructor: string" in hint
    assert "toString: string" in hint


async def test_integer_bounds_are_in_the_hint_and_hold(guest):
    """TS-11, BEHAVIOURS 268."""
    parameters = obj(
        offset={"type": "integer", "minimum": 1},
        limit={"type": "integer", "minimum": 1, "maximum": 500},
    )
    hint = await input_of(guest, parameters)
    assert "/* integer, >= 1 */" in hint
    assert "/* integer, >= 1, <= 500 */" in hint
    call = "it" if guest[1] == "catalog" else "tools.it"
    async with cells(guest, tools=[raw("it", parameters)]) as open_:
        code = f"try {{ await {call}({{offset: 0.5}}) }} catch (x) {{ return x.code }}"
        assert await open_.value(code) == "input_contract"


ROW = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "paid": {"type": "boolean"}},
    "required": ["id", "paid"],
}
CLOSED = {"type": "array", "items": {**ROW, "additionalProperties": False}}
OPEN = {"type": "array", "items": ROW}


async def test_complete_outputs_are_told_and_open_or_remote_ones_are_not(guest):
    """TS-12, rule 7.2, rule 7.3: a broken contract fails without the value."""
    closed = raw("closed", output_schema=CLOSED, result=[{"id": 1, "canary": "CANARY"}])
    tools = [closed, raw("open_", output_schema=OPEN)]
    mcp = {"fx": named_server({"name": "remote", "outputSchema": CLOSED})}
    async with cells(guest, tools=tools, mcp=mcp) as open_:
        description = open_.cm.definitions()[0]["function"]["description"]
        lines = {
            line.split()[1].strip('"').rpartition(":")[2]: line
            for line in description.splitlines()
            if line.startswith("- ") and "->" in line
        }
        assert lines["closed"].endswith("-> Array<{ id: string; paid: boolean }>")
        assert lines["open_"].endswith("-> ?")
        assert "remote" not in description
        call, describe = (
            ("closed", "await catalog.all()[1].describe()")
            if open_.api == "catalog"
            else ("tools.closed", "await tools.describe('openclaw:core:open_')")
        )
        assert (await open_.value(f"return ({describe}).outputSchema")) == OPEN
        code = f"try {{ await {call}({{}}) }} catch (x) {{ return [x.code, x.message] }}"
        error, message = await open_.value(code)
    assert error == "output_contract"
    assert "CANARY" not in message


def synthetic(count):
    properties = {f"p{n}": {"type": "string", "description": "x" * 20} for n in range(10)}
    return [raw(f"tool_{n:04}", obj(**properties)) for n in range(count)]


async def test_the_index_is_bounded_deterministic_and_linear(guest):
    """TS-13, rule 4.6."""
    many = {f"q{n}": {"type": "string", "description": "d" * 60} for n in range(3000)}
    huge = raw("huge", obj(**many))
    took, texts = {}, []
    for count in (500, 1000, 2000):
        tools = [*synthetic(count), huge]
        async with cells(guest, tools=tools) as open_:
            gc.collect()
            start = time.thread_time()
            text = open_.cm.definitions()[0]["function"]["description"]
            took[count] = time.thread_time() - start
            index = text.rsplit("\n\n", 1)[1]
            assert len(index) <= 8000
            if count == 1000:
                texts.append(text)
                full = (
                    "(await (await catalog.search('huge'))[0].describe()).parameters"
                    if open_.api == "catalog"
                    else "(await tools.describe('openclaw:core:huge')).parameters"
                )
                length = await open_.value(f"return Object.keys({full}.properties).length")
                assert length == 3000
        if count == 1000:
            random.Random(1).shuffle(tools)
            async with cells(guest, tools=tools) as open_:
                texts.append(open_.cm.definitions()[0]["function"]["description"])
    assert texts[0] == texts[1]
    assert took[2000] / took[500] < 10, "four times the tools: 4 when linear, 16 when quadratic"


async def test_a_direct_model_gets_the_same_checks(tmp_path):
    """TS-11: for trusted tools called directly."""
    parameters = obj(offset={"type": "integer", "minimum": 1})
    async with agent(tmp_path, tools=[raw("it", parameters)]) as made:
        await made.turn(tool_call("it", {"offset": 0.5}), "ok")
        assert "offset" in made.results()[0]
