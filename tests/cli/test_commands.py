"""The command line as a script uses it: data to stdout, errors to stderr, exit codes."""

import json
import sys

import pytest

from toolcell.cli.main import run


@pytest.fixture
def toolcell(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own; returns exit code, stdout and stderr."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = run(words)
        got = capsys.readouterr()
        return code, got.out, got.err

    return command


def cell(tmp_path, code):
    file = tmp_path / "cell.js"
    file.write_text(code)
    return str(file)


def test_exec_runs_a_cell_and_prints_output_then_value(toolcell, tmp_path):
    file = cell(tmp_path, "text('hello'); json({b: 1}); return {c: 2}")
    assert toolcell("exec", file, "--executor", "quickjs") == (
        0,
        'hello\n{"b":1}\n{"c":2}\n',
        "",
    )


def test_exec_with_json_prints_the_contracts_result(toolcell, tmp_path):
    file = cell(tmp_path, "return catalog.all().length")
    code, out, _ = toolcell("exec", file, "--executor", "quickjs", "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (0, "completed")
    assert document["value"] == document["telemetry"]["catalogSize"] > 0


def test_exec_takes_the_program_itself(toolcell, tmp_path):
    for option in ("--code", "-c"):
        assert toolcell("exec", option, "-1; return 1 + 1", "--executor", "quickjs")[:2] == (
            0,
            "2\n",
        )
    code, _, err = toolcell("exec", cell(tmp_path, "return 1"), "-c", "return 2")
    assert (code, "give one of them" in err) == (2, True)
    code, _, err = toolcell("exec", "return 1")
    assert (code, "--code" in err) == (2, True)
    assert toolcell("exec", "a\0b")[0] == 2


def test_exec_waits_until_the_cell_is_done(toolcell, tmp_path):
    """rule 3.6."""
    file = cell(tmp_path, "text('a'); await yield_control(); text('b'); return 'done'")
    assert toolcell("exec", file, "--executor", "quickjs")[:2] == (0, "a\nb\ndone\n")


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ("throw new Error('boom')", 1, "Error: boom"),
        ("const x = ;", 2, "SyntaxError"),
        ("ls -la", 2, "JavaScript, not shell"),
        ("import('fs')", 2, "module access is disabled"),
        ("", 2, "non-empty"),
    ],
)
def test_exec_tells_what_failed(toolcell, tmp_path, source, code, words):
    got, out, err = toolcell("exec", cell(tmp_path, source), "--executor", "quickjs")
    assert (got, out) == (code, "")
    assert words in err


def test_bad_usage_is_told_with_exit_code_2(toolcell, tmp_path):
    assert toolcell("exec", "absent.js")[0] == 2
    assert toolcell("exec", "--nope")[0] == 2
    assert toolcell("frobnicate")[0] == 2
    assert toolcell("exec", cell(tmp_path, "return 1"), "--executor", "deno")[0] == 2
    code, _, err = toolcell("config", "get", "a..b")
    assert code == 2
    assert "not a config path" in err


def test_a_binary_file_is_no_program(toolcell, tmp_path):
    (tmp_path / "bad.js").write_bytes(b"\xff\xfe return 1")
    code, _, err = toolcell("exec", "bad.js")
    assert code == 2
    assert "not UTF-8" in err


def test_the_shell_tool_needs_an_approval_that_nobody_gives(toolcell, tmp_path):
    """rule 2.7; closed when nobody answers."""
    file = cell(tmp_path, "try { await exec({command: 'id'}) } catch (e) { return e.code }")
    assert toolcell("exec", file, "--executor", "quickjs")[:2] == (0, "blocked\n")


def test_config_is_set_validated_and_read_back(toolcell):
    assert toolcell("config", "set", "tools.codeMode.executor", "quickjs")[0] == 0
    assert toolcell("config", "get", "tools.codeMode.executor") == (0, "quickjs\n", "")
    code, _, err = toolcell("config", "set", "tools.codeMode.enabled", "yes")
    assert code == 2
    assert "not written: tools.codeMode.enabled" in err
    assert toolcell("config", "set", "tools.codeMode.enabled", "true")[0] == 0
    code, out, _ = toolcell("config", "validate", "--json")
    assert json.loads(out)["agents"]["main"] == {
        "codeMode": True,
        "executor": "quickjs",
        "guestApi": "catalog",
    }
    for path in ("mcp.servers.x.comand", "mcp.servers.x.oauth.clientID"):
        code, _, err = toolcell("config", "set", path, "y")
        assert code == 2
        assert f"not written: {path}: unknown key; did you mean " in err
    assert toolcell("config", "set", "mcp.servers.x.args", '["a"]')[0] == 0  # before its command
    assert toolcell("config", "unset", "tools.codeMode")[0] == 0
    assert toolcell("config", "get", "tools.codeMode")[0] == 1


def test_doctor_migrates_the_legacy_runtime(toolcell, tmp_path):
    """rule 1.3, BEHAVIOURS 22."""
    file = tmp_path / "old.json"
    file.write_text('{tools: {codeMode: {runtime: "quickjs-wasi", languages: ["typescript"]}}}')
    _, out, _ = toolcell("doctor", "--config", str(file), "--json")
    states = {(each["state"], each["subject"]) for each in json.loads(out)}
    assert ("warning", "config") in states
    code, out, _ = toolcell("doctor", "--config", str(file), "--fix", "--json")
    assert code == 0
    findings = {each["subject"]: each for each in json.loads(out)}
    assert findings["config"]["state"] == "fixed"
    assert 'guestApi: "tools"' in findings["config"]["text"]
    assert findings["executor quickjs (configured)"]["state"] == "ok"
    assert "quickjs-ng " in findings["executor quickjs (configured)"]["text"]
    assert "Node " in findings["executor node"]["text"]
    assert 'executor: "quickjs"' in file.read_text()
    assert "typescript" in file.read_text()


def test_doctor_says_of_each_model_whether_it_can_be_asked(toolcell, tmp_path, monkeypatch):
    """No model named, an unknown provider, a missing SDK: told before the first run."""
    assert "model of main: none; agents need one" in toolcell("doctor")[1]
    file = tmp_path / "models.json5"
    file.write_text("""{
      models: { providers: { local: { baseUrl: "http://127.0.0.1:9/v1" },
                             claude: { api: "anthropic", apiKey: "k-0123456789" } } },
      agents: { defaults: { model: "local/a", fallbacks: ["claude/b"] },
                entries: { eye: { model: "locl/a" } } },
    }""")
    monkeypatch.setitem(sys.modules, "anthropic", None)
    code, out, _ = toolcell("doctor", "--config", str(file), "--json")
    found = {each["subject"]: each for each in json.loads(out) if "model" in each["subject"]}
    assert code == 1
    assert found["model local/a (main)"]["state"] == "ok"
    assert 'pip install "toolcell[anthropic]"' in found["model claude/b (main, eye)"]["text"]
    assert "unknown provider (configured: claude, local)" in found["model locl/a (eye)"]["text"]


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("short", "gateway.token: has 5 characters, too few to keep anybody out; give at least 16"),
        ("", "gateway.token: has 0 characters"),
        ("${GW_TOKEN}", "a space or an end of line at place 21"),
    ],
)
@pytest.mark.parametrize("command", ["gateway --port 0", "approvals list", "config validate"])
def test_a_token_that_keeps_nobody_out_is_refused(
    toolcell, tmp_path, monkeypatch, token, says, command
):
    """The rule of `mcp serve --token`; whoever reaches the gateway can run every tool."""
    monkeypatch.setenv("GW_TOKEN", "0123456789abcdefghij\n")
    file = tmp_path / "token.json5"
    file.write_text(json.dumps({"gateway": {"token": token}}))
    code, out, err = toolcell(*command.split(), "--config", str(file))
    assert (code, out) == (2, "")
    assert says in err
    assert "0123456789" not in err


def test_a_short_token_of_the_gateway_is_told_by_doctor_and_hinders_nothing_else(
    toolcell, tmp_path
):
    file = tmp_path / "token.json5"
    file.write_text('{ gateway: { token: "short" } }')
    assert toolcell("tools", "list", "--config", str(file))[0] == 0
    code, out, _ = toolcell("doctor", "--config", str(file), "--json")
    (found,) = [each for each in json.loads(out) if each["subject"] == "gateway token"]
    assert (code, found["state"]) == (1, "error")
    assert "gateway.token: has 5 characters" in found["text"]


def test_doctor_tells_of_the_gateways_token_without_showing_it(toolcell, tmp_path):
    assert "gateway token" not in toolcell("doctor")[1]
    file = tmp_path / "token.json5"
    file.write_text('{ gateway: { token: "0123456789abcdef" } }')
    _, out, _ = toolcell("doctor", "--config", str(file))
    assert "ok       gateway token: gateway.token, long enough" in out
    assert "0123456789" not in out
    kept = tmp_path / "home" / "gateway-token"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("short\n")
    code, out, _ = toolcell("doctor")
    assert code == 1
    assert f"gateway token: {str(kept)!r} holds no token of toolcell's; delete it" in out


PLUGIN = '''
from toolcell import define_tool_plugin, tool

@tool
def anchor() -> int:
    """Say where."""
    return 1

plugin = define_tool_plugin(id="plug", name="Plug", description="One tool.", tools=[anchor])
'''


def test_paths_of_a_config_file_start_at_its_folder(toolcell, tmp_path, monkeypatch):
    """The same file loads the same plugin and reads the same files, wherever it is started from."""
    project, away = tmp_path / "project", tmp_path / "away"
    (project / "work").mkdir(parents=True)
    away.mkdir()
    (project / "work" / "a.txt").write_text("here")
    (project / "plug.py").write_text(PLUGIN)
    tree = {
        "plugins": {"paths": ["./plug.py"], "entryPoints": False},
        "agents": {"defaults": {"workspace": "work"}},
    }
    (project / "toolcell.json").write_text(json.dumps(tree))
    file = cell(tmp_path, "return [await anchor({}), (await read({path: 'a.txt'})).text]")
    for folder in (project, away):
        monkeypatch.chdir(folder)
        words = ("exec", file, "--executor", "quickjs", "--config", "../project/toolcell.json")
        assert toolcell(*words) == (0, '[1,"here"]\n', "")


def test_the_folder_of_the_token_is_not_set_as_a_workspace_by_accident(toolcell):
    code, _, err = toolcell("config", "set", "agents.defaults.workspace", ".")
    assert code == 2
    assert "not written: agents.defaults.workspace" in err
    assert "where toolcell keeps its token" in err


@pytest.mark.parametrize("command", ["doctor", "gateway", "tools list"])
def test_a_config_that_is_no_json5_is_named(toolcell, tmp_path, command):
    file = tmp_path / "cut.json5"
    file.write_text("{ gateway: { port: 1 ")
    code, _, err = toolcell(*command.split(), "--config", str(file))
    assert code == 2
    assert f"config file {str(file)!r} is not valid JSON5" in err


def test_a_run_that_failed_leaves_stdout_empty(toolcell, tmp_path):
    """There is no answer to print; an empty line would pass for one in a script."""
    file = tmp_path / "nobody.json5"
    file.write_text(
        """{ models: { providers: { local: { baseUrl: "http://127.0.0.1:9/v1" } } } }"""
    )
    words = ("agent", "-m", "hi", "--model", "local/a", "--config", str(file))
    code, out, err = toolcell(*words)
    assert (code, out) == (1, "")
    assert "is the endpoint running" in err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("apply_pach", "did you mean openclaw:core:apply_patch?"),
        ("xyzzy", "`toolcell tools list` shows them all"),
    ],
)
def test_an_unknown_tool_is_told_with_what_to_do(toolcell, name, hint):
    code, _, err = toolcell("tools", "describe", name)
    assert (code, err) == (1, f"toolcell: unknown tool {name!r}; {hint}\n")


def test_approvals_without_a_token_say_what_to_do(toolcell):
    code, _, err = toolcell("approvals", "list")
    assert code == 2
    assert "start `toolcell gateway` first, or name its config file with --config" in err


def test_demo_answers_the_same_both_ways_with_a_smaller_request(toolcell):
    """The demo: about 100 tools, one call that outlives exec, one answer."""
    code, out, err = toolcell("demo", "--json")
    assert (code, err) == (0, "")
    got = json.loads(out)
    direct, hidden = got["direct"], got["codeMode"]
    assert direct["answer"] == hidden["answer"] != ""
    assert direct["toolsShown"] == direct["tools"] >= 100
    assert hidden["toolsShown"] == 2
    assert hidden["requestBytes"][0] * 2 < direct["requestBytes"][0]
    assert hidden["parkedCells"] >= 1
    outer = hidden["calls"][0]
    assert (outer["toolName"], len(outer["children"])) == ("exec", 11)
    assert all(child["parentToolCallId"] == outer["callId"] for child in outer["children"])
    assert {call["toolName"] for call in hidden["calls"][1:]} == {"wait"}


LISTING = [
    {"name": "create_issue", "server": "github", "description": "Create a new issue in GitHub."},
    {"name": "close_issue", "server": "github", "description": "Close an issue."},
    {"name": "slow", "description": "Wait."},
]


@pytest.fixture
def listing(tmp_path):
    file = tmp_path / "tools.jsonl"
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    file.write_text("\n".join(json.dumps({**row, "inputSchema": schema}) for row in LISTING))
    return str(file)


def test_tools_are_listed_searched_and_described(toolcell, listing):
    """`toolcell tools` over a file; the seed's own query finds the GitHub tool first."""
    code, out, _ = toolcell("tools", "list", "--catalog", listing, "--json")
    assert [row["name"] for row in json.loads(out)] == ["slow", "close_issue", "create_issue"]
    code, out, _ = toolcell(
        "tools", "search", "建立 GitHub 議題", "--catalog", listing, "--json", "--explain"
    )
    hits = json.loads(out)
    assert (code, hits[0]["id"]) == (0, "mcp:github:create_issue")
    assert hits[0]["input"] == "unknown"
    assert hits[0]["why"]
    assert not hits[0]["exact"]
    code, out, _ = toolcell("tools", "search", "slow", "--catalog", listing, "--json")
    assert json.loads(out)[0]["exact"]
    code, out, _ = toolcell("tools", "search", "slow", "--catalog", listing)
    assert "exact" in out.splitlines()[1]
    code, out, _ = toolcell("tools", "describe", "slow", "--catalog", listing, "--json")
    assert json.loads(out)["parameters"]["properties"] == {"title": {"type": "string"}}
    code, out, err = toolcell("tools", "describe", "issue", "--catalog", listing)
    assert (code, out) == (1, "")
    assert "did you mean mcp:github:" in err
    code, out, err = toolcell("tools", "search", "zzqx flurb", "--catalog", listing)
    assert "no tool matches" in err


def test_declarations_are_printed(toolcell, listing):
    """rule 5.2: the same text `API.read` gives a guest."""
    code, out, _ = toolcell("tools", "dts", "--catalog", listing, "--json")
    paths = [row["path"] for row in json.loads(out)]
    assert paths == ["mcp/index.d.ts", "mcp/github.d.ts", "tools/slow.d.ts"]
    code, out, _ = toolcell("tools", "dts", "mcp/github.d.ts", "--catalog", listing)
    assert "declare namespace MCP.github {" in out
    assert "function createIssue(input?: {" in out
    code, out, _ = toolcell("tools", "dts", "mcp/../x.d.ts", "--catalog", listing)
    assert (code, out) == (1, "")


def test_a_broken_listing_names_the_line(toolcell, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"name": "a", "description": "", "inputSchema": {}}\n{')
    code, _, err = toolcell("tools", "list", "--catalog", "bad.jsonl")
    assert code == 2
    assert "line 2" in err


@pytest.mark.parametrize("words", [("--exector", "node"), ("--exector=node",)])
def test_a_misspelt_option_is_not_taken_for_a_file(toolcell, words):
    code, out, err = toolcell("exec", *words)
    assert (code, out) == (2, "")
    assert "nknown option" in err
    assert "--exector" in err
