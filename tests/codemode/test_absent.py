"""What a program is told that used something a cell does not have; both APIs, both executors."""

import pytest

from tests.codemode.support import EXECUTORS, bench_on, mcp_tool, quickjs, remote_echo, run
from toolcell.codemode.absent_names import ABSENT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=EXECUTORS)
async def host(request):
    async with bench_on(request.param) as made:
        yield made


async def hinted(runtime, code):
    """Run a program that fails; return the hint after its error, or nothing."""
    outcome = await run(runtime, code)
    assert outcome.status == "failed", outcome
    return outcome.error.partition("\nHint: ")[2]


def runtime_of(host, api, *more, **options):
    return host.runtime(*more, guest_api=api, executor=host.executor.name, **options)


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_a_program_that_wants_child_agents_learns_which_setting_brings_them(host, api):
    """BEHAVIOURS 52 and 368: before the error there is no word about them, anywhere."""
    runtime = runtime_of(host, api)
    kinds = await run(runtime, "return [typeof agents, typeof phase, typeof log]")
    assert kinds.value == ["undefined"] * 3
    described = runtime.controls()
    shown = described.exec.description + described.wait.description
    assert "swarm" not in shown.casefold()
    assert "agents" not in shown
    for code in ("return await agents.run('x')", "phase('one')", "log('x')"):
        hint = await hinted(runtime, code)
        assert "tools.swarm.enabled" in hint
        assert "sessions_spawn" in hint
    assert "text(value)" in await hinted(runtime, "log('x')")


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_names_of_node_the_browser_and_python_are_answered(host, api):
    runtime = runtime_of(host, api)
    search = "catalog.search(...)" if api == "catalog" else "tools.search(...)"
    said = {
        "await fetch('http://x')": "no network",
        "new XMLHttpRequest()": search,
        "await axios.get('x')": search,
        "fs.readFileSync('x')": "no files",
        "process.env.X": "no Node process",
        "Buffer.from('x')": "Uint8Array",
        "setInterval(() => 1, 5)": "setTimeout(done, milliseconds)",
        "await sleep(5)": "setTimeout(done, milliseconds)",
        "window.x": "globalThis",
        "document.title": "no browser",
        "new URL('http://x')": "encodeURIComponent",
        "print(1)": "text(value)",
        "[1, None]": "JavaScript, not Python",
        "exec('ls')": "no shell tool is enabled",
        "await wait({})": "yield_control",
        "openclaw.tools": search,
        "codemode.x": search,
        "await callTool('x', {})": "await <name>" if api == "catalog" else "await tools.<name>",
        "mcp.fx": "No MCP server is connected",
        "await MCP.fx.list({})": "mcp.servers",
        "await something_from_before": "Variables of an earlier exec are gone",
    }
    for code, words in said.items():
        hint = await hinted(runtime, code)
        assert words in hint, (code, hint)
        assert hint.count("\n") == 0


async def test_every_name_with_a_text_is_really_absent_or_a_tool_of_the_model(host):
    """A hint for something that exists would never be seen, and would be wrong."""
    for api in ("catalog", "tools"):
        names = list(ABSENT)
        outcome = await run(
            runtime_of(host, api),
            f"return {names!r}.filter((name) => globalThis[name] !== undefined)",
        )
        own = {"quickjs": {"SharedArrayBuffer"}, "node": {"Intl"}}
        assert set(outcome.value) - {"echo"} == own[host.executor.name]  # a tool of the fixture


async def test_a_misspelt_tool_is_answered_with_near_ones(host):
    """Rule 4.4."""
    fx = mcp_tool("fx", "list_items", remote_echo)
    catalog = runtime_of(host, "catalog", fx)
    assert await hinted(catalog, "await ecko({v: 1})") == "Did you mean: echo?"
    assert "MCP.fx.listItems" in await hinted(catalog, "await list_items({})")
    tools = runtime_of(host, "tools", fx)
    assert "tools.echo" in await hinted(tools, "await echo({v: 1})")
    assert "tools.echo" in await hinted(tools, "const v = 1; await tools.ecko(v)")
    assert "tools.write_note" in await hinted(tools, "await tools.writeNote({path: 'a'})")
    for runtime in (catalog, tools):
        hint = await hinted(runtime, "await MCP.fx.list({})")
        assert "Did you mean: MCP.fx.listItems?" in hint
        assert "MCP.fx.$api()" in hint
        assert "connected: fx" in await hinted(runtime, "await MCP.nope.list({})")


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_hidden_tools_are_named_in_no_hint(host, api):
    """Rules 2.5 and 4.4: the hint is one more place where a guess must not be confirmed."""
    hidden = {"echo", "list_items", "write_note"}
    runtime = runtime_of(
        host,
        api,
        mcp_tool("fx", "list_items", remote_echo),
        mcp_tool("fx", "other", remote_echo),
        mcp_tool("secret", "list_items", remote_echo),
        visible=lambda entry: entry.name not in hidden,
    )
    prefix = "" if api == "catalog" else "tools."
    guesses = (
        "await ecko({v: 1})", f"await {prefix}echo({{v: 1}})", f"await {prefix}writeNote({{}})",
        "await MCP.fx.list({})", "await MCP.fx.listItems({})", "await MCP.secret.list({})",
    )  # fmt: skip
    for code in guesses:
        hint = await hinted(runtime, code)
        for name in ("echo", "listItems", "list_items", "write_note", "secret"):
            assert name not in hint, (code, hint)
    assert await hinted(runtime, "await MCP.nope.x({})") == await hinted(
        runtime, "await MCP.secret.x({})"
    )


async def test_a_tool_that_was_hidden_meanwhile_is_not_suggested(host):
    """Rule 4.5: visibility is asked when the hint is made."""
    gone = set()
    runtime = runtime_of(host, "catalog", visible=lambda entry: entry.name not in gone)
    assert "echo" in await hinted(runtime, "await ecko({v: 1})")
    gone.add("echo")
    assert "echo" not in await hinted(runtime, "await ecko({v: 1})")


async def test_methods_that_globals_lack_and_promises_that_were_not_awaited(host):
    catalog, tools = runtime_of(host, "catalog"), runtime_of(host, "tools")
    assert "search(query, {limit})" in await hinted(catalog, "await catalog.find('x')")
    assert "load(id)" in await hinted(catalog, "await results.get('x')")
    for runtime in (catalog, tools):
        assert "read(path)" in await hinted(runtime, "const p = 'x'; await API.get(p)")
        assert "JSON.parse" in await hinted(runtime, "json.parse('1')")
    words = "(await catalog.search(...)).map(...)"
    assert words in await hinted(catalog, "await catalog.search('x').map((h) => h.toolName)")
    words = "(await tools.search(...)).filter(...)"
    assert words in await hinted(tools, "await tools.search('x').filter((h) => h.id)")
    for name in ("catalog", "results"):
        assert 'guestApi set to "tools"' in await hinted(tools, f"await {name}.all()")


async def test_other_errors_and_the_programs_own_get_no_hint(host):
    runtime = runtime_of(host, "catalog")
    for code in (
        "throw new Error('agents is not defined')",
        "null.x",
        "const a = {}; a.b()",
        "await boom({why: 'fetch is not defined'})",
        "throw {name: 'ReferenceError', message: 'agents is not defined'}",
    ):
        assert await hinted(runtime, code) == ""
    caught = await run(runtime, "try { agents.run('x') } catch (e) { return e.message }")
    assert caught.value == "agents is not defined"


async def test_the_hint_stands_outside_the_block_of_outside_text_and_within_the_cap(host):
    """Rule 4.9: policy texts are not wrapped. Rule 3.11: the cap is over error and output."""
    fx = mcp_tool("fx", "list_items", remote_echo)
    runtime = runtime_of(host, "catalog", fx, max_output_bytes=1024)
    outcome = await run(runtime, "await MCP.fx.listItems({text: 'x'}); agents.run('x')")
    body, _, hint = outcome.error.partition("\nHint: ")
    assert body.rstrip().endswith("<<<END_EXTERNAL_UNTRUSTED_CONTENT>>>")
    assert "tools.swarm.enabled" in hint
    long = await run(runtime, "text('y'.repeat(5000)); agents.run('x')")
    assert len(long.error.encode()) <= 1024


async def test_a_cell_that_fails_after_its_run_ended_still_fails_cleanly(host):
    """Rule 3.9: the catalog is closed by then and answers nothing."""
    runtime = runtime_of(host, "catalog")
    held = await run(runtime, "await yield_control(); ecko({v: 1})")
    assert held.status == "waiting"
    runtime._catalog.close()
    outcome = await runtime.wait({"runId": held.cell_id}, call_id="w")
    assert outcome.status == "failed"
    assert outcome.error.startswith("ReferenceError: ecko is not defined")
    assert "Hint" not in outcome.error


async def test_an_exception_of_the_engine_that_is_no_error_is_shown():
    async with quickjs() as host:
        outcome = await run(runtime_of(host, "catalog"), "return atob('!')")
        assert outcome.error.startswith("Uncaught InvalidCharacterError: ")
