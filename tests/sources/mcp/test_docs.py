"""The examples of the MCP pages are configs that are taken as written."""

import re
import sys
from pathlib import Path

import pytest

from toolcell import CodeMode, Completed
from toolcell.app.settings import mcp_servers_of, secrets_of
from toolcell.cli.mcp_command import app
from toolcell.config.load import load_config
from toolcell.config.parse import parse_config
from toolcell.sources.mcp.oauth_settings import OAuthSettings
from toolcell.sources.mcp.settings import parse_server

DOCS = Path(__file__).parents[3] / "docs"
FLAGS = re.MULTILINE | re.DOTALL
CONFIGS = re.findall(r"^```json5\n(.*?)^```$", (DOCS / "mcp.md").read_text(), FLAGS)


@pytest.mark.parametrize("text", CONFIGS)
def test_the_examples_are_configs(text: str, tmp_path: Path) -> None:
    file = tmp_path / "toolcell.json"
    file.write_text(text)
    servers = load_config(file).mcp.servers
    assert servers
    for name, mapping in servers.items():
        parse_server(name, mapping)


@pytest.mark.anyio
async def test_the_program_with_a_template_runs_as_written() -> None:
    """BEHAVIOURS 225."""
    (program,) = re.findall(r"^```js\n(.*?)^```$", (DOCS / "mcp.md").read_text(), FLAGS)
    args = ["-m", "toolcell.testing.mcp_fixture", "--resources"]
    notes = {"notes": {"command": sys.executable, "args": args}}
    async with CodeMode(mcp_servers=notes, executor="quickjs") as cm:
        outcome = await cm.exec(program)
    assert isinstance(outcome, Completed), outcome
    assert outcome.value["contents"][0]["text"] == "text of note://first%20one"


def test_every_key_of_oauth_has_a_line() -> None:
    text = (DOCS / "mcp.md").read_text()
    for key in OAuthSettings.__dataclass_fields__:
        camel = re.sub(r"_([a-z])", lambda found: found[1].upper(), key)
        assert f"| `{camel}` |" in text


def test_every_option_of_the_server_has_a_line() -> None:
    text = (DOCS / "mcp-server.md").read_text()
    options = {
        name
        for argument in app["serve"].assemble_argument_collection()
        for name in argument.names
        if name.startswith("--") and not name.startswith("--no")
    }
    assert {"--http", "--token", "--executor", "--guest-api"} <= options
    assert all(f"`{name}" in text for name in options - {"--json"})


def test_a_client_secret_may_come_from_a_variable_and_is_never_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rule 8.4: no secrets in the record."""
    value = "correct horse battery"
    monkeypatch.setenv("ROBOT_SECRET", value)
    oauth = {
        "grant": "client_credentials",
        "clientId": "robot",
        "clientSecret": "${ROBOT_SECRET}",
        "issuer": "https://login.example",
    }
    server = {"url": "https://robot.example/mcp", "oauth": oauth}
    servers = mcp_servers_of(parse_config({"mcp": {"servers": {"robot": server}}}))
    assert servers["robot"].oauth.client_secret == value
    assert value in secrets_of({}, servers)
    assert value not in repr(servers)
