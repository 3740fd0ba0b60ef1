"""What `tools.swarm` and `agents.*.subagents` come to for an agent."""

import pytest

from toolcell.app.children import ChildRuns
from toolcell.config.parse import parse_config
from toolcell.config.resolve import swarm_options
from toolcell.config.swarm import SwarmOptions
from toolcell.errors import ConfigError
from toolcell.providers.registry import ProviderRegistry
from toolcell.swarm.request import MAX_SCHEMA_CHARS, read_request


def options(swarm, own=None, agent="main"):
    entry = {} if own is None else {"tools": {"swarm": own}}
    tree = {"tools": {"swarm": swarm}, "agents": {"entries": {"main": entry}}}
    return swarm_options(parse_config(tree), agent)


def test_it_is_off_and_has_the_defaults_of_the_contract():
    """rule 11.1, rule 11.2, BEHAVIOURS 366, 367."""
    none = swarm_options(parse_config({}), "main")
    assert none == SwarmOptions()
    assert not none.enabled
    assert (none.max_concurrent, none.max_children_per_group) == (8, 50)
    assert (none.max_total_per_group, none.wait_timeout_seconds_max) == (200, 600)
    assert none.default_agent_id == ""


def test_numbers_above_the_caps_are_the_caps():
    """rule 11.2, BEHAVIOURS 366."""
    huge = 10**9
    made = options(
        {
            "maxConcurrent": huge,
            "maxChildrenPerGroup": huge,
            "maxTotalPerGroup": huge,
            "waitTimeoutSecondsMax": huge,
        }
    )
    assert (made.max_concurrent, made.max_children_per_group) == (1000, 10_000)
    assert (made.max_total_per_group, made.wait_timeout_seconds_max) == (100_000, 86_400)


@pytest.mark.parametrize("bad", [{"maxConcurrent": "8"}, {"backend": "moon"}, {"enable": True}])
def test_values_that_mean_nothing_are_told(bad):
    """rule 11.2: a config is never half understood."""
    with pytest.raises(ConfigError, match=r"tools\.swarm"):
        options(bad)


@pytest.mark.parametrize(
    ("swarm", "own", "enabled"),
    [
        (True, None, True),
        ({"maxConcurrent": 4}, None, False),
        (True, False, False),
        (True, {"maxConcurrent": 4}, True),
        (False, True, True),
        ({"enabled": True, "maxConcurrent": 4}, {"enabled": False, "maxConcurrent": 5}, False),
    ],
)
def test_an_agents_own_setting_wins_and_limits_alone_do_not_enable(swarm, own, enabled):
    """rule 11.1, BEHAVIOURS 367."""
    assert options(swarm, own).enabled is enabled


def test_an_agents_own_limits_are_taken_one_by_one():
    made = options(
        {"enabled": True, "maxConcurrent": 4, "maxTotalPerGroup": 9}, {"maxConcurrent": 2}
    )
    assert (made.max_concurrent, made.max_total_per_group) == (2, 9)


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (None, ("main", "worker")),
        ([], ("main",)),
        (["critic", "ghost"], ("main", "critic")),
        (["*"], ("main", "worker", "critic")),
    ],
)
def test_only_configured_agents_can_be_allowed(listed, allowed):
    """SW-09: a wildcard is every agent there is, and no other."""
    subagents = {} if listed is None else {"allowAgents": listed}
    tree = {
        "tools": {"swarm": {"enabled": True, "defaultAgentId": "worker"}},
        "agents": {"entries": {"main": {"subagents": subagents}, "worker": {}, "critic": {}}},
    }
    rules = ChildRuns(parse_config(tree), ProviderRegistry({})).rules("main")
    assert rules.allowed == allowed
    assert rules.max_depth == 1


def test_a_schema_that_takes_long_to_compile_is_refused():
    """Twenty thousand patterns held the event loop for most of a second, for each child."""
    properties = {f"k{i}": {"type": "string", "pattern": "a{1,9}"} for i in range(20_000)}
    refused = read_request("agents.run", "x", {"schema": {"properties": properties}})
    assert isinstance(refused, str)
    assert refused.endswith(f"characters as JSON, at most {MAX_SCHEMA_CHARS}")
