"""Which mode a run has, and what then is visible."""

import pytest

from tests.toolsearch.kit import Fixed, Told, core, ground
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.config.resolve import tool_search_options
from toolcell.errors import ConfigError
from toolcell.toolsearch.child import launch, lock
from toolcell.toolsearch.child.lock import LockUnavailableError

pytestmark = pytest.mark.anyio


def options(setting, agent="main", **agents):
    entries = {name: {"tools": {"toolSearch": value}} for name, value in agents.items()}
    tree = {"tools": {} if setting is ... else {"toolSearch": setting}}
    if entries:
        tree["agents"] = {"entries": entries}
    return tool_search_options(parse_config(tree), agent)


@pytest.mark.parametrize(
    ("setting", "enabled", "mode"),
    [
        (..., False, "code"),
        (False, False, "code"),
        (True, True, "code"),
        ({}, True, "code"),
        ({"mode": "tools"}, True, "tools"),
        ({"mode": "directory"}, True, "directory"),
        ({"codeTimeoutMs": 2000}, True, "code"),
        ({"enabled": False, "mode": "tools"}, False, "tools"),
        ({"enabled": True}, True, "code"),
    ],
)
def test_the_setting_is_off_unless_it_is_made(setting, enabled, mode):
    """rule 10.1, BEHAVIOURS 293, 294, CF-06."""
    found = options(setting)
    assert (found.enabled, found.mode) == (enabled, mode)


def test_numbers_are_clamped():
    """rule 10.1, BEHAVIOURS 295."""
    plain = options(True)
    assert (plain.code_timeout_ms, plain.search_default_limit, plain.max_search_limit) == (
        10_000,
        8,
        20,
    )
    low = options({"codeTimeoutMs": 1, "searchDefaultLimit": 0, "maxSearchLimit": 0})
    assert (low.code_timeout_ms, low.search_default_limit, low.max_search_limit) == (1000, 1, 1)
    high = options({"codeTimeoutMs": 10**9, "searchDefaultLimit": 40, "maxSearchLimit": 99})
    assert (high.code_timeout_ms, high.search_default_limit, high.max_search_limit) == (
        60_000,
        40,
        50,
    )
    assert options({"searchDefaultLimit": 20, "maxSearchLimit": 5}).search_default_limit == 5


@pytest.mark.parametrize("wrong", [{"mode": "magic"}, {"modes": "code"}, {"codeTimeoutMs": "x"}])
def test_a_wrong_setting_is_an_error_and_enables_nothing(wrong):
    """rule 10.1, rule 1.2: unlike BEHAVIOURS 294, a typing error is told."""
    with pytest.raises(ConfigError, match="toolSearch"):
        options(wrong)


def test_an_agent_has_its_own_setting():
    """rule 10.1."""
    assert options({"mode": "tools"}, "a", a=False).enabled is False
    assert options(..., "a", a={"mode": "directory"}).mode == "directory"
    mixed = options({"mode": "tools", "maxSearchLimit": 9}, "a", a={"codeTimeoutMs": 5000})
    assert (mixed.enabled, mixed.mode, mixed.max_search_limit) == (True, "tools", 9)


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (False, ["a"]),
        (None, ["a"]),
        (True, ["tool_search_code"]),
        ({"mode": "tools"}, ["tool_search", "tool_describe", "tool_call"]),
        ({"mode": "directory"}, ["tool_search", "tool_describe", "tool_call"]),
    ],
)
async def test_each_setting_shows_its_own_controls(setting, shown):
    """CF-06, BEHAVIOURS 297, rule 10.2, rule 10.3, rule 10.4."""
    tree = {"tools": {} if setting is None else {"toolSearch": setting}}
    assert await visible(tree) == shown


@pytest.mark.parametrize("setting", [True, {"mode": "tools"}, {"mode": "directory"}])
async def test_code_mode_wins_and_none_of_the_controls_is_there(setting):
    """rule 2.4, CF-06."""
    code_mode = {"enabled": True, "executor": "quickjs"}
    tree = {"tools": {"toolSearch": setting, "codeMode": code_mode}}
    assert await visible(tree) == ["exec", "wait"]


async def visible(tree):
    source = Fixed([core(Told(), "a")])
    runtime = Runtime(parse_config(tree), Parts(sources=(source,), load_plugins=False), Host())
    await runtime.start()
    try:
        run = runtime.run(runtime.scope())
        return [tool.name for tool in run.surface().plan.visible]
    finally:
        await runtime.aclose()


async def test_a_run_without_tools_has_no_controls():
    """rule 2.3, rule 10.6."""
    async with ground([core(Told(), "a")], allow=[]) as g:
        assert g.shown == []


async def test_the_catalog_is_rebuilt_when_a_source_changed():
    """BEHAVIOURS 301: between turns the tools may be others."""
    told = Told()
    async with ground([core(told, "a", "Alpha")]) as g:
        first = g.run.surface().catalog
        assert g.run.surface().catalog is first
        g.source.become([core(told, "b", "Beta")])
        assert (await g.ask("tool_search", query="beta")).details[0]["name"] == "b"


async def test_no_child_process_means_the_structured_tools(monkeypatch):
    """rule 10.2, BEHAVIOURS 296: `code` falls back to `tools` before anything is compacted."""

    async def refused(_self):
        message = "the kernel refuses a seccomp filter"
        raise LockUnavailableError(message)

    monkeypatch.setattr(launch.Launcher, "_probed", refused)
    async with ground([core(Told(), "a")], "code") as g:
        assert g.shown == ["tool_search", "tool_describe", "tool_call"]
        assert g.run.surface().search.mode == "tools"
        await g.sessions.flush()
        records = await g.sessions.events("s1")
        told = [r.data()["message"] for r in records if r.type == "diagnostic"]
        assert any("seccomp" in text and "'tools' instead of 'code'" in text for text in told)


async def test_a_child_that_can_get_out_counts_as_unable_to_start(monkeypatch):
    """rule 10.2: isolation is shown at start, not assumed."""
    monkeypatch.setattr(lock, "_lock_this_thread", lambda: None)
    async with ground([core(Told(), "a")], "code") as g:
        assert g.run.surface().search.mode == "tools"
        await g.sessions.flush()
        records = await g.sessions.events("s1")
        told = " ".join(r.data()["message"] for r in records if r.type == "diagnostic")
        assert "the network is open to it" in told
