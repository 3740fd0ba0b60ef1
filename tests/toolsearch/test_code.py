"""`tool_search_code`: a short body in a locked child."""

import json
import os
import re
import signal
import socket
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from tests.toolsearch.kit import Told, core, error_of, ground, mcp, plugin, schema, text_of
from toolcell import Host, ToolResult
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.base.deadline import Deadline
from toolcell.protocol.approvals import ApprovalAnswer
from toolcell.tools.content import ImageContent
from toolcell.toolsearch.child.launch import Launcher
from toolcell.toolsearch.child.process import Body

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the network lock is Linux's"),
]
SHORT = {"codeTimeoutMs": 1000}


@pytest.fixture(scope="module")
def told():
    return Told()


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def g(told):
    tools = [
        plugin(told, "fake_create_ticket", "Create a ticket", schema(title="string"), owner="fake"),
        core(told, "calendar_events", "List calendar events", schema(day="string")),
        mcp(told, "create_event", "Create a calendar event", schema(s="string"), server="calendar"),
    ]
    async with ground(tools, "code") as made:
        assert made.run.surface().search.mode == "code"
        yield made


@pytest.fixture(autouse=True)
def forget(told):
    told.calls.clear()


async def value_of(g, code):
    result = await g.code(code)
    assert not result.is_error, text_of(result)
    return result.details["value"]


async def test_one_control_and_its_contract_are_shown(g):
    """rule 10.2, BEHAVIOURS 297, 338."""
    assert g.shown == ["tool_search_code"]
    said = g.plan.definitions[0].description
    for name in ("openclaw.tools.search", "openclaw.tools.describe", "openclaw.tools.call"):
        assert name in said


async def test_search_describe_and_call_in_one_body(g, told):
    """rule 10.5: the example of the page, with the name of a tool of ours."""
    value = await value_of(
        g,
        """
        const hits = await openclaw.tools.search("create a ticket");
        const tool = await openclaw.tools.describe(hits[0].id);
        return await openclaw.tools.call(tool.id, {
          title: "crash on start",
        });
        """,
    )
    assert value["tool"]["id"] == "openclaw:fake:fake_create_ticket"
    assert value["result"]["details"] == {"title": "crash on start"}
    assert told.calls == [("fake_create_ticket", {"title": "crash on start"})]


async def test_the_other_examples_of_the_page(g, told):
    """rule 10.5: search with a limit; an MCP id is described, then called."""
    hits = await value_of(
        g,
        'const hits = await openclaw.tools.search("calendar events", { limit: 5 });return hits;',
    )
    assert hits[0]["id"] == "openclaw:core:calendar_events"
    assert hits[0]["input"] == "{ day?: string }"
    remote = next(hit for hit in hits if hit["source"] == "mcp")
    assert remote["input"] == "unknown"
    value = await value_of(
        g,
        """
        const calendarCreate = await openclaw.tools.describe("mcp:calendar:create_event");
        await openclaw.tools.call(calendarCreate.id, { s: "planning" });
        return calendarCreate.parameters;
        """,
    )
    assert value == schema(s="string")
    assert told.of("create_event") == [{"s": "planning"}]


async def test_the_result_has_value_log_and_telemetry(g):
    """BEHAVIOURS 337, rule 10.7: undefined becomes null."""
    result = await g.code('console.log("a", {b: 1}); console.warn("w"); console.error("e")')
    assert result.details["ok"] is True
    assert result.details["value"] is None
    assert result.details["logs"] == [
        {"level": "log", "text": 'a {"b":1}'},
        {"level": "warn", "text": "w"},
        {"level": "error", "text": "e"},
    ]
    telemetry = result.details["telemetry"]
    assert telemetry["catalogSize"] == 3
    assert telemetry["sources"] == {"openclaw": 2, "mcp": 1, "client": 0}
    assert telemetry["visibleTools"] == ["tool_search_code"]
    assert json.loads(text_of(result)) == result.details


async def test_a_call_that_nobody_awaits_never_runs(g, told):
    """BEHAVIOURS 339."""
    before = g.run.surface().search.telemetry()["callCount"]
    assert await value_of(g, 'openclaw.tools.call("fake_create_ticket", {}); return 1') == 1
    assert told.calls == []
    assert g.run.surface().search.telemetry()["callCount"] == before


async def test_a_call_that_was_started_is_over_before_the_body_returns(g, told):
    """BEHAVIOURS 339."""
    code = """
    openclaw.tools.call("fake_create_ticket", {title: "x"}).then(() => console.log("ran"));
    return 1
    """
    result = await g.code(code)
    assert result.details["logs"] == [{"level": "log", "text": "ran"}]
    assert len(told.calls) == 1


async def test_calls_run_side_by_side(g, told):
    """rule 10.5: Promise.all over lazy calls."""
    value = await value_of(
        g,
        """
        const titles = ["a", "b", "c"];
        const all = await Promise.all(
          titles.map((title) => openclaw.tools.call("fake_create_ticket", {title})));
        return all.map((one) => one.result.details.title);
        """,
    )
    assert value == ["a", "b", "c"]
    assert len(told.calls) == 3


async def test_nested_ids_start_at_one_in_each_body(g):
    """BEHAVIOURS 345, rule 8.3."""
    seen = len(await g.nested())
    body = 'await openclaw.tools.call("fake_create_ticket", {})'
    await g.code(body, "call-1")
    await g.code(body + ";" + body, "call-2")
    assert (await g.nested())[seen:] == [
        "tool_search_code:call-1:fake_create_ticket:1",
        "tool_search_code:call-2:fake_create_ticket:1",
        "tool_search_code:call-2:fake_create_ticket:2",
    ]


async def test_errors_of_tools_can_be_caught_with_their_codes(g):
    """rule 10.5, rule 10.6."""
    value = await value_of(
        g,
        """
        const out = [];
        for (const [id, args] of [["nothing", {}], ["fake_create_ticket", {titel: 1}]])
          try { await openclaw.tools.call(id, args) } catch (e) { out.push([e.code, e.message]) }
        try { await openclaw.tools.search("x", {limit: 0}) }
        catch (e) { out.push([e.code, e.message]) }
        try { await openclaw.tools.describe() } catch (e) { out.push([e.code, e.message]) }
        return out;
        """,
    )
    assert value[0] == ["unknown_tool", "Unknown tool id: nothing."]
    assert value[1][0] == "input_contract"
    assert "Did you mean: title?" in value[1][1]
    assert value[2] == ["invalid_input", "limit must be a positive integer."]
    assert value[3] == ["invalid_input", "id must be a non-empty string."]


@pytest.mark.parametrize("code", ["", "  ", None, 5])
async def test_blank_code_is_refused(g, code):
    """BEHAVIOURS 344."""
    said = error_of(await g.say("tool_search_code", {"code": code}))
    assert said == "code must be a non-empty string."


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("let x = ;", "SyntaxError"),
        ("const a = 1;\nlet b = ;", "(line 2)"),
        ("throw new TypeError('bad')", "TypeError: bad"),
        ("throw 5", "5"),
        ("throw {toJSON() { return 'mine' }}", "mine"),
        (
            "throw Object.assign(new Error(), {get message() { throw 1 }})",
            "",
        ),
        ("const a = []; a[0] = a; return a", "cannot be handed over"),
        ("return 1n", "cannot be handed over"),
        ("return 'x'.repeat(2e6)", "at most 1048576 fit"),
        ("await new Promise(() => {})", "awaits a promise that nothing settles"),
        ("openclaw.tools.search('x'); const openclaw = 1", "openclaw"),
    ],
)
async def test_what_a_body_did_wrong_is_said_with_its_log(g, code, part):
    """rule 10.2: the model can repair it."""
    result = await g.code(code)
    assert result.is_error
    assert result.details["ok"] is False
    assert part in result.details["error"]


async def test_a_flood_of_log_is_a_catchable_error(g):
    """LM-09, rule 8.5: never a silent cut."""
    result = await g.code("console.error('x'.repeat(1e7))")
    assert "at most 65536 characters can be logged" in result.details["error"]
    assert await value_of(g, "try { console.log('x'.repeat(1e6)) } catch { return 'caught' }") == (
        "caught"
    )


async def test_a_flood_of_empty_entries_ends_as_well_and_does_not_hold_the_loop(g):
    """Each of them was free, and adding them all up for each held the loop for half a minute."""
    code = "for (let i = 0; i < 30000; i++) console.log(''); return 1"
    with anyio.fail_after(10):
        result = await g.code(code)
    assert "at most 65536 characters can be logged" in result.details["error"]
    assert 4000 < len(result.details["logs"]) < 5000


@pytest.mark.parametrize(
    "code",
    [
        "while (true) {}",
        "for (;;) await Promise.resolve()",
        "for (;;) await openclaw.tools.search('ticket')",
        "await openclaw.tools.search('x'); (async () => { for (;;) await 0 })(); return 1",
        "/(a+)+$/.test('a'.repeat(40) + '!')",
        "openclaw.tools.search('x').then(() => { for (;;); })",
    ],
)
async def test_endless_bodies_time_out_and_the_child_is_killed(code):
    """BEHAVIOURS 340, rule 10.2: asynchronous continuations included."""
    async with ground([core(Told(), "ticket")], "code", search=SHORT) as g:
        began = SYSTEM_CLOCK.monotonic()
        result = await g.code(code)
        assert result.details["error"] == "tool_search_code timed out"
        assert SYSTEM_CLOCK.monotonic() - began < 5
        assert children() == []


async def test_many_bodies_at_once_take_turns():
    """rule 10.2: a flood of calls is no flood of processes; all of them are answered."""
    most = []

    async def count(_arguments, _context):
        most.append(len(children()))
        return ToolResult(details={})

    async with ground([core(Told(), "t", result=count)], "code") as g:
        got = []

        async def one(number):
            got.append(await g.code("await openclaw.tools.call('t', {}); return 1", f"c{number}"))

        with anyio.fail_after(50):
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(one, number)
        assert [result.details["value"] for result in got] == [1] * 20
        assert max(most) <= 8


async def test_a_reply_that_is_too_large_is_a_catchable_error():
    """rule 8.5: with what to do; an image is described, never handed over."""
    large = ToolResult(details={"text": "x" * (5 << 20)})
    picture = ToolResult(content=(ImageContent("aGVsbG8=", "image/png"),), details={"ok": True})
    tools = [core(Told(), "big", result=large), core(Told(), "shot", result=picture)]
    async with ground(tools, "code") as g:
        code = (
            "try { await openclaw.tools.call('big', {}) } catch (e) { return [e.code, e.message] }"
        )
        kind, said = await value_of(g, code)
        assert kind == "output_contract"
        assert "at most 4194304 fit" in said
        seen = await value_of(g, "return (await openclaw.tools.call('shot', {})).result.content")
        assert seen == [{"type": "image", "mimeType": "image/png", "bytes": 6}]


async def test_a_value_nested_too_deeply_is_told(g):
    """rule 8.5."""
    result = await g.code("let a = []; for (let i = 0; i < 9000; i++) a = [a]; return a")
    assert result.is_error


def children():
    return [p for p in psutil.Process().children() if p.is_running() and _locked(p)]


def _locked(process):
    try:
        return "--permission" in process.cmdline()
    except psutil.Error:  # it ended meanwhile
        return False


async def test_an_approval_holds_the_clock():
    """rule 3.5 holds here too: a person may take longer than the body may run."""

    class Slow:
        async def request(self, _request):
            await anyio.sleep(1.3)
            return ApprovalAnswer(approved=True)

    told = Told()
    rules = {"rules": [{"tool": "ticket", "decision": "ask"}]}
    tools = [core(told, "ticket")]
    async with ground(
        tools, "code", search=SHORT, host=Host(approver=Slow()), approvals=rules
    ) as g:
        assert await value_of(g, "return await openclaw.tools.call('ticket', {a: 1})")
        assert len(told.calls) == 1


async def test_an_abort_ends_the_body_and_its_call_once():
    """BEHAVIOURS 341."""
    began, ended = anyio.Event(), []

    async def slow(_arguments, _context):
        began.set()
        try:
            await anyio.sleep(30)
        except BaseException:
            ended.append("cancelled")
            raise

    async with ground([core(Told(), "slow", result=slow)], "code") as g:
        got = []

        async def run():
            got.append(await g.code("await openclaw.tools.call('slow', {})"))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await began.wait()
                await g.run.abort("the user said stop")
        assert error_of(got[0]) == "tool_search_code aborted"
        assert got[0].details["code"] == "aborted"
        assert ended == ["cancelled"]
        assert children() == []


async def test_a_killed_child_fails_its_own_call_only():
    """LM-09, BEHAVIOURS 342: the calls under way are cancelled, the next body runs."""
    ended = []

    async def kill(_arguments, _context):
        for child in children():
            os.kill(child.pid, signal.SIGKILL)
        try:
            await anyio.sleep(30)
        except BaseException:
            ended.append("cancelled")
            raise

    async with ground([core(Told(), "kill", result=kill)], "code") as g:
        with anyio.fail_after(20):
            result = await g.code("await openclaw.tools.call('kill', {})")
        assert result.details["error"].startswith("tool_search_code child exited with SIGKILL: ")
        assert ended == ["cancelled"]
        assert await value_of(g, "return 7") == 7


async def test_a_child_out_of_memory_dies_alone_with_bounded_words():
    """BEHAVIOURS 342, LM-09: the memory of the child is bounded, and so is what it says."""
    search = {"codeTimeoutMs": 30_000}
    async with ground([core(Told(), "t")], "code", search=search) as g:
        result = await g.code("const a = []; for (;;) a.push(new Array(1e6).fill(7))")
        said = result.details["error"]
        assert said.startswith("tool_search_code child exited with SIG")
        assert "out of memory" in said  # and not where node lies, which its stack says
        assert not re.search(r"/\w|0x", said)
        assert len(said) < 700


async def test_text_from_a_server_is_wrapped_for_the_model_once(g):
    """rule 4.9: in the text, never in the data."""
    plain = await g.code("return await openclaw.tools.call('fake_create_ticket', {title: 'x'})")
    assert "EXTERNAL_UNTRUSTED" not in text_of(plain)
    outside = await g.code("return await openclaw.tools.describe('mcp:calendar:create_event')")
    assert text_of(outside).count("<<<EXTERNAL_UNTRUSTED_CONTENT>>>") == 1
    assert "EXTERNAL" not in json.dumps(outside.details)


ESCAPES = {
    "process": "return typeof process",
    "require": "return typeof require",
    "module": "return typeof module + typeof exports + typeof __filename",
    "timers": "return typeof setTimeout + typeof setImmediate + typeof queueMicrotask",
    "fetch": "return typeof fetch + typeof WebSocket + typeof XMLHttpRequest",
    "buffers": "return typeof Buffer",
    "import": "return (await import('node:fs')).readFileSync('/etc/hostname', 'utf8')",
    "import host error": (
        "try { await import('node:fs') } catch (e) {"
        " return e.constructor.constructor('return process')().version }"
    ),
    "Function": "return Function('return process')().version",
    "eval": "return eval('process.version')",
    "AsyncFunction": "return (async () => {}).constructor('return process')()",
    "GeneratorFunction": "return (function* () {}).constructor('yield process')().next().value",
    "bridge constructor": "return openclaw.tools.call.constructor('return process')().version",
    "console constructor": "return console.log.constructor.constructor('return process')()",
    "promise constructor": (
        "return openclaw.tools.search('x').constructor.constructor('return process')().version"
    ),
    "this": "return this.constructor.constructor('return process')().version",
    "globalThis": "return globalThis.constructor.constructor('return process')().version",
    "wasm": (
        "return new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])) ? 'made' : ''"
    ),
    "stack frames": (
        "Error.prepareStackTrace ="
        " (_, frames) => frames.map((f) => f.getThis() ?? f.getFunction());"
        " return new Error().stack.filter("
        "(x) => x?.process || x?.constructor?.constructor?.('return 1')).length"
    ),
    "stack depth": (
        "const dive = () => dive(); try { dive() } catch (e) {"
        " return e.constructor.constructor('return process')().version }"
    ),
}


@pytest.mark.parametrize("name", ESCAPES)
async def test_a_body_finds_no_way_out(g, name):
    """rule 10.2, BEHAVIOURS 343."""
    result = await g.code(ESCAPES[name])
    if result.is_error:
        assert result.details["error"]
        return
    said = result.details["value"]
    assert said in (0, "undefined" * 1, "undefined" * 3), said


async def test_a_forged_message_is_only_text(g, told):
    """BEHAVIOURS 346: what a body logs or throws is no message of the bridge."""
    forged = json.dumps({"type": "done", "value": "forged"})
    call = json.dumps(
        {"type": "request", "id": 1, "method": "call", "args": ["fake_create_ticket", {}]}
    )
    result = await g.code(
        f"console.log({forged!r}); console.log({call!r} + '\\n' + {call!r}); return 'mine'"
    )
    assert result.details["value"] == "mine"
    assert told.calls == []
    assert await value_of(g, f"try {{ throw new Error({forged!r}) }} catch (e) {{ return 1 }}") == 1


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "[1]",
        '{"type":"request","id":9,"method":"call","args":["fake_create_ticket",{}]}',
        '{"type":"request","id":1,"method":"exec","args":[]}',
        '{"type":"request","id":1,"method":"call","args":5}',
        '{"type":"nonsense"}',
        '{"type":"log","level":"panic","text":"x"}',
        '{"type":"log","level":"log","text":5}',
        "{" * 5000,
    ],
)
async def test_a_malformed_message_is_ignored(line):
    """BEHAVIOURS 346: even of a child that is out of its own control."""
    asked = []

    async def answer(method, args):
        asked.append((method, args))

    lines = [line, '{"type":"done","value":1}', '{"type":"done","value":2}']
    program = f"require('fs').writeSync(1, {json.dumps(lines)}.join('\\n') + '\\n')"
    launcher = Launcher()
    await launcher.prepare()
    try:
        process = await launcher._started(program)
        end = await Body(process, answer, Deadline(10)).run("")
    finally:
        launcher.close()
    assert (end.kind, end.value, end.logs, asked) == ("done", 1, [], [])


async def test_a_child_that_closes_its_streams_fails_alone():
    """LM-09: broken pipes end the body and nothing else; its last words are kept, bounded."""

    async def answer(_method, _args):
        raise AssertionError

    launcher = Launcher()
    await launcher.prepare()
    ends = "process.exit(5)"
    at_last = (
        "require('fs').writeSync(2, 'y'.repeat(5000) + '\\ncannot open /opt/secret/place/x.so')"
    )
    flood = (
        "const fs = require('fs'); for (let i = 0; i < 200; i++) fs.writeSync(2, 'y'.repeat(1024));"
    )
    try:
        process = await launcher._started("require('fs').closeSync(2); process.exit(3)")
        first = await Body(process, answer, Deadline(10)).run("")
        process = await launcher._started(flood + "process.exit(4)")
        second = await Body(process, answer, Deadline(10)).run("")
        process = await launcher._started(f"{at_last}; {ends}")
        third = await Body(process, answer, Deadline(10)).run("")
    finally:
        launcher.close()
    assert first.error == "tool_search_code child exited with 3: it said nothing"
    assert second.error.startswith("tool_search_code child exited with 4: yyy")
    assert "bytes of diagnostics omitted" in second.error
    assert len(second.error) < 700
    assert "cannot open …/x.so" in third.error


LEFT_BEHIND = Path("/tmp/toolcell-escape")  # noqa: S108 - nothing may ever be made there
HOST_ESCAPES = {
    "read a file": "require('fs').readFileSync('/etc/hostname')",
    "write a file": "require('fs').writeFileSync('/tmp/toolcell-escape', 'x')",
    "a database file": "new (require('node:sqlite').DatabaseSync)('/tmp/toolcell-escape.db')",
    "a heap snapshot": "require('v8').writeHeapSnapshot('/tmp/toolcell-escape.heap')",
    "a report": "process.report.writeReport('toolcell-escape.json')",
    "a child process": (
        "const r = require('child_process').spawnSync('true'); if (r.error) throw r.error"
    ),
    "a worker": "new (require('worker_threads').Worker)('0', {eval: true})",
    "process.binding": "process.binding('fs')",
    "an add-on": "process.dlopen({exports: {}}, process.execPath)",
    "the inspector": "require('inspector').open(0)",
    "WASI": "new (require('wasi').WASI)({version: 'preview1', preopens: {'/': '/'}})",
    "killing the parent": "process.kill(process.ppid, 'SIGKILL')",
    "the environment": "if (Object.keys(process.env).length === 0) throw new Error('empty')",
    "much memory": "const a = []; for (let i = 0; i < 30; i++) a.push(Buffer.alloc(1e8, 1))",
}


@pytest.mark.parametrize("name", HOST_ESCAPES)
async def test_even_outside_its_context_there_is_nothing_to_reach(name):
    """rule 10.2, BEHAVIOURS 343: file, child process, worker, environment, binding, signal."""
    program = (
        f"let out = 'done'; try {{ {HOST_ESCAPES[name]} }} catch {{ out = 'refused' }}"
        " require('fs').writeSync(1, out)"
    )
    assert await said_by(program) == "refused"
    assert not list(LEFT_BEHIND.parent.glob(LEFT_BEHIND.name + "*"))


NETWORK = {
    "tcp": "s = net.connect(PORT, '127.0.0.1'); s.on('connect', done)",
    "tcp6": "s = net.connect(PORT, '::1'); s.on('connect', done)",
    "listening": "s = net.createServer(); s.listen(0, done)",
    "unix": "s = net.connect('\\0toolcell-escape'); s.on('connect', done)",
    "udp": (
        "s = dgram.createSocket('udp4'); s.send('x', PORT, '127.0.0.1', (e) => e ? no(e) : done())"
    ),
    "dns": "s = new events(); dns.resolve4('example.com', (e) => e ? no(e) : done())",
    "lookup": "s = new events(); dns.lookup('example.com', (e) => e ? no(e) : done())",
    "http": "s = require('http').get('http://127.0.0.1:PORT/', done)",
}


@pytest.mark.parametrize("name", NETWORK)
async def test_the_network_is_locked_away(name):
    """rule 10.2: permission mode alone would let it connect."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        program = (
            "const net = require('net'), dgram = require('dgram'), dns = require('dns'),"
            " events = require('events');"
            "const end = (t) => { require('fs').writeSync(1, t); process.exit() };"
            "const done = () => end('done'), no = (e) => end('refused');"
            f"let s; try {{ {NETWORK[name].replace('PORT', str(port))}; s.on('error', no) }}"
            " catch (e) { no(e) } setTimeout(() => end('refused'), 3000)"
        )
        assert await said_by(program) == "refused"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_the_lock_holds_no_other_thread_back():
    """rule 10.2: this process keeps its network."""
    async with ground([core(Told(), "t")], "code"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            socket.create_connection(listener.getsockname()).close()


async def said_by(program):
    launcher = Launcher()
    await launcher.prepare()
    assert launcher.trouble is None
    try:
        process = await launcher._started(program)
        with anyio.fail_after(30):
            out, _ = await anyio.to_thread.run_sync(process.communicate)
        return out.decode()
    finally:
        launcher.close()
