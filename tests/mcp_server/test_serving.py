"""Any MCP client gets `exec` and `wait`: the SDK's own client against the real command."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import jsonschema_rs
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.mcp_server.serving import Home, Notices, Web, exists, fixture_server, http, stdio, until
from toolcell import CodeMode
from toolcell.mcp_server.presentation import OUTCOME_SCHEMA

pytestmark = pytest.mark.anyio

ADD = "return await add({a: 1, b: 2})"
PARK = "await yield_control('tea'); return 'back'"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).prepare()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One server for the tests that need no process of their own; each is a session of its own."""
    folder = tmp_path_factory.mktemp("shared")
    with http(Home(folder, servers={"fx": fixture_server()}).prepare()) as web:
        yield web


@pytest.fixture
def with_mcp(tmp_path: Path) -> Home:
    return Home(tmp_path, servers={"fx": fixture_server()}).prepare()


@pytest.mark.parametrize("mode", ["legacy", "auto"], ids=["handshake", "2026"])
async def test_a_client_sees_exec_and_wait_and_runs_a_cell(home: Home, mode: str) -> None:
    """Issue 4, part 6; rule 2.2, rule 3.3: annotations, output schemas, structured content."""
    async with stdio(home, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["exec", "wait", "look"]
        assert "code" in tools["exec"].input_schema["required"]
        assert "\n- add {" in tools["exec"].description
        assert tools["exec"].annotations.destructive_hint
        assert not tools["exec"].annotations.read_only_hint
        assert tools["look"].annotations.idempotent_hint
        assert tools["exec"].output_schema == tools["wait"].output_schema == OUTCOME_SCHEMA
        assert tools["look"].output_schema["type"] == "object"
        looked = await client.call_tool("look", {"what": "four"})
        assert looked.structured_content == {"sum": 4}
        assert json.loads(looked.content[0].text) == {"sum": 4}
        result = await client.call_tool("exec", {"code": f"text('hi'); {ADD}"})
        assert not result.is_error
        assert result.structured_content["value"] == {"sum": 3}
        assert result.structured_content["output"] == [{"type": "text", "text": "hi"}]
        assert json.loads(result.content[0].text) == result.structured_content
        assert result.structured_content["telemetry"]["visibleTools"] == ["exec", "wait", "look"]


async def test_every_outcome_fits_the_output_schema(shared: Web) -> None:
    """Issue 4, part 6; rule 3.3: completed, waiting and failed."""
    validator = jsonschema_rs.validator_for(OUTCOME_SCHEMA)
    async with Client(shared.url) as client:
        seen = {}
        for code in (ADD, "return null", PARK, "throw new Error('boom')", "import('x')", ""):
            result = await client.call_tool("exec", {"code": code})
            outcome = result.structured_content
            validator.validate(outcome)
            assert result.is_error == (outcome["status"] == "failed")
            seen[outcome["status"]] = outcome
        assert set(seen) == {"completed", "waiting", "failed"}
        assert not validator.is_valid({"status": "completed", "telemetry": {}})


async def test_a_parked_cell_goes_on_with_wait(shared: Web) -> None:
    """rule 3.5, rule 3.6."""
    async with Client(shared.url) as client:
        parked = (await client.call_tool("exec", {"code": PARK})).structured_content
        assert (parked["status"], parked["reason"]) == ("waiting", "yield")
        done = await client.call_tool("wait", {"runId": parked["runId"]})
        assert done.structured_content["value"] == "back"
        again = await client.call_tool("wait", {"runId": parked["runId"]})
        assert again.is_error
        assert again.structured_content["code"] == "invalid_input"


async def test_one_session_cannot_resume_the_cell_of_another(shared: Web) -> None:
    """Issue 4, part 6; rule 3.7: over HTTP, one process, two clients; the owner still can."""
    async with Client(shared.url) as mine, Client(shared.url) as other:
        parked = (await mine.call_tool("exec", {"code": PARK})).structured_content
        refused = await other.call_tool("wait", {"runId": parked["runId"]})
        assert refused.is_error
        error = refused.structured_content["error"]
        assert error == "code mode run belongs to a different session."
        done = await mine.call_tool("wait", {"runId": parked["runId"]})
        assert done.structured_content["value"] == "back"


async def test_a_session_that_ends_gives_up_its_cells(shared: Web, tmp_path: Path) -> None:
    """rule 3.8: the client deletes its session; the nested call is cancelled, nobody else's is."""
    mark = str(tmp_path / "mark")
    slow = f"yield_control(); return await slow({{seconds: 60, mark: {json.dumps(mark)}}})"
    async with Client(shared.url) as staying:
        parked = (await staying.call_tool("exec", {"code": PARK})).structured_content
        async with Client(shared.url) as leaving:
            await leaving.call_tool("exec", {"code": slow})
            await exists(Path(mark + ".began"))
        await exists(Path(mark + ".cancelled"))
        done = await staying.call_tool("wait", {"runId": parked["runId"]})
        assert done.structured_content["value"] == "back"


async def test_cancelling_a_request_aborts_its_cell(home: Home, tmp_path: Path) -> None:
    """Issue 4, part 6: the nested call is cancelled too, and the session goes on."""
    mark = str(tmp_path / "mark")
    code = f"return await slow({{seconds: 60, mark: {json.dumps(mark)}}})"
    async with stdio(home) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "exec", {"code": code})
            await exists(Path(mark + ".began"))
            tasks.cancel_scope.cancel()
        await exists(Path(mark + ".cancelled"))
        after = await client.call_tool("exec", {"code": ADD})
        assert after.structured_content["value"] == {"sum": 3}


@pytest.mark.parametrize("mode", ["legacy", "auto"], ids=["handshake", "2026"])
async def test_nested_calls_are_reported_as_progress(with_mcp: Home, mode: str) -> None:
    """Issue 4, parts 1 and 6: growing numbers; what a server reports passes through."""
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, _: float | None, message: str | None) -> None:
        heard.append((progress, message))

    code = "await add({a: 1, b: 2}); await MCP.fx.steps({n: 3}); return 1"
    async with stdio(with_mcp, mode=mode) as client:
        await client.call_tool("exec", {"code": code}, progress_callback=hear)
        numbers = [number for number, _ in heard]
        assert numbers == sorted(set(numbers))
        told = [message for _, message in heard]
        assert len(told) > 4, told
        assert told[0] == "openclaw:tests:add started"
        assert told[1].startswith("openclaw:tests:add completed after ")
        assert told[2] == "mcp:fx:steps started"
        assert told[-1].startswith("mcp:fx:steps completed after ")
        heard.clear()
        await client.call_tool("exec", {"code": ADD})
        assert heard == []


async def test_progress_goes_on_while_wait_drives_the_cell(shared: Web) -> None:
    """The nested calls of a resumed cell are reported to the `wait` that resumed it."""
    heard: list[str] = []

    async def hear(_: float, __: float | None, message: str | None) -> None:
        heard.append(message)

    async with Client(shared.url) as client:
        code = f"await yield_control(); {ADD}"
        parked = (await client.call_tool("exec", {"code": code})).structured_content
        await client.call_tool("wait", {"runId": parked["runId"]}, progress_callback=hear)
        assert heard[0] == "openclaw:tests:add started"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_changed_catalog_is_announced(with_mcp: Home, transport: str) -> None:
    """Issue 4, part 6: a server adds a tool; the client hears, and the next cell can call it."""
    notices = Notices()
    changed = "notifications/tools/list_changed"
    code = "return await MCP.fx.addTool({name: 'late'})"
    if transport == "stdio":
        async with stdio(with_mcp, notices=notices) as client:
            await announced(client, code, notices, changed)
    else:
        with http(with_mcp) as web:
            async with Client(web.url, message_handler=notices) as client:
                await announced(client, code, notices, changed)


async def announced(client: Client, code: str, notices: Notices, changed: str) -> None:
    assert client.server_capabilities.tools.list_changed
    await client.list_tools()
    added = await client.call_tool("exec", {"code": code})
    assert not added.is_error, added.content
    await until(lambda: notices.count(changed) >= 1)
    late = await client.call_tool("exec", {"code": "return await MCP.fx.late({})"})
    assert "I am late" in json.dumps(late.structured_content["value"])


async def test_a_changed_catalog_is_announced_on_the_stream_of_the_2026_revision(
    with_mcp: Home,
) -> None:
    """Issue 4, part 6: there a client asks for the announcements."""
    code = "return await MCP.fx.addTool({name: 'x'})"
    async with (
        stdio(with_mcp, mode="auto") as client,
        client.listen(tools_list_changed=True) as events,
    ):
        await client.call_tool("exec", {"code": code})
        with anyio.fail_after(10):
            async for _ in events:
                break


async def test_text_from_the_network_is_wrapped_and_the_data_is_not(shared: Web) -> None:
    """rule 4.9: what a model reads is wrapped once; structured content is the value itself."""
    async with Client(shared.url) as client:
        code = "const r = await MCP.fx.echo({v: 'plain'}); return r.structuredContent"
        result = await client.call_tool("exec", {"code": code})
        assert result.content[0].text.count("<<<EXTERNAL_UNTRUSTED_CONTENT>>>") == 1
        assert "UNTRUSTED" not in json.dumps(result.structured_content)


async def test_what_no_wire_can_carry_is_replaced(shared: Web, home: Home) -> None:
    """Halves of surrogate pairs are legal in JavaScript and in no UTF-8."""
    for served in (stdio(home), Client(shared.url)):
        async with served as client:
            result = await client.call_tool("exec", {"code": "return await halves({})"})
            assert result.structured_content["value"] == "\ufffd"


async def test_unknown_tools_and_bad_arguments_are_results(shared: Web) -> None:
    """A model can read them and go on; nothing is raised at it."""
    async with Client(shared.url) as client:
        unknown = await client.call_tool("nope", {})
        assert unknown.is_error
        assert "exec, look, wait" in unknown.content[0].text
        bad = await client.call_tool("exec", {"source": "1"})
        assert bad.is_error
        hidden = await client.call_tool("add", {"a": 1, "b": 2})
        assert "unknown tool 'add'" in hidden.content[0].text


async def test_library_command_line_and_server_give_the_same_result(
    with_mcp: Home, tmp_path: Path
) -> None:
    """Issue 4, Shows: the same cell through all three faces."""
    code = (
        "const [a, b] = await Promise.all([add({a: 1, b: 2}), MCP.fx.echo({v: 'x'})]);"
        "json({a}); return {a, b, n: catalog.all().length}"
    )
    async with stdio(with_mcp) as client:
        served = (await client.call_tool("exec", {"code": code})).structured_content
    (tmp_path / "cell.js").write_text(code)
    command = with_mcp.command("exec", "cell.js", "--json")
    printed = await anyio.run_process(command, env=with_mcp.environment, cwd=tmp_path)
    told = json.loads(printed.stdout)
    config = json.loads((tmp_path / "toolcell.json").read_text())
    async with CodeMode(config=config) as cm:
        owned = (await cm.exec(code.replace("n: catalog.all().length", "n: null"))).to_dict()
    assert served["status"] == told["status"] == owned["status"] == "completed"
    assert served["value"] == told["value"]
    assert {**served["value"], "n": None} == owned["value"]
    assert served["output"] == told["output"] == owned["output"]


async def test_many_cells_of_one_client_run_at_the_same_time(shared: Web, tmp_path: Path) -> None:
    """A slow cell does not hold up the next request of its client."""
    mark = str(tmp_path / "mark")
    code = f"return await slow({{seconds: 60, mark: {json.dumps(mark)}}})"
    async with Client(shared.url) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "exec", {"code": code})
        await exists(Path(mark + ".began"))
        quick = await client.call_tool("exec", {"code": ADD})
        assert quick.structured_content["value"] == {"sum": 3}
        tasks.cancel_scope.cancel()


async def test_the_2026_revision_over_http_is_declined_and_clients_shake_hands(shared: Web) -> None:
    """It has no sessions, and a parked cell stays with its client."""
    async with Client(shared.url, mode="auto") as client:
        assert client.protocol_version == "2025-11-25"
    with pytest.raises((MCPError, BaseExceptionGroup)) as declined:
        async with Client(shared.url, mode="2026-07-28") as client:
            await client.call_tool("exec", {"code": ADD})
    assert "initialize handshake" in flat(declined.value)


def flat(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " ".join(map(flat, error.exceptions))
    return str(error)


def test_an_approval_nobody_can_answer_is_a_no(home: Home) -> None:
    """Issue 4, part 5: stdin is the protocol, so no person is asked on it."""
    lines = [*HELLO, rpc(2, "tools/call", {"name": "exec", "arguments": {"code": SHELL}})]
    answers = talk(home, lines, 2)
    outcome = answers[2]["result"]["structuredContent"]
    assert outcome["value"].startswith("refused")


def test_stdout_carries_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    """Issue 4, part 6: whatever a plugin or a child of it writes; every line is a message."""
    home = Home(tmp_path, noisy=True).prepare()
    lines = [
        *HELLO,
        rpc(2, "tools/call", {"name": "exec", "arguments": {"code": "return await shout({})"}}),
    ]
    answers = talk(home, lines, 2)
    assert answers[2]["result"]["structuredContent"]["status"] == "completed"


CLIENT = {"clientInfo": {"name": "t", "version": "0"}}
SHELL = "try { return await exec({command: 'id'}) } catch (e) { return 'refused: ' + e.message }"


def rpc(ident: int, method: str, params: dict) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


HELLO = [
    rpc(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, **CLIENT}),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
]


def talk(home: Home, lines: list[str], last: int) -> dict[int, dict]:
    """Write lines to the command, read messages until `last` is answered, close stdin."""
    with subprocess.Popen(
        home.command("mcp", "serve"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=home.environment,
        cwd=home.folder,
    ) as process:
        process.stdin.write("".join(line + "\n" for line in lines))
        process.stdin.flush()
        answers: dict[int, dict] = {}
        while last not in answers:
            message = json.loads(process.stdout.readline())
            answers[message.get("id")] = message
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(10) == 0
    return answers


def test_lines_that_are_no_messages_are_answered_and_survived(home: Home) -> None:
    """Issue 2, Bad input: garbage, a half message, an overlong line, then a good request."""
    lines = [
        "garbage",
        '{"jsonrpc": "2.0", "id":',
        "x" * (17 << 20),
        rpc(7, "ping", {}),
    ]
    answers = talk(home, lines, 7)
    assert answers[7]["result"] == {}
    assert "error" in answers[None]
