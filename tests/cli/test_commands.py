"""The command line as a script uses it: data to stdout, errors to stderr, exit codes."""

import json

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
    assert 'executor: "quickjs"' in file.read_text()
    assert "typescript" in file.read_text()


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
