"""The end-to-end plans of both documents, as an agent runs them: one story for each guest API."""

import json
import re

import anyio
import pytest

from tests.reports.rig import agent, cell, cells, fixture_server, named_server, raw
from toolcell import Completed, Failed, Host, Waiting, define_tool_plugin, tool
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.protocol.events import CallStarted
from toolcell.providers.scripted import tool_call
from toolcell.sources.client import ClientDefinition, ClientSource
from toolcell.sources.plugins import PluginSource
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio
APIS = pytest.mark.parametrize("api", ["catalog", "tools"])
SERVER = named_server(
    {"name": "take_snapshot", "description": "Photograph the harbour."},
    {"name": "take-snapshot", "description": "Photograph the harbour twice."},
    {"name": "fetch", "description": "Fetch a freight paper."},
)


@tool(catalog_mode="direct-only")
async def message(text: str) -> str:
    """Deliver a message."""
    return text


@tool
async def ship_list() -> list[str]:
    """List the ships in the harbour."""
    return ["Ada", "Berk"]


PLUGIN = define_tool_plugin(id="ship", name="Ship", description="Ships.", tools=[ship_list])


class Port:
    async def call(self, name, arguments, _context):
        return ToolResult(details={"client": name, "got": dict(arguments)})


def client():
    definition = ClientDefinition(name="select_file", description="Select a file on the desk.")
    return ClientSource("app", [definition], port=Port())


def all_kinds(path, api, **more):
    """An agent with core, plugin, MCP and client tools, and one direct-only tool."""
    core = [raw("ledger", description="Read the ledger.", result={"total": 7})]
    return agent(
        path,
        tools=[message, *core],
        sources=(PluginSource(PLUGIN),),
        mcp={"dock": SERVER},
        enabled=True,
        guestApi=api,
        **more,
    )


def values(made):
    """The `value` texts of the results, telemetry left out."""
    return [text.partition('"telemetry"')[0] for text in made.results()]


@APIS
async def test_turning_it_on_changes_only_what_the_model_sees(tmp_path, api):
    """rule 2.1, rule 2.2: steps 1 to 6 of the plans."""
    core = [raw("ledger"), raw("stamp")]
    for enabled, shown in ((False, ["ledger", "message", "stamp"]), (True, None)):
        folder = tmp_path / str(enabled)
        folder.mkdir()
        async with agent(folder, tools=[message, *core], enabled=enabled, guestApi=api) as made:
            await made.turn("nothing", sources=(client(),))
            names = made.shown()
        expected = sorted([*shown, "select_file"]) if shown else ["exec", "wait", "message"]
        assert (sorted(names) if shown else names) == expected


async def test_a_cell_calls_each_kind_of_tool_without_knowing_ids(tmp_path):
    """rule 4.7, rule 4.8: steps 7 and 8 with the catalog API."""
    code = """
    const said = [await ledger({}), await ship_list({}), await select_file({a: 1})];
    for (const want of ["read the ledger", "list the ships", "select a file"]) {
      const [handle] = await catalog.search(want);
      const schemas = await handle.describe();
      said.push([handle.callableName, typeof schemas.parameters, typeof await handle({})]);
    }
    return [said, catalog.all().map((h) => h.callableName), JSON.stringify(catalog.all())];
    """
    async with all_kinds(tmp_path, "catalog") as made:
        await made.turn(cell(code), "done", sources=(client(),))
        (said,) = made.results()
    assert '{"total":7},["Ada","Berk"],{"client":"select_file","got":{"a":1}}' in said
    for name in ("ledger", "ship_list", "select_file"):
        assert f'["{name}","object","object"]' in said
    assert '["ledger","ship_list","select_file"]' in said
    assert "openclaw:" not in said
    assert "client:app" not in said
    assert '"message"' not in said.partition("telemetry")[0]


async def test_a_cell_calls_each_kind_of_tool_by_exact_id(tmp_path):
    """rule 4.1, rule 4.8: steps 7, 8 and 10 with the tools API; MCP entries are in none of it."""
    code = """
    const said = [];
    for (const entry of ALL_TOOLS) {
      const described = await tools.describe(entry.id);
      const full = await tools.call(entry.id, {});
      said.push([entry.id, entry.source, typeof described.parameters,
                 await tools.callValue(entry.id, {}), full.tool.id === entry.id]);
    }
    const snapshot = await MCP.dock.fetch({page: 1});
    const missing = [];
    for (const go of [() => tools.describe("mcp:dock:fetch"),
                      () => tools.callValue("mcp:dock:fetch", {})]) {
      try { await go(); } catch (x) { missing.push(x.code) }
    }
    const found = (await tools.search("fetch freight paper")).some((t) => t.source === "mcp");
    return [said, snapshot.structuredContent, missing, typeof tools.fetch, found];
    """
    async with all_kinds(tmp_path, "tools") as made:
        await made.turn(cell(code), "done", sources=(client(),))
        (said,) = made.results()
    for piece in (
        '["openclaw:core:ledger","openclaw","object",{"total":7},true]',
        '["openclaw:ship:ship_list","openclaw","object",["Ada","Berk"],true]',
        '["client:app:select_file","client","object",{"client":"select_file","got":{}},true]',
        '{"name":"fetch","got":{"page":1}},["unknown_tool","unknown_tool"],"undefined",false]',
    ):
        assert piece in said
    assert "core:message" not in said


@APIS
async def test_declarations_are_read_without_a_call(tmp_path, api):
    """rule 5.2: step 9; nothing is counted and no call is made."""
    events = []

    class Kept:
        def emit(self, event):
            events.append(event)

    code = (
        'const files = (await API.list("mcp")).map((f) => f.path);'
        'return [files, await API.read("mcp/dock.d.ts")]'
    )
    async with all_kinds(tmp_path, api, host=Host(sink=Kept())) as made:
        await made.turn(cell(code), "done")
        (said,) = made.results()
    assert '["mcp/index.d.ts","mcp/dock.d.ts"]' in said
    assert "function fetch(" in said
    assert "Photograph the harbour." in said
    assert '"searchCount":0,"describeCount":0,"callCount":0' in said
    assert [e.tool_name for e in events if isinstance(e, CallStarted)] == ["exec"]


@APIS
async def test_the_header_of_a_server_stands_in_for_a_schema(tmp_path, api):
    """rule 5.1, rule 5.3: `$api` gives the declaration, and the schema of one tool when asked."""
    code = """
    const all = await MCP.dock.$api();
    const one = await MCP.dock.$api("fetch", {schema: true});
    return [all.header, one.header, one.schemas];
    """
    async with all_kinds(tmp_path, api) as made:
        await made.turn(cell(code), "done")
        (said,) = made.results()
    assert "declare namespace MCP.dock" in said
    assert '{"fetch":{"type":"object"}}' in said


async def test_handles_and_the_namespace_agree_and_all_stays_native(tmp_path):
    """rule 4.8, rule 5.3, rule 4.9: step 10."""
    code = """
    const before = catalog.all().length;
    const hits = await catalog.search("photograph harbour");
    const said = [];
    for (const h of hits) {
      const schemas = await h.describe();
      said.push([h.callableName, h.source, h.input, h.output, typeof schemas.parameters,
                 h.source === "mcp" && (await h({x: 1})).structuredContent.name]);
    }
    const direct = [];
    for (const name of Object.keys(MCP.dock)) {
      if (typeof MCP.dock[name] === "function" && name !== "$api") {
        direct.push([`MCP.dock.${name}`, (await MCP.dock[name]({})).structuredContent.name]);
      }
    }
    return {said, direct, same: before === catalog.all().length,
            native: catalog.all().every((h) => h.source !== "mcp")};
    """
    async with all_kinds(tmp_path, "catalog") as made:
        await made.turn(cell(code), "done")
        text = made.results()[0]
    head, _, wrapped = text.partition("\n")
    assert '"status":"completed"' in head
    body = json.loads(re.search(r"\{.*\}", wrapped, re.DOTALL).group(0))["value"]
    direct = dict(body["direct"])
    mcp = [each for each in body["said"] if each[1] == "mcp"]
    assert {each[-1] for each in mcp} == {"take_snapshot", "take-snapshot"}
    assert all(direct[path] == name for path, *_, name in mcp)
    assert all(each[2] == "unknown" and each[3] is None for each in mcp)
    assert body["same"]
    assert body["native"]


def resume(request):
    found = re.search(r'"runId":"([^"]+)"', request.messages[-1].text)
    return tool_call("wait", {"runId": found.group(1)}, id="w1")


@APIS
async def test_a_call_that_outlives_exec_is_delivered_by_wait_and_nothing_is_replayed(
    tmp_path, api
):
    """rule 3.5, rule 3.6, rule 8.3: steps 12 to 14 and 16."""
    call = "" if api == "catalog" else "tools."
    code = (
        f"await {call}count({{}}); const r = await {call}slow({{ms: 700, tag: 'late'}});"
        " text('after ' + r.tag); return 'end'"
    )
    async with agent(tmp_path, enabled=True, guestApi=api, timeoutMs=300) as made:
        steps = [cell(code), resume, resume, resume, "all done"]
        steps[2:4] = [
            lambda r: resume(r) if '"waiting"' in r.messages[-1].text else "all done",
        ] * 2
        result = await made.turn(*steps)
        tree = await made.reloaded_tree()
        texts = made.results()
        assert made.world.ran == ["count", "slow"]
    assert '"status":"waiting"' in texts[0]
    assert '"reason":"pending_tools"' in texts[0]
    assert '"value":"end"' in texts[-1]
    assert "after late" in texts[-1]
    assert result.text == "all done"
    outer = tree[0].to_dict()
    assert [each["toolName"] for each in outer["children"]] == ["count", "slow"]
    assert {each["parentToolCallId"] for each in outer["children"]} == {"c1"}
    assert {node.to_dict()["toolName"] for node in tree[1:]} == {"wait"}


@APIS
async def test_time_limits_aborts_and_expiry_leave_no_state(tmp_path, api):
    """rule 3.8, rule 3.9, rule 9.4: step 15."""
    options = {"enabled": True, "guestApi": api, "timeoutMs": 300, "snapshotTtlSeconds": 1}
    async with agent(tmp_path, **options) as made:
        runtime = made.runtime
        run = runtime.run(runtime.scope())
        slow = "slow" if api == "catalog" else "tools.slow"
        late = await run.exec({"code": "for (;;);"})
        assert late.code == "timeout"
        parked = await run.exec({"code": "await yield_control(); return 1"})
        waiting = await run.exec({"code": f"await {slow}({{ms: 60000}})"})
        assert isinstance(waiting, Waiting)
        await run.abort("stopped")
        for each in (parked, waiting):
            gone = await run.wait({"runId": each.cell_id})
            assert gone.code == "invalid_input"
        idle = await run.exec({"code": "await yield_control(); return 1"})
        with anyio.fail_after(4):
            while runtime.statistics()["continuations"]["parked"]:  # noqa: ASYNC110 - a count
                await anyio.sleep(0.05)
        assert (await run.wait({"runId": idle.cell_id})).code == "invalid_input"
        counts = runtime.statistics()
        assert counts["quickjs"]["parked"] == counts["quickjs"]["live"] == 0


async def test_a_cell_that_is_aborted_while_it_runs_says_so(guest):
    """rule 3.9: `aborted`; with the tools API the code is left out."""
    async with cells(guest, timeoutMs=5000) as open_:
        got = []

        async def go():
            got.append(await open_.exec("await slow({ms: 30000})", "slow"))

        async with anyio.create_task_group() as group:
            group.start_soon(go)
            with anyio.fail_after(5):
                while "slow" not in open_.world.ran:  # noqa: ASYNC110 - the tool's own record
                    await anyio.sleep(0.01)
            await open_.cm._active().abort(
                "the user stopped it"
            )  # the run of the library's session
    (outcome,) = got
    assert isinstance(outcome, Failed)
    assert "the user stopped it" in outcome.error
    assert outcome.code == ("aborted" if open_.api == "catalog" else None)
    assert ("code" in outcome.to_dict()) is (open_.api == "catalog")


@APIS
async def test_the_shell_is_hidden_from_the_model_and_callable_where_policy_allows(tmp_path, api):
    """rule 2.7."""
    call = {"catalog": "exec", "tools": "tools.call"}[api]
    arguments = "{command: 'echo hi'}"
    if api == "tools":
        arguments = f'"openclaw:core:exec", {arguments}'
    for deny, kind in (([], "function"), (["exec"], "undefined")):
        tools = {
            "deny": deny,
            "approvals": {"rules": [{"tool": "exec", "decision": "allow"}]},
            "codeMode": {"enabled": True, "executor": "quickjs", "guestApi": api},
        }
        parts = Parts(workspace=tmp_path, load_plugins=False)
        runtime = Runtime(parse_config({"tools": tools}), parts, Host())
        await runtime.start()
        try:
            run = runtime.run(runtime.scope())
            assert [t.name for t in run.surface().plan.visible] == ["exec", "wait"]
            where = "globalThis" if api == "catalog" else "tools"
            look = await run.exec({"code": f"return typeof {where}.exec"})
            assert look.value == kind
            outcome = await run.exec({"code": f"return JSON.stringify(await {call}({arguments}))"})
            assert isinstance(outcome, Failed if deny else Completed), outcome
            if not deny:
                assert "hi" in outcome.value
        finally:
            await runtime.aclose()


async def test_retired_arguments_and_typescript_fail_before_any_call(catalog_guest):
    """rule 3.1, Two guest APIs: plain JavaScript only with the catalog API."""
    async with cells(catalog_guest) as open_:
        for arguments in (
            {"code": "return await count({})", "language": "typescript"},
            {"code": "return await count({})", "language": "javascript"},
            {"code": "return await count({})", "typecheck": True},
            {"code": "const n: number = 1; return await count({})"},
            {"code": "interface A { a: string } return await count({})"},
        ):
            result = await open_.cm.call("exec", arguments)
            assert result.details["status"] == "failed", arguments
            assert result.details["code"] == "invalid_input"
            assert result.details["bridgeDispatchStarted"] is False
        assert open_.world.ran == []
        assert await open_.value("return (await count({})).n", "count") == 1


@pytest.mark.parametrize("name", ["import('fs')", "require('fs')"])
async def test_modules_are_refused(any_guest, name):
    """rule 3.2."""
    async with cells(any_guest) as open_:
        assert (await open_.failed(f"return {name}")).code == "invalid_input"


AMBIENT = (
    *("process", "require", "module", "fetch", "XMLHttpRequest", "WebSocket", "Deno", "Bun"),
    *("os", "std", "navigator", "WebAssembly", "Worker", "scriptArgs", "load", "print"),
)


async def test_the_guest_has_no_files_network_or_environment(any_guest):
    """rule 9.3: nothing ambient exists in QuickJS; in Node its absence is a convention."""
    kinds = ", ".join(f"typeof {name}" for name in AMBIENT)
    async with cells(any_guest) as open_:
        assert set(await open_.value(f"return [{kinds}]")) == {"undefined"}


async def test_snapshots_are_capped_when_a_cell_is_parked(guest):
    """rule 3.11, rule 9.4."""
    async with cells(guest, maxSnapshotBytes=1 << 20) as open_:
        code = "const a = new Uint8Array(8 << 20).fill(7); await yield_control(); return a[0]"
        outcome = await open_.failed(code)
        assert outcome.code == "snapshot_limit_exceeded"


async def test_output_is_capped_when_a_cell_is_parked_and_when_it_is_done(any_guest):
    """rule 3.11."""
    async with cells(any_guest, maxOutputBytes=1024) as open_:
        parked = await open_.exec("text('a'.repeat(5000)); await yield_control(); return 1")
        done = await open_.exec("return 'a'.repeat(5000)")
        if open_.api == "tools":
            assert parked.code == done.code == "output_limit_exceeded"
        else:
            assert isinstance(parked, Waiting)
            assert parked.omitted_bytes > 0
            assert done.value["truncated"] is True


async def test_failures_are_caught_or_not_and_effects_are_never_replayed(any_guest):
    """rule 3.10."""
    async with cells(any_guest) as open_:
        caught = await open_.value(
            "await count({}); try { await boom({why: 'x'}) } catch { return (await count({})).n }",
            "count",
            "boom",
        )
        assert caught == 2
        uncaught = await open_.failed("await count({}); await boom({why: 'y'})", "count", "boom")
        assert uncaught.code == "internal_error"
        assert await open_.value("return (await count({})).n", "count") == 4
        assert open_.world.count("count") == 4


async def test_what_a_server_says_in_a_failure_is_wrapped_for_the_model(tmp_path):
    """rule 4.9: control tokens go, policy texts stay as they are."""
    async with agent(tmp_path, mcp={"fx": fixture_server()}, enabled=True) as made:
        await made.turn(cell("return await MCP.fx.refuse({})"), "done")
        (text,) = made.results()
    assert '"status":"failed"' in text
    assert "not allowed" in text
    assert "\x1b" not in text
    assert "ntrusted" in text or "UNTRUSTED" in text


@APIS
async def test_tool_search_controls_are_nowhere(tmp_path, api):
    """rule 2.4, rule 4.4: neither shown nor in the catalog, with both turned on."""
    config = {"tools": {"toolSearch": True}}
    listing = {
        "catalog": "catalog.all().map((h) => h.toolName)",
        "tools": "ALL_TOOLS.map((t) => t.name)",
    }
    look = (
        f"return [{listing[api]}, typeof tool_search, typeof tool_call, typeof tool_describe,"
        " typeof tool_search_code]"
    )
    async with agent(tmp_path, config=config, enabled=True, guestApi=api) as made:
        await made.turn(cell(look), "done")
        assert made.shown() == ["exec", "wait"]
        said = values(made)[0]
    assert "tool_" not in said
    assert said.count('"undefined"') == 4


@APIS
async def test_a_guest_cannot_call_its_own_controls(tmp_path, api):
    """rule 2.7."""
    look = {
        "catalog": "return [typeof exec, typeof wait]",
        "tools": "const said = []; for (const id of ['exec', 'wait', 'openclaw:core:exec',"
        " 'openclaw:core:wait']) { try { await tools.call(id, {code: 'return 1'});"
        " said.push('ran') } catch (x) { said.push(x.code) } } return said",
    }[api]
    async with agent(tmp_path, enabled=True, guestApi=api) as made:
        await made.turn(cell(look), "done")
        said = values(made)[0]
    assert "ran" not in said
    assert said.count("undefined" if api == "catalog" else "unknown_tool") == (
        2 if api == "catalog" else 4
    )
