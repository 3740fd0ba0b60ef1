"""`toolcell mcp login` and `logout`, and what `toolcell doctor` tells of servers."""

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.mcp_server.serving import Home, fixture_server
from tests.sources.mcp.test_oauth import free_port, guarded


def test_signing_in_and_out_by_command(tmp_path: Path) -> None:
    """Issue 4, part 1: the address is shown, the browser comes back, doctor sees the tools."""
    with guarded() as url:
        servers = {"g": {"url": url, "oauth": {"redirectPort": free_port()}}}
        home = Home(tmp_path, servers=servers).prepare()
        assert "run toolcell mcp login g" in doctor(home)["mcp server g"][0]["text"]
        with subprocess.Popen(
            home.command("mcp", "login", "g"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=home.environment,
        ) as process:
            assert "open this address" in process.stderr.readline()
            page = httpx2.get(process.stderr.readline().strip(), follow_redirects=True)
            assert page.text.startswith("Signed in")
            assert process.wait(20) == 0
            assert process.stdout.read() == "signed in to g\n"
        assert doctor(home)["mcp server g"][0]["text"].startswith("ready, 1 tools, guarded")
        (kept,) = (tmp_path / "mcp-auth").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert command(home, "mcp", "logout", "g") == "signed out of g\n"
        assert not kept.exists()
        assert command(home, "mcp", "logout", "g") == "there was no sign-in to g\n"


def command(home: Home, *words: str) -> str:
    line, env = home.command(*words), home.environment
    # Doctor's own exit code says that something is wrong, as it is in these tests.
    done = subprocess.run(line, check=False, env=env, capture_output=True, text=True, timeout=40)
    return done.stdout


def doctor(home: Home) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(command(home, "doctor", "--json")):
        found.setdefault(finding["subject"], []).append(finding)
    return found


def test_doctor_names_every_server_with_state_version_tools_and_reasons(tmp_path: Path) -> None:
    """Issue 4, part 7; rule 7.3: ready, dead and disabled; rejected schemas; last log lines."""
    servers = {
        "good": {**fixture_server(), "exclude": ["crash"]},
        "odd": fixture_server("--odd"),
        "dead": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no luck')"]},
        "off": {**fixture_server(), "enabled": False},
    }
    found = doctor(Home(tmp_path, servers=servers).prepare())
    good = found["mcp server good"]
    assert good[0]["state"] == "ok"
    assert good[0]["text"].startswith("ready, ")
    assert "fixture 1.0 2025-11-25" in good[0]["text"]
    assert {"tool crash filtered: in 'exclude'"} == {each["text"] for each in good[1:]}
    dead = found["mcp server dead"][0]
    assert dead["state"] == "error"
    assert "the process ended with code 1" in dead["text"]
    assert found["mcp server dead log"][0]["text"] == "no luck"
    assert found["mcp server off"][0]["text"].startswith("disabled")
    odd = [each for each in found["mcp server odd"][1:] if each["state"] == "warning"]
    assert odd, found["mcp server odd"]
    assert any("inputSchema" in each["text"] for each in odd)


@pytest.mark.parametrize("words", [("mcp",), ("mcp", "serve", "--help")])
def test_help_names_the_commands(tmp_path: Path, words: tuple[str, ...]) -> None:
    text = command(Home(tmp_path).prepare(), *words)
    assert "serve" in text
