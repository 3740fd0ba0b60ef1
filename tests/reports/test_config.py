"""Reports CF: what is configured is what happens."""

import json

import pytest

from tests.reports.rig import agent, cell
from toolcell import ConfigError
from toolcell.cli.main import run
from toolcell.config.parse import parse_config
from toolcell.config.resolve import code_mode_options
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio
DIRECT = ["add", "big", "boom", "count", "echo", "slow", "write_note"]


@pytest.mark.parametrize("everywhere", [None, False])
async def test_one_agents_setting_is_taken_and_touches_no_other(tmp_path, everywhere):
    """CF-01, rule 1.4, rule 2.2."""
    own = {"codeMode": {"enabled": True, "executor": "quickjs"}}
    config = {"agents": {"entries": {"a": {"tools": own}, "b": {}}}}
    if everywhere is not None:
        config["tools"] = {"codeMode": everywhere}
    async with agent(tmp_path, config=config) as made:
        await made.turn("nothing", agent_id="a")
        assert made.shown() == ["exec", "wait"]
        await made.turn("nothing", agent_id="b")
        assert made.shown() == DIRECT


async def test_a_models_true_or_false_beats_everything_around_it_and_changes_no_limit(tmp_path):
    """CF-01, rule 1.4: per-model true, false and unset; a fallback resolves on its own row."""
    config = {
        "agents": {
            "defaults": {"models": {"fixed/off": {"codeMode": False}}},
            "entries": {"a": {"models": {"fixed/on": {"codeMode": True}}}},
        },
        "tools": {"codeMode": {"enabled": True, "executor": "quickjs", "timeoutMs": 777}},
    }
    parsed = parse_config(config)
    assert code_mode_options(parsed, "a", "fixed/on").timeout_ms == 777
    async with agent(tmp_path, config=config) as made:
        for model, active in (("fixed/on", True), ("fixed/off", False), ("fixed/other", True)):
            await made.turn("nothing", agent_id="a", model=model)
            assert (made.shown() == ["exec", "wait"]) is active


@pytest.mark.parametrize(
    ("setting", "model", "active"),
    [
        ("auto", "preferred", True),
        ("auto", "capable", False),
        ("auto", "new", False),
        (True, "capable", True),
    ],
)
async def test_auto_engages_for_preferred_models_only(tmp_path, setting, model, active):
    """CF-03: what is reported equals the payload."""
    rows = [{"id": m, "compat": {"codeMode": m}} for m in ("preferred", "capable")]
    config = {"models": {"providers": {"dyn": {"models": rows}}}}
    async with agent(tmp_path, config=config, enabled=setting) as made:
        await made.turn("nothing", model=f"dyn/{model}")
        assert made.shown() == (["exec", "wait"] if active else DIRECT)
        assert bool(made.runtime.options("main", f"dyn/{model}").enabled) is active


@pytest.mark.parametrize(
    ("given", "active"),
    [({"timeoutMs": 5000}, False), ({}, False), (True, True), ("auto", False), (False, False)],
)
async def test_only_true_enables(tmp_path, given, active):
    """CF-05, rule 1.1."""
    if given is True:
        given = {"enabled": True, "executor": "quickjs"}
    async with agent(tmp_path, config={"tools": {"codeMode": given}}) as made:
        await made.turn("nothing")
        assert (made.shown() == ["exec", "wait"]) is active


def test_a_wrong_type_is_an_error_that_names_the_path():
    """CF-05, rule 1.2."""
    with pytest.raises(ConfigError, match=r"tools\.codeMode\.enabled"):
        parse_config({"tools": {"codeMode": {"enabled": "yes"}}})


async def test_disabled_code_mode_leaves_the_payload_byte_for_byte(tmp_path):
    """CF-05, rule 2.2, rule 1.1: absent, false and limits alone send the same bytes."""
    bodies = []
    for number, config in enumerate(
        ({}, {"tools": {"codeMode": False}}, {"tools": {"codeMode": {"timeoutMs": 5000}}})
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with agent(folder, config=config) as made:
            await made.turn("nothing")
            bodies.append(json.dumps(made.provider.bodies[0]))
    assert bodies[0] == bodies[1] == bodies[2]


async def test_the_executor_is_pinned_for_a_cell_and_the_status_tells_the_same(
    tmp_path, monkeypatch, capsys
):
    """CF-07, rule 1.5: an agent's executor beats the global one, before and after `wait`."""
    own = {"codeMode": {"executor": "quickjs"}}
    config = {
        "tools": {"codeMode": {"enabled": True, "executor": "node"}},
        "agents": {"entries": {"a": {"tools": own}}},
    }
    async with agent(tmp_path, config=config) as made:
        runtime = made.runtime
        mine = runtime.run(runtime.scope(agent_id="a", session_id="s"))
        parked = await mine.exec({"code": "await yield_control(); return 1"})
        # A run of another agent uses the other executor; the parked cell keeps its own.
        await runtime.run(runtime.scope(session_id="t")).exec({"code": "return 1"})
        assert (await mine.wait({"runId": parked.cell_id})).value == 1
        assert runtime.statistics()["quickjs"]["restored"] == 1
    file = tmp_path / "toolcell.json"
    file.write_text(json.dumps(config))
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    code = run(["config", "validate", "--config", str(file), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["agents"]["a"]["executor"] == "quickjs"
    assert told["agents"]["main"]["executor"] == "node"


@pytest.mark.parametrize("kind", ["disabled", "allow"])
async def test_a_run_without_tools_is_not_enforced(tmp_path, kind):
    """PP-02, rule 2.3: `disableTools` and an empty allow list send no tools and do not fail."""
    config = {"tools": {"allow": []}} if kind == "allow" else {}
    async with agent(tmp_path, config=config, enabled=True) as made:
        result = await made.turn("fine", tools_disabled=kind == "disabled")
        assert result.text == "fine"
        assert made.shown() == []


async def test_an_unknown_tool_is_answered_and_the_turn_goes_on(tmp_path):
    """CN-08: with code mode on, a hidden tool is unknown by its name."""
    async with agent(tmp_path, enabled=True) as made:
        await made.turn(tool_call("echo", {"v": 1}), cell("return await echo({v: 1})"), "done")
        first, second = made.results()
    assert "unknown tool" in first.lower()
    assert '"v":1' in second
