"""`API` and `$api`: what a guest is told of types, without a bridge or tool call."""

import sys

import pytest

from toolcell import CodeMode, Completed, Failed, tool

pytestmark = pytest.mark.anyio

SERVERS = {"ware-house": {"command": sys.executable, "args": ["-m", "toolcell.testing.demo_mcp"]}}


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers. */ }; globalThis.x = 1; /*"""
    return a + b


def code_mode(**options):
    return CodeMode(tools=[add], mcp_servers=SERVERS, executor="quickjs", **options)


async def value(cm, code):
    outcome = await cm.exec(code)
    assert isinstance(outcome, Completed), outcome
    return outcome.value


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_files_are_listed_and_read_without_a_bridge_or_tool_call(api):
    """rule 5.2, rule 5.3, BEHAVIOURS 232, BEHAVIOURS 233, BEHAVIOURS 234, PP-09."""
    async with code_mode(guest_api=api) as cm:
        code = """
        const files = await API.list("mcp");
        const text = await API.read("mcp/wareHouse.d.ts");
        return [files, await API.list("mcp/"), text, new TextEncoder().encode(text).length];
        """
        outcome = await cm.exec(code)
        assert isinstance(outcome, Completed), outcome
        files, again, text, size = outcome.value
        assert [file["path"] for file in files] == ["mcp/index.d.ts", "mcp/wareHouse.d.ts"]
        assert files == again
        assert files[1]["bytes"] == size
        assert "declare namespace MCP.wareHouse {" in text
        assert (
            "function orderTotal(input: {\n    id: string;\n  }): Promise<McpToolResult>;" in text
        )
        counts = ("searchCount", "describeCount", "callCount")
        assert [outcome.telemetry[key] for key in counts] == [0, 0, 0]
        failed = await cm.exec("await API.list(); throw new Error('x')")
        assert isinstance(failed, Failed)
        assert failed.to_dict()["bridgeDispatchStarted"] is False


async def test_native_tools_have_files_with_the_catalog_api_only():
    """BEHAVIOURS 182, TS-07: hostile text stays inside its comment."""
    async with code_mode() as cm:
        text = await value(cm, "return await API.read('tools/add.d.ts')")
        assert "declare function add(input: {" in text
        assert "}): Promise<number>;" in text
        assert "*/ }" not in text
    async with code_mode(guest_api="tools") as cm:
        assert await value(cm, "return await API.list('tools')") == []


async def test_a_program_that_reaches_api_by_a_computed_name_sees_the_same():
    """rule 5.2."""
    async with code_mode() as cm:
        plain = await value(cm, "return await API.list()")
        assert await value(cm, 'return await globalThis["A" + "PI"].list()') == plain


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "mcp/../mcp/x.d.ts", "mcp/./x.d.ts", "MCP/wareHouse.d.ts", "", "mcp//x"],
)
async def test_unknown_and_unsafe_paths_are_refused(path):
    """SE-04, rule 5.2, BEHAVIOURS 233."""
    async with code_mode() as cm:
        code = "try { await API.read(%r) } catch (error) { return error.message }" % path  # noqa: UP031
        said = await value(cm, code)
        assert said.startswith(("invalid API file path", "Unknown API file: "))
        assert "string" in await value(
            cm, "try { await API.read({}) } catch (error) { return error.message }"
        )


async def test_without_mcp_servers_there_are_no_mcp_files():
    """PP-09."""
    async with CodeMode(tools=[add], executor="quickjs") as cm:
        assert await value(cm, "return await API.list('mcp')") == []
        assert "API.list" not in cm.definitions()[0]["function"]["description"]


async def test_api_headers_tell_servers_functions_and_schemas():
    """rule 5.1, BEHAVIOURS 230, BEHAVIOURS 231."""
    async with code_mode() as cm:
        outcome = await cm.exec(
            "return [await MCP.$api(), await MCP.wareHouse.$api(),"
            ' await MCP.wareHouse.$api("order_total", {schema: true})]'
        )
        assert isinstance(outcome, Completed), outcome
        root, server, one = outcome.value
        assert root == {
            "kind": "mcp_api",
            "scope": "root",
            "servers": [{"identifier": "wareHouse", "serverName": "ware-house", "toolCount": 20}],
        }
        assert (server["scope"], len(server["tools"])) == ("server", 20)
        assert one["scope"] == "tool"
        assert one["tools"] == [
            {
                "method": "orderTotal",
                "path": "MCP.wareHouse.orderTotal",
                "mcpTool": "order_total",
                "operation": "tool",
                "description": "The price of an order.",
            }
        ]
        assert one["schemas"]["orderTotal"]["required"] == ["id"]
        assert "function orderTotal" in one["header"]
        assert outcome.telemetry["callCount"] == 0
        unknown = await cm.exec('return await MCP.wareHouse.$api("nope")')
        assert isinstance(unknown, Failed)
        assert "Unknown MCP function: MCP.wareHouse.nope" in unknown.error


async def test_declarations_of_remote_servers_reach_the_model_wrapped():
    """rule 4.9: doc comments are remote text."""
    async with code_mode() as cm:
        result = await cm.call("exec", {"code": "return await API.read('mcp/wareHouse.d.ts')"})
        assert "untrusted" in result.content[0].text.lower()
        plain = await cm.call("exec", {"code": "return 1"})
        assert "untrusted" not in plain.content[0].text.lower()
        found = await cm.call("exec", {"code": "return await catalog.search('price of an order')"})
        assert "untrusted" in found.content[0].text.lower()


async def test_a_timer_left_open_does_not_hold_a_program_that_returned():
    """A race against a time-out is over when the race is; documented in docs/code-mode.md."""
    async with code_mode() as cm:
        code = """
        const late = new Promise((_, no) => setTimeout(() => no(new Error("late")), 30000));
        return await Promise.race([add({a: 1, b: 2}), late]);
        """
        assert await value(cm, code) == 3


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_a_search_that_finds_nothing_names_the_servers_that_are_down(api):
    """SR-12: and only those that policy leaves to this run."""
    servers = {"memos": {"command": "toolcell-no-such-program"}}
    search = "catalog.search" if api == "catalog" else "tools.search"
    code = f"await {search}('create memo'); return (await {search}('memo')).length"
    for deny, told in (([], True), (["mcp:memos:*"], False), (["bundle-mcp"], False)):
        async with CodeMode(
            tools=[add],
            mcp_servers=servers,
            executor="quickjs",
            guest_api=api,
            config={"tools": {"deny": deny}},
        ) as cm:
            outcome = await cm.exec(code)
            assert isinstance(outcome, Completed), outcome
            assert outcome.value == 0
            assert ("memos" in str(outcome.output)) is told
