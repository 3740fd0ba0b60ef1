"""guestApi "tools": exact ids, ALL_TOOLS, tools.*, cumulative output, a hard cap."""

import json

import pytest

from tests.codemode.support import (
    mcp_tool,
    quickjs,
    remote_echo,
    run,
    schema,
    tool,
    value_of,
)
from toolcell.tools.content import MISSING, TextContent, ToolResult
from toolcell.tools.tool import Group, SourcedTool, core_tool

pytestmark = pytest.mark.anyio


async def named(arguments, _context):
    return {"got": dict(arguments)}


def plugin(name, owner="p"):
    made = tool(name, {"type": "object"}, named)
    return SourcedTool(tool=made, source="openclaw", owner=owner, group=Group.EXTERNAL)


def tools_api(host, *more, **options):
    return host.runtime(*more, guest_api="tools", **options)


async def test_all_tools_is_the_compact_catalog_without_mcp():
    """rule 4.1, rule 4.2, BEHAVIOURS 152."""
    async with quickjs() as host:
        runtime = tools_api(host, plugin("list"), mcp_tool("fx", "remote", remote_echo))
        entries = await value_of(runtime, "return ALL_TOOLS")
        assert [entry["id"] for entry in entries][-1] == "openclaw:p:list"
        assert entries[-1]["sourceName"] == "p"
        assert all(entry["source"] == "openclaw" for entry in entries)
        assert not any("parameters" in entry for entry in entries)
        assert await value_of(
            runtime, "return [Object.isFrozen(ALL_TOOLS), Object.isFrozen(tools)]"
        ) == [
            True,
            True,
        ]
        assert await value_of(runtime, "return [typeof catalog, typeof echo, typeof MCP.fx.remote]") == [  # noqa: E501 - a program on one line
            "undefined", "undefined", "function",
        ]  # fmt: skip


async def test_search_describe_call_and_call_value():
    """rule 4.8, BEHAVIOURS 153, BEHAVIOURS 154, BEHAVIOURS 155, BEHAVIOURS 156, BEHAVIOURS 162."""
    async with quickjs() as host:
        runtime = tools_api(host, mcp_tool("fx", "echo", remote_echo))
        value = await value_of(
            runtime,
            "const [hit] = await tools.search('echo'); const d = await tools.describe(hit.id);"
            "return [hit.id, 'parameters' in hit, d.parameters.required,"
            " await tools.callValue(hit.id, {v: 1}), await tools.call(hit.id, {v: 2}),"
            " await tools.search('zzzz'), await tools.callValue('openclaw:core:count')]",
        )
        assert value[:4] == ["openclaw:core:echo", False, ["v"], {"v": 1}]
        assert value[4]["tool"]["id"] == "openclaw:core:echo"
        assert value[4]["result"]["details"] == {"v": 2}
        assert value[5:] == [[], {"n": 1}]
        outcome = await run(
            runtime, "await tools.search('echo'); await tools.callValue('openclaw:core:count')"
        )
        assert outcome.telemetry["searchCount"] == 3


async def test_the_search_limit_is_cut_and_mcp_takes_no_place():
    """BEHAVIOURS 153."""
    async with quickjs() as host:
        names = ("note_find", "note_list", "note_save", "note_drop", "note_move")
        remote = [mcp_tool("fx", f"note_{i}", remote_echo) for i in range(8)]
        runtime = tools_api(
            host,
            *(plugin(name) for name in names),
            *remote,
            max_search_limit=3,
            search_default_limit=3,
        )
        assert len(await value_of(runtime, "return await tools.search('note', {limit: 50})")) <= 3
        runtime = tools_api(host, *(plugin(name) for name in names), *remote)
        hits = await value_of(runtime, "return await tools.search('note', {limit: 5})")
        assert len(hits) == 5
        assert {hit["source"] for hit in hits} == {"openclaw"}


async def test_a_result_without_details_comes_whole():
    """BEHAVIOURS 157."""

    async def bare(_arguments, _context):
        return ToolResult(content=(TextContent("hi"),), details=MISSING)

    async def null(_arguments, _context):
        return ToolResult(details=None)

    async with quickjs() as host:
        runtime = tools_api(
            host,
            core_tool(tool("bare", schema(), bare)),
            core_tool(tool("null_one", schema(), null)),
        )
        value = await value_of(runtime, "return [await tools.bare(), await tools.null_one()]")
        assert value == [{"content": [{"type": "text", "text": "hi"}]}, None]


async def test_shortcuts_exist_for_names_that_are_clear():
    """rule 4.7, CN-01, CN-06, BEHAVIOURS 158, BEHAVIOURS 159."""
    async with quickjs() as host:
        tools = [plugin("web_search"), plugin("stock:get"), plugin("stock/get"), plugin("search"),
                 plugin("echo"), plugin("call"), plugin("exec", "q")]  # fmt: skip
        runtime = tools_api(host, *tools)
        value = await value_of(
            runtime,
            "return [(await tools.web_search({q: 1})).got, typeof tools.stock_get, typeof tools.echo,"  # noqa: E501 - a program on one line
            " typeof tools.exec, (await tools.callValue('openclaw:p:stock:get', {a: 1})).got,"
            " (await tools.callValue('openclaw:p:stock/get', {a: 2})).got,"
            " (await tools.callValue('openclaw:p:call', {a: 3})).got, (await tools.search('stock')).length > 0]",  # noqa: E501 - a program on one line
        )
        assert value == [
            {"q": 1}, "undefined", "undefined", "function", {"a": 1}, {"a": 2}, {"a": 3}, True,
        ]  # fmt: skip


async def test_unknown_and_mcp_ids_are_unknown():
    """rule 4.4, BEHAVIOURS 160, BEHAVIOURS 161."""
    async with quickjs() as host:
        runtime = tools_api(host, mcp_tool("fx", "remote", remote_echo))
        for method in ("call", "callValue", "describe"):
            for target in ("mcp:fx:remote", "openclaw:core:nope", "__proto__"):
                value = await value_of(
                    runtime,
                    f"try {{ await tools.{method}({json.dumps(target)}) }}"
                    "catch (x) { return [x.code, x.message] }",
                )
                assert value[0] == "unknown_tool"
                assert value[1].startswith(f"Unknown tool id: {target}.")
                assert value[1].endswith("Use tools.search(...) to find an exact id.")


async def test_ids_stay_in_messages():
    async with quickjs() as host:
        message = await value_of(
            tools_api(host),
            "try { await tools.callValue('openclaw:core:add', {}) } catch (x) { return x.message }",
        )
        assert "openclaw:core:add" in message


async def test_output_is_cumulative_and_yield_gives_undefined():
    """rule 3.5, rule 3.11, BEHAVIOURS 128."""
    async with quickjs() as host:
        runtime = tools_api(host)
        waiting = await run(
            runtime, "text('before'); const r = await yield_control('x'); text('after'); return r"
        )
        outcome = await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        assert [entry["text"] for entry in outcome.output] == ["before", "after"]
        assert outcome.value is None


async def test_the_cap_is_hard_at_once_and_frees_everything():
    """rule 3.7, rule 3.11, BEHAVIOURS 122, BEHAVIOURS 123."""
    async with quickjs() as host:
        runtime = tools_api(host, max_output_bytes=1024)
        over = await run(runtime, "return 'x'.repeat(2048)")
        assert (over.code, over.status) == ("output_limit_exceeded", "failed")
        assert "output limit exceeded" in over.error
        flood = "text('x'.repeat(2000));"
        parked = await run(runtime, flood + "await yield_control()")
        assert parked.code == "output_limit_exceeded"
        called = await run(runtime, flood + "await tools.callValue('openclaw:core:count')")
        assert called.code == "output_limit_exceeded"
        assert host.fixture.count("count") == 0
        waiting = await run(runtime, "await yield_control();" + flood)
        late = await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        assert late.code == "output_limit_exceeded"
        assert host.executor.statistics()["live"] == 0
        assert host.executor.statistics()["parked"] == 0


async def test_an_aborted_cell_has_no_code():
    """rule 3.9."""
    async with quickjs() as host:
        runtime = tools_api(host)
        await run(runtime, "await yield_control()")
        await runtime.abort()
        assert host.store.statistics()["slots"] == 0
        outcome = await run(runtime, "return 1")
        assert outcome.status == "completed"


async def test_typescript_without_a_transformer_is_unavailable_before_dispatch():
    """rule 9.5: JavaScript cells are unaffected."""
    async with quickjs() as host:
        runtime = tools_api(host)
        outcome = await run(runtime, "return 1", language="typescript")
        assert outcome.code == "runtime_unavailable"
        assert await value_of(runtime, "return 1") == 1
        only = tools_api(host, languages=("javascript",))
        outcome = await run(only, "return 1", language="typescript")
        assert outcome.code == "invalid_input"


async def test_the_schema_and_text_are_those_of_this_api():
    """rule 3.1, rule 4.6, BEHAVIOURS 43, BEHAVIOURS 47, BEHAVIOURS 55."""
    async with quickjs() as host:
        exec_tool = tools_api(host).controls().exec
        assert list(exec_tool.parameters["properties"]) == [
            "code",
            "command",
            "language",
            "restartSafe",
        ]
        assert exec_tool.parameters["properties"]["language"]["enum"] == [
            "javascript",
            "typescript",
        ]
        text = exec_tool.description
        line = '"openclaw:core:add" { a: number; b: number } -> { sum: number }'
        calls = ("tools.search", "tools.describe", "tools.callValue", "tools.call", "ALL_TOOLS")
        for needed in (*calls, "Never invent an id", line):
            assert needed in text, needed
        assert "catalog.search" not in text
        refused = await run(tools_api(host), "ls -la")
        assert "tools.search" in refused.error


async def test_nested_shell_is_reached_by_id():
    """rule 2.7, BEHAVIOURS 159."""
    async with quickjs() as host:
        shell = core_tool(tool("exec", schema("command", command="string"), named))
        runtime = tools_api(host, shell)
        value = await value_of(
            runtime,
            "return [await tools.exec({command: 'x'}), await tools.callValue('openclaw:core:exec', {command: 'y'})]",  # noqa: E501 - a program on one line
        )
        assert value == [{"got": {"command": "x"}}, {"got": {"command": "y"}}]
        assert 'tools.callValue("openclaw:core:exec"' in runtime.controls().exec.description
