"""Signing in to servers: the SDK's flows against an authorization server on the loopback."""

import json
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import anyio
import httpx2
import pytest

from tests.sources.mcp.oauth_server import MACHINE
from tests.sources.mcp.running import SRC, running
from toolcell.errors import ConfigError, McpError
from toolcell.sources.mcp.login import login
from toolcell.sources.mcp.oauth import token_file
from toolcell.sources.mcp.settings import McpServerSettings, parse_server

pytestmark = pytest.mark.anyio


@contextmanager
def guarded(*flags: str) -> Iterator[str]:
    """Run the server; give its address."""
    program = Path(__file__).with_name("oauth_server.py")
    environment = {"PYTHONPATH": SRC}
    command = [sys.executable, str(program), *flags]
    with Popen(command, stdout=PIPE, text=True, env=environment) as process:
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def settings_for(url: str, **oauth) -> McpServerSettings:
    return parse_server("g", {"url": url, "oauth": {"redirectPort": free_port(), **oauth}})


async def sign_in(settings: McpServerSettings, folder: Path, shown: list[str]) -> None:
    """Sign in as a browser does that is shown an address and follows it home."""
    async with anyio.create_task_group() as tasks:

        def show(url: str) -> None:
            shown.append(url)
            tasks.start_soon(visit, url)

        with anyio.fail_after(20):
            await login("g", settings, folder, show)


async def visit(url: str) -> httpx2.Response:
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        return await browser.get(url)


async def stats(url: str) -> dict[str, int]:
    async with httpx2.AsyncClient() as client:
        return (await client.get(url.replace("/mcp", "/stats"))).json()


async def test_after_one_sign_in_the_server_connects_in_every_process(tmp_path: Path) -> None:
    """Issue 4, part 1: OAuth through the SDK; tokens are kept for their owner alone."""
    with guarded() as url:
        settings = settings_for(url)
        shown: list[str] = []
        await sign_in(settings, tmp_path / "auth", shown)
        assert shown[0].startswith(url.replace("/mcp", "/authorize?"))
        async with running({"g": settings}, tokens=tmp_path / "auth") as mcp:
            assert (await mcp.call("g:whoami")).details["structuredContent"] == {"result": "in"}
        asked = await stats(url)
        assert (asked["register"], asked["authorize"], asked["code"]) == (1, 1, 1)
    kept = token_file("g", settings, tmp_path / "auth").path
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert list(kept.parent.iterdir()) == [kept]


async def test_without_a_sign_in_the_server_names_the_command(tmp_path: Path) -> None:
    """Issue 4, part 1: no browser from a running program; it connects once one signed in."""
    with guarded() as url:
        settings = settings_for(url)
        async with running({"g": settings}, tokens=tmp_path) as mcp:
            assert "run toolcell mcp login g" in mcp.status("g").last_error
            assert (await stats(url))["register"] == 0
            await sign_in(settings, tmp_path, [])
            await mcp.until(lambda: "mcp:g:whoami" in mcp.ids)


async def test_an_expired_token_is_renewed_by_a_new_process(tmp_path: Path) -> None:
    """Issue 4, part 1: nobody is sent to the browser again while the renewal holds."""
    with guarded("--life", "1") as url:
        settings = settings_for(url)
        await sign_in(settings, tmp_path, [])
        await expiry(settings, tmp_path)
        async with running({"g": settings}, tokens=tmp_path) as mcp:
            await mcp.until(lambda: mcp.status("g").state == "ready")
        asked = await stats(url)
        assert asked["authorize"] == 1
        assert asked["refresh"] >= 1


async def expiry(settings: McpServerSettings, folder: Path) -> None:
    """Make the kept token old, as a night would."""
    kept = token_file("g", settings, folder).path
    document = json.loads(kept.read_text())
    document["expires_at"] -= 3600
    kept.write_text(json.dumps(document))


async def test_a_revoked_sign_in_says_so_and_breaks_nothing_else(tmp_path: Path) -> None:
    """Issue 4, part 1: the operator reads what to do."""
    with guarded() as url:
        settings = settings_for(url)
        await sign_in(settings, tmp_path, [])
        async with httpx2.AsyncClient() as client:
            await client.post(url.replace("/mcp", "/revoke"))
        async with running({"g": settings}, tokens=tmp_path) as mcp:
            await mcp.until(lambda: "toolcell mcp login g" in mcp.status("g").last_error)
            assert mcp.status("g").state == "retrying"


async def test_a_program_signs_in_by_its_own_secret(tmp_path: Path) -> None:
    """Issue 4, part 1: client credentials, only to the authorization server that is named."""
    with guarded() as url:
        issuer = url.replace("/mcp", "")
        machine = {"grant": "client_credentials", "clientId": MACHINE[0], "issuer": issuer}
        good = settings_for(url, **machine, clientSecret=MACHINE[1])
        async with running({"g": good}, tokens=tmp_path) as mcp:
            assert (await mcp.call("g:whoami")).details["structuredContent"] == {"result": "in"}
        elsewhere = {**machine, "issuer": "https://other.example"}
        bad = settings_for(url, **elsewhere, clientSecret=MACHINE[1])
        before = (await stats(url))["machine"]
        async with running({"g": bad}, tokens=tmp_path / "other") as mcp:
            assert mcp.status("g").state == "retrying"
            assert "other.example" in mcp.status("g").last_error
        assert (await stats(url))["machine"] == before


async def test_a_client_that_is_known_does_not_register(tmp_path: Path) -> None:
    """Issue 4, part 1: clientId."""
    with guarded() as url:
        await sign_in(settings_for(url, clientId="known"), tmp_path, [])
        assert (await stats(url))["register"] == 0


async def test_a_refused_sign_in_ends_with_the_reason(tmp_path: Path) -> None:
    with guarded() as url, pytest.raises(McpError, match="unauthorized_client"):
        await sign_in_alone(settings_for(url, clientId="stranger"), tmp_path)


async def sign_in_alone(settings: McpServerSettings, folder: Path) -> None:
    async with anyio.create_task_group() as tasks:
        error: list[McpError] = []
        try:
            await login("g", settings, folder, lambda url: tasks.start_soon(visit, url))
        except McpError as caught:
            error.append(caught)
    raise error[0]


async def test_tokens_of_one_address_are_never_sent_to_another(tmp_path: Path) -> None:
    """Whoever changes the address of a server signs in again."""
    first = token_file("g", McpServerSettings(url="http://a.example/mcp"), tmp_path)
    second = token_file("g", McpServerSettings(url="http://b.example/mcp"), tmp_path)
    assert first.path != second.path


@pytest.mark.parametrize(
    ("oauth", "words"),
    [
        ("yes", "expected true, false or an object"),
        ({"colour": 1}, r"mcp\.servers\.g\.oauth\.colour.*known keys"),
        ({"clientSecret": "s3cret-value"}, "needs its clientId"),
        ({"grant": "password"}, "authorization_code"),
        ({"grant": "client_credentials", "clientId": "a", "clientSecret": "b"}, "needs 'issuer'"),
        ({"redirectPort": 0}, "port from 1 to 65535"),
    ],
)
async def test_wrong_oauth_settings_name_their_place(oauth, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as wrong:
        parse_server("g", {"url": "http://a.example", "oauth": oauth})
    assert "s3cret" not in str(wrong.value)
