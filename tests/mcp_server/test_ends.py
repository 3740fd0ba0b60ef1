"""How serving begins and ends: pipes, signals, addresses, tokens."""

import json
import signal
import socket
import subprocess
import threading
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp_server.serving import Home, exists, fixture_server, http, stdio
from tests.mcp_server.test_serving import ADD, HELLO, PARK, rpc
from toolcell.cli.main import run
from toolcell.errors import ConfigError
from toolcell.mcp_server.http import binding

TOKEN = "-".join(["long", "enough", "to", "be", "one"])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).prepare()


def started(home: Home, **pipes) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        home.command("mcp", "serve"), env=home.environment, cwd=home.folder, **pipes
    )


def both() -> dict[str, int]:
    return {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def ask(process: subprocess.Popen[bytes], *lines: str) -> None:
    process.stdin.write("".join(line + "\n" for line in lines).encode())
    process.stdin.flush()


def call(ident: int, code: str) -> str:
    return rpc(ident, "tools/call", {"name": "exec", "arguments": {"code": code}})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_while_stdin_is_open(home: Home, number: int) -> None:
    """Issue 4, part 6: a running cell is given up, no child process stays, the code is 0."""
    home = Home(home.folder, servers={"fx": fixture_server()}).prepare()
    mark = home.folder / "mark"
    slow = f"return await slow({{seconds: 60, mark: {json.dumps(str(mark))}}})"
    with started(home, **both()) as process:
        ask(process, *HELLO, call(2, slow))
        while not mark.with_name("mark.began").exists():
            assert process.poll() is None
            threading.Event().wait(0.02)
        process.send_signal(number)
        assert process.wait(10) == 0
        assert mark.with_name("mark.cancelled").exists()
        process.stdin.close()


def test_the_end_of_stdin_ends_it(home: Home) -> None:
    """Issue 4, part 6."""
    with started(home, **both()) as process:
        ask(process, *HELLO)
        process.stdout.readline()
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_client_that_does_not_read_stops_nothing_from_ending(home: Home) -> None:
    """Issue 2, Bad input: nothing hangs. The pipe is full of answers nobody takes."""
    with started(home, **both()) as process:
        big = "return 'x'.repeat(60000)"
        ask(process, *HELLO, *(call(number, big) for number in range(2, 12)))
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        process.stdin.close()


def test_a_client_that_left_ends_it(home: Home) -> None:
    """Issue 2, Bad input: stdout is closed while an answer is due."""
    with started(home, **both()) as process:
        ask(process, *HELLO)
        process.stdout.readline()
        process.stdout.close()
        ask(process, *(rpc(number, "tools/list", {}) for number in range(2, 6)))
        assert process.wait(10) == 0
        process.stdin.close()


def test_a_socket_serves_as_well_as_a_pipe(home: Home) -> None:
    """Some hosts give a child sockets for stdin and stdout."""
    mine, theirs = socket.socketpair()
    with mine, theirs, started(home, stdin=theirs, stdout=theirs) as process:
        mine.settimeout(20)
        text = "\n".join([*HELLO, call(2, "return 'x'.repeat(60000)"), ""])
        mine.sendall(text.encode())
        with mine.makefile("rb") as lines:
            answers = {}
            while 2 not in answers:
                message = json.loads(lines.readline())
                answers[message.get("id")] = message
        assert len(answers[2]["result"]["structuredContent"]["value"]) == 60_000
        mine.shutdown(socket.SHUT_WR)
        assert process.wait(10) == 0


def test_input_and_output_may_be_files(home: Home) -> None:
    """What cannot be waited for is read and written all the same."""
    asked, told = home.folder / "in.jsonl", home.folder / "out.jsonl"
    asked.write_text("\n".join([*HELLO, ""]))
    with (
        asked.open("rb") as source,
        told.open("wb") as target,
        started(home, stdin=source, stdout=target) as process,
    ):
        assert process.wait(15) == 0
    for line in told.read_text().splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"


@pytest.mark.anyio
async def test_http_ends_cleanly_with_clients_connected(home: Home) -> None:
    """Issue 4, part 6: SIGTERM, an open stream, a parked cell."""
    with http(home) as web:
        async with httpx2.AsyncClient(timeout=20) as client:
            sent = await client.post(web.url, json=json.loads(HELLO[0]), headers=ACCEPT)
            assert sent.status_code == 200
            assert await anyio.to_thread.run_sync(web.end) == 0
        assert web.process.stdout.read() == ""


ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.anyio
async def test_http_with_a_token_lets_in_who_has_it(home: Home, tmp_path: Path) -> None:
    """Issue 4, part 6: 401 without; the token is read from a variable, so `ps` does not show it."""
    home = Home(tmp_path, more={"SERVE_TOKEN": TOKEN}).prepare()
    with http(home, "--token", "${SERVE_TOKEN}") as web:
        async with httpx2.AsyncClient() as client:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                refused = await client.post(
                    web.url, json=json.loads(HELLO[0]), headers={**ACCEPT, **headers}
                )
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"].startswith("Bearer")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as client,
            Client(streamable_http_client(web.url, http_client=client), mode="legacy") as served,
        ):
            result = await served.call_tool("exec", {"code": ADD})
            assert result.structured_content["value"] == {"sum": 3}


@pytest.mark.anyio
async def test_http_refuses_pages_that_rebind_a_name(home: Home) -> None:
    """A page in a browser on this machine must not reach the door by a name of its own."""
    with http(home) as web:
        async with httpx2.AsyncClient() as client:
            for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
                refused = await client.post(
                    web.url, json=json.loads(HELLO[0]), headers={**ACCEPT, **headers}
                )
                assert refused.status_code in {403, 421}


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1:8123", "127.0.0.1", 8123),
        (":8123", "127.0.0.1", 8123),
        ("8123", "127.0.0.1", 8123),
        ("[::1]:0", "::1", 0),
        ("localhost:1", "localhost", 1),
    ],
)
def test_addresses_are_loopback_by_default(address: str, host: str, port: int) -> None:
    """Issue 4, part 6."""
    found = binding(address)
    assert (found.host, found.port, found.local) == (host, port, True)


@pytest.mark.parametrize(
    ("address", "token", "words"),
    [
        ("0.0.0.0:80", None, "give --token"),
        ("example.org:80", None, "give --token"),
        ("127.0.0.1:http", None, "HOST:PORT"),
        ("127.0.0.1:70000", None, "HOST:PORT"),
        ("127.0.0.1:1", "short", "at least 16"),
    ],
)
def test_an_open_door_is_refused(address: str, token: str | None, words: str) -> None:
    """Whoever can reach it may run every tool."""
    with pytest.raises(ConfigError, match=words):
        binding(address, token)
    assert binding("0.0.0.0:80", TOKEN).local is False


def test_bad_usage_ends_before_anything_starts(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    assert run(("mcp", "serve", "--token", TOKEN)) == 2
    assert "--http" in capsys.readouterr().err
    assert run(("mcp", "login", "nobody")) == 2
    assert "there is no MCP server 'nobody'" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run(("mcp", "serve", "--http", address)) == 2
    assert "cannot listen" in capsys.readouterr().err


@pytest.mark.anyio
async def test_what_is_missing_is_told_on_stderr(tmp_path: Path) -> None:
    """Issue 4, part 7: a dead server takes nothing down and says so."""
    servers = {"dead": {"command": "/nowhere/at/all"}}
    home = Home(tmp_path, servers=servers).prepare()
    with started(home, **both(), stderr=subprocess.PIPE) as process:
        ask(process, *HELLO)
        process.stdout.readline()
        process.stdin.close()
        told = process.stderr.read().decode()
        assert process.wait(10) == 0
    assert "mcp.servers.dead" in told
    assert "cannot run '/nowhere/at/all'" in told


@pytest.mark.anyio
async def test_two_processes_over_stdio_are_two_sessions(home: Home, tmp_path: Path) -> None:
    """rule 3.8: continuations live in the process; another one knows none of them."""
    async with stdio(home) as mine, stdio(home) as other:
        parked = (await mine.call_tool("exec", {"code": PARK})).structured_content
        refused = await other.call_tool("wait", {"runId": parked["runId"]})
        assert "unavailable or expired" in refused.structured_content["error"]
        await exists(tmp_path / "toolcell.json")
