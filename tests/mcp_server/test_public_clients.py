"""A public client, unchanged: the MCP inspector's command line from npm."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.mcp_server.serving import Home, fixture_server, http
from tests.public import cache, npm_bin

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

CODE = "const r = await MCP.fx.add({a: 2, b: 3}); return {sum: r, n: await add({a: 1, b: 1})}"


@pytest.fixture(scope="module")
def inspector(request: pytest.FixtureRequest) -> str:
    return str(npm_bin(cache(request), "@modelcontextprotocol/inspector") / "mcp-inspector")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, servers={"fx": fixture_server()}).prepare()


def inspect(home: Home, *words: str) -> dict:
    done = subprocess.run(
        words, check=True, env=home.environment, cwd=home.folder, capture_output=True, timeout=90
    )
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls_over_stdio(inspector: str, home: Home) -> None:
    """Issue 4, part 6: it works against one public client."""
    served = [inspector, "--cli", *home.command("mcp", "serve")]
    tools = inspect(home, *served, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["exec", "wait", "look"]
    ask = ("--method", "tools/call", "--tool-name", "exec", "--tool-arg", f"code={CODE}")
    outcome = inspect(home, *served, *ask)["structuredContent"]
    assert outcome["status"] == "completed"
    assert outcome["value"]["n"] == {"sum": 2}


def test_the_inspector_calls_over_http(inspector: str, home: Home) -> None:
    """Issue 4, part 6."""
    with http(home) as web:
        reached = [inspector, "--cli", web.url, "--transport", "http"]
        ask = ("--method", "tools/call", "--tool-name", "exec", "--tool-arg", f"code={CODE}")
        outcome = inspect(home, *reached, *ask)["structuredContent"]
        assert outcome["value"]["n"] == {"sum": 2}
