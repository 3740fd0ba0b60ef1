"""The config tree: shorthands, clamps, and errors that name the path."""

import math

import pytest

from toolcell.config.parse import parse_config
from toolcell.config.resolve import code_mode_options
from toolcell.errors import ConfigError


def options(code_mode, agent="main", model=None, **tree):
    return code_mode_options(parse_config({"tools": {"codeMode": code_mode}, **tree}), agent, model)


@pytest.mark.parametrize(
    ("given", "enabled"),
    [
        (True, True),
        (False, False),
        ({}, False),
        ({"timeoutMs": 5000}, False),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ("auto", False),
    ],
)
def test_only_an_explicit_true_enables_code_mode(given, enabled):
    """rule 1.1, BEHAVIOURS 1, BEHAVIOURS 2, BEHAVIOURS 3, BEHAVIOURS 4, CF-05."""
    assert options(given).enabled is enabled


def test_code_mode_is_off_when_nothing_is_said():
    """rule 1.1."""
    assert code_mode_options(parse_config({}), "main").enabled is False


def test_defaults_are_those_of_the_contract():
    """rule 1.2, BEHAVIOURS 6."""
    got = options(True)
    assert (got.timeout_ms, got.memory_limit_bytes, got.max_output_bytes) == (
        10000,
        67108864,
        65536,
    )
    assert (got.max_snapshot_bytes, got.max_pending_tool_calls) == (10485760, 16)
    assert (got.snapshot_ttl_seconds, got.search_default_limit, got.max_search_limit) == (
        900,
        8,
        50,
    )
    assert (got.executor, got.guest_api, got.languages) == (
        "node",
        "catalog",
        ("javascript", "typescript"),
    )


@pytest.mark.parametrize(
    ("key", "name", "low", "high"),
    [
        ("timeoutMs", "timeout_ms", 100, 60000),
        ("memoryLimitBytes", "memory_limit_bytes", 1048576, 1073741824),
        ("maxOutputBytes", "max_output_bytes", 1024, 10485760),
        ("maxSnapshotBytes", "max_snapshot_bytes", 1024, 268435456),
        ("maxPendingToolCalls", "max_pending_tool_calls", 1, 128),
        ("snapshotTtlSeconds", "snapshot_ttl_seconds", 1, 86400),
        ("maxSearchLimit", "max_search_limit", 1, 50),
    ],
)
def test_numbers_outside_are_clamped(key, name, low, high):
    """rule 1.2, BEHAVIOURS 7, BEHAVIOURS 8, BEHAVIOURS 9, BEHAVIOURS 10, BEHAVIOURS 11."""
    assert getattr(options({key: 0}), name) == low
    assert getattr(options({key: -5}), name) == low
    assert getattr(options({key: 2**40}), name) == high
    assert getattr(options({key: math.inf}), name) == high
    assert getattr(options({key: low}), name) == low
    assert getattr(options({key: high}), name) == high


def test_the_default_search_limit_follows_the_largest_one_down():
    """BEHAVIOURS 13, BEHAVIOURS 14, rule 1.2."""
    got = options({"enabled": True, "maxSearchLimit": 3})
    assert (got.max_search_limit, got.search_default_limit) == (3, 3)
    assert options({"maxSearchLimit": 500}).max_search_limit == 50


@pytest.mark.parametrize(
    ("code_mode", "path"),
    [
        ({"enabled": "yes"}, "tools.codeMode.enabled"),
        ({"enabled": 1}, "tools.codeMode.enabled"),
        ({"timeoutMs": "5"}, "tools.codeMode.timeoutMs"),
        ({"timeoutMs": math.nan}, "tools.codeMode.timeoutMs"),
        ({"timeoutMs": True}, "tools.codeMode.timeoutMs"),
        ({"timeoutMs": 1.5}, "tools.codeMode.timeoutMs"),
        ({"enabled": True, "timeoutMS": 5}, "tools.codeMode.timeoutMS"),
        ({"executor": "deno"}, "tools.codeMode.executor"),
        ({"runtime": "v8"}, "tools.codeMode.runtime"),
        ("yes", "tools.codeMode"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_path(code_mode, path):
    """rule 1.2, CF-05, BEHAVIOURS 21."""
    with pytest.raises(ConfigError) as caught:
        options(code_mode)
    assert caught.value.path == path
    assert caught.value.message.startswith(f"{path}: ")


def test_an_unknown_key_gets_a_suggestion_and_all_problems_are_told_at_once():
    """Bad input names the place and the remedy."""
    with pytest.raises(ConfigError, match="did you mean 'timeoutMs'"):
        options({"timeoutMS": 5})
    with pytest.raises(ConfigError) as caught:
        parse_config({"tols": {}, "tools": {"allow": "x", "codeMode": {"enabled": 3}}})
    for path in ("tols", "tools.allow", "tools.codeMode.enabled"):
        assert f"\n  {path}: " in caught.value.message


def test_an_agents_fields_win_one_by_one():
    """rule 1.5, BEHAVIOURS 15, BEHAVIOURS 16, CF-01, CF-07."""
    tree = {
        "agents": {
            "entries": {
                "ops": {"tools": {"codeMode": {"enabled": True, "searchDefaultLimit": 4}}},
                "off": {"tools": {"codeMode": False}},
                "sand": {"tools": {"codeMode": {"executor": "quickjs"}}},
            }
        }
    }
    base = {"enabled": False, "timeoutMs": 1234, "searchDefaultLimit": 6}
    ops = options(base, "ops", **tree)
    assert (ops.enabled, ops.timeout_ms, ops.search_default_limit) == (True, 1234, 4)
    assert options(True, "off", **tree).enabled is False
    assert options(True, "someone-else", **tree).enabled is True
    assert options({"executor": "node"}, "sand", **tree).executor == "quickjs"


def test_the_first_explicit_switch_wins():
    """rule 1.4, BEHAVIOURS 17: agent's model, agent, defaults' model, global."""

    def tree(agent_model=None, agent=None, default_model=None, everywhere=None):
        row = {} if agent_model is None else {"models": {"p/m": {"codeMode": agent_model}}}
        tools = {} if agent is None else {"tools": {"codeMode": agent}}
        default = {} if default_model is None else {"models": {"p/m": {"codeMode": default_model}}}
        return parse_config(
            {
                "tools": {} if everywhere is None else {"codeMode": everywhere},
                "agents": {"defaults": default, "entries": {"a": {**row, **tools}}},
            }
        )

    def enabled(model="p/m", **levels):
        return code_mode_options(tree(**levels), "a", model).enabled

    assert enabled(agent_model=False, agent=True, default_model=True, everywhere=True) is False
    assert enabled(agent=False, default_model=True, everywhere=True) is False
    assert enabled(default_model=False, everywhere=True) is False
    assert enabled(everywhere=True) is True
    assert enabled(agent_model=True) is True
    assert enabled(model="p/fallback", agent_model=True) is False
    limits = {"enabled": False, "timeoutMs": 777}
    got = code_mode_options(tree(agent_model=True, everywhere=limits), "a", "p/m")
    assert (got.enabled, got.timeout_ms) == (True, 777)


def test_a_wildcard_model_row_may_not_carry_code_mode():
    """rule 1.4, BEHAVIOURS 18."""
    with pytest.raises(ConfigError, match="wildcard"):
        parse_config({"agents": {"defaults": {"models": {"p/*": {"codeMode": True}}}}})


def test_auto_engages_only_for_preferred_models():
    """rule 1.2, BEHAVIOURS 19, CF-03."""
    rows = [{"id": "good", "compat": {"codeMode": "preferred"}}]
    rows.append({"id": "able", "compat": {"codeMode": "capable"}})
    tree = {"models": {"providers": {"p": {"models": rows}}}}
    assert options("auto", model="p/good", **tree).enabled is True
    assert options("auto", model="p/able", **tree).enabled is False
    assert options("auto", model="p/other", **tree).enabled is False
    assert options("auto", model=None, **tree).enabled is False
    assert options(True, model="p/able", **tree).enabled is True


def test_the_executor_depends_on_the_guest_api_when_it_is_omitted():
    """rule 1.3, BEHAVIOURS 20, BEHAVIOURS 22."""
    assert options(True).executor == "node"
    assert options({"guestApi": "tools"}).executor == "quickjs"
    assert options({"guestApi": "tools", "executor": "node"}).executor == "node"
    legacy = options({"runtime": "quickjs-wasi", "languages": ["typescript"]})
    assert (legacy.executor, legacy.languages) == ("quickjs", ("typescript",))
    assert options({"runtime": "quickjs-wasi", "executor": "node"}).executor == "node"
