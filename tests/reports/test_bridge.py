"""Reports BR: calls from a cell and what comes back."""

import pytest

from tests.reports.rig import agent, cell, cells, fixture_server, named_server, obj, raw
from toolcell import Completed, tool
from toolcell.tools.tool import core_tool

pytestmark = pytest.mark.anyio
LEAKS = ("pydantic", "jsonschema", "http", "Traceback", "/src/", ".py", "RuntimeError")


async def test_a_failing_call_is_caught_by_the_program(any_guest):
    """BR-01, rule 3.10."""
    code = (
        'let r; try { r = await boom({why: "q"}) }'
        " catch (x) { r = {n: x.name, m: x.message, c: x.code} } return r"
    )
    async with cells(any_guest) as open_:
        caught = await open_.value(code, "boom")
        assert "boom: q" in caught["m"]
        assert caught["c"] == "tool_error"
        unknown = (
            "const [h] = await catalog.search('echo'); try { await nothere({}) } catch (x) {"
            " return x.name }"
            if open_.api == "catalog"
            else "try { await tools.callValue('openclaw:core:nothere', {}) }"
            " catch (x) { return x.code }"
        )
        assert await open_.value(unknown) in {"ReferenceError", "unknown_tool"}


async def test_wrong_arguments_reject_in_the_tools_own_words(guest):
    """BR-02."""
    async with cells(guest) as open_:
        outcome = await open_.failed("return await add({a: 1, c: 2})", "add")
        assert "missing property b; unknown property c. Did you mean: b?" in outcome.error
        assert not [leak for leak in LEAKS if leak in outcome.error]
        assert open_.world.ran == []


@pytest.mark.parametrize(
    "call", ['add({a: "1", b: 2})', "add([1, 2])", "add(null)", "add()", "add(7)"]
)
async def test_arguments_are_checked_before_the_tool_runs(guest, call):
    """BR-03."""
    code = f"try {{ await {call} }} catch (x) {{ return [x.code, x.effectStatus] }}"
    async with cells(guest) as open_:
        code_, effect = await open_.value(code, "add")
        assert code_ in {"input_contract", "invalid_input"}
        assert effect == "none"
        assert open_.world.ran == []
        assert await open_.value("return await add({a: 1, b: 2})", "add") == {"sum": 3}


async def test_the_caught_text_is_the_tools_and_shows_nothing_of_the_host(guest):
    """BR-05."""
    async with cells(guest) as open_:
        code = 'try { await boom({why: "need field X"}) } catch (x) { return x.message }'
        said = await open_.value(code, "boom")
    assert "need field X" in said
    assert not [leak for leak in LEAKS if leak in said]


class Growing:
    """A source that offers one more tool once it is told to."""

    def __init__(self):
        self.version = 1

        @tool
        async def unlock() -> str:
            """Unlock more."""
            self.version += 1
            return "unlocked"

        @tool
        async def secret() -> str:
            """Tell the secret."""
            return "found"

        self._tools = (unlock, secret)

    def tools(self):
        return [core_tool(each) for each in self._tools[: self.version]]

    def unavailable(self):
        return ()

    async def start(self):
        pass

    async def aclose(self):
        pass


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_a_tool_unlocked_by_a_cell_is_there_in_the_next_one_and_whole(tmp_path, api):
    """BR-06, rule 2.5: search and globals agree, in this cell and in the next."""
    look = {
        "catalog": "const hits = await catalog.search('secret');"
        " return [hits.length, typeof globalThis.secret]",
        "tools": "const hits = await tools.search('secret');"
        " return [hits.length, typeof tools.secret]",
    }[api]
    unlock = {"catalog": "unlock", "tools": "tools.unlock"}[api]
    use = {"catalog": "secret", "tools": "tools.secret"}[api]
    steps = [
        cell(f"await {unlock}({{}}); {look}", "c1"),
        cell(look, "c2"),
        cell(f"return await {use}({{}})", "c3"),
        "done",
    ]
    made = agent(tmp_path, tools=[], sources=(Growing(),), enabled=True, guestApi=api)
    async with made as open_:
        await open_.turn(*steps)
        first, second, third = open_.results()
    assert '"value":[0,"undefined"]' in first
    assert '"value":[1,"function"]' in second
    assert '"value":"found"' in third


async def test_handles_survive_wherever_they_stand_in_a_result(catalog_guest):
    """BR-07."""
    async with cells(catalog_guest) as open_:
        value = await open_.value(
            "const [a, b] = await Promise.all([catalog.search('echo'), catalog.search('add')]);"
            "const s = {x: a}; return {l: [a, b], twice: [s, s]}"
        )
        for handles in (*value["l"], value["twice"][0]["x"], value["twice"][1]["x"]):
            assert handles
            for handle in handles:
                assert {"callableName", "toolName", "source"} <= set(handle)
        assert value["twice"][0] == value["twice"][1]
        # BEHAVIOURS 119: a real cycle is told as text.
        assert await open_.value("const o = {}; o.o = o; return o") == "[object Object]"


async def test_values_that_json_cannot_carry_never_reach_a_tool(any_guest):
    """BR-09, rule 8.5."""
    code = """
    const said = [];
    const loop = {}; loop.o = loop;
    for (const go of [() => count({n: 10n}), () => echo({v: loop}),
                      () => echo({v: {toJSON() { throw new Error('no') }}})]) {
      try { await go(); said.push('ran') } catch (x) { said.push(x.message) }
    }
    return said.concat(await echo({v: 1}));
    """
    async with cells(any_guest) as open_:
        *said, good = await open_.value(code, "count", "echo")
        assert good == {"v": 1}
        assert all(text != "ran" and text for text in said), said
        assert open_.world.ran == ["echo"]


async def test_a_result_that_nobody_returned_is_on_record(tmp_path):
    """BR-10, rule 8.3."""
    async with agent(tmp_path, enabled=True) as made:
        await made.turn(cell('await echo({v: "KEEP"});'), "done")
        (outer,) = await made.reloaded_tree()
    assert '"value":null' in made.results()[0]
    assert '"callCount":1' in made.results()[0]
    (nested,) = outer.children
    assert nested.to_dict()["parentToolCallId"] == "c1"
    assert "KEEP" in str(nested.to_dict())


async def test_an_mcp_result_is_what_its_declaration_says(guest):
    """BR-11, rule 5.1."""
    code = (
        "const r = await MCP.fx.fail({});"
        "return [Array.isArray(r.content), r.content[0].type, r.structuredContent === undefined]"
    )
    async with cells(guest, mcp={"fx": fixture_server()}) as open_:
        assert await open_.value(code) == [True, "text", True]
        declared = await open_.value('return await API.read("mcp/fx.d.ts")')
        assert "Promise<McpToolResult>" in declared
        index = await open_.value('return await API.read("mcp/index.d.ts")')
        for part in ("content?:", "structuredContent?:", "isError?:"):
            assert part in declared + index


async def test_controls_do_not_exist_inside_a_cell_and_the_index_tells_the_truth(catalog_guest):
    """BR-16, rule 2.7."""
    async with cells(catalog_guest) as open_:
        code = (
            "return [typeof wait, typeof tool_search, typeof tool_call,"
            " typeof tool_search_code, typeof exec]"
        )
        assert await open_.value(code) == ["undefined"] * 5
        description = open_.cm.definitions()[0]["function"]["description"]
        index = description.rsplit("\n\n", 1)[1]
        names = [line.split()[1] for line in index.splitlines()[1:] if "->" in line]
        assert set(names) == {"echo", "add", "slow", "boom", "count", "big", "write_note"}
        kinds = await open_.value(f"return [{', '.join(f'typeof {n}' for n in names)}]")
    assert set(kinds) == {"function"}


async def test_a_server_without_structured_content_is_taken_as_it_is(guest):
    """BR-11: one more shape, from a server that names its answers."""
    server = named_server({"name": "list", "description": "List.", "inputSchema": obj()})
    async with cells(guest, mcp={"fx": server}, tools=[raw("own")]) as open_:
        outcome = await open_.exec("return (await MCP.fx.list({})).structuredContent.name")
        assert isinstance(outcome, Completed), outcome
        assert outcome.value == "list"
