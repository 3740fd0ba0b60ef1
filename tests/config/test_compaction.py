"""`agents.*.compaction` and `contextWindow`: what is valid, and who says it for an agent."""

import pytest

from toolcell.config.compaction import CompactionOptions
from toolcell.config.parse import parse_config
from toolcell.config.resolve import compaction_options, context_window
from toolcell.errors import ConfigError


def test_it_is_on_with_the_documented_numbers_when_nobody_says_anything():
    options = compaction_options(parse_config({}), "main")
    assert options == CompactionOptions(
        enabled=True, reserve_tokens=16384, keep_recent_tokens=20000
    )


def test_an_agents_fields_win_one_by_one_over_the_defaults():
    agents = {
        "defaults": {"compaction": {"reserveTokens": 9000, "keepRecentTokens": 5000}},
        "entries": {"a": {"compaction": {"enabled": False, "keepRecentTokens": 0}}, "b": {}},
    }
    config = parse_config({"agents": agents})
    assert compaction_options(config, "a") == CompactionOptions(
        enabled=False, reserve_tokens=9000, keep_recent_tokens=0
    )
    assert compaction_options(config, "b").keep_recent_tokens == 5000


@pytest.mark.parametrize(
    ("compaction", "path"),
    [
        (True, "compaction"),
        ({"enabled": "yes"}, "compaction.enabled"),
        ({"reserveTokens": "many"}, "compaction.reserveTokens"),
        ({"keepRecentTokens": 1.5}, "compaction.keepRecentTokens"),
        ({"keepTokens": 1}, "compaction.keepTokens"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_path(compaction, path):
    with pytest.raises(ConfigError, match=f"agents.defaults.{path}"):
        parse_config({"agents": {"defaults": {"compaction": compaction}}})


def test_the_window_is_of_a_models_row_and_of_nobody_else():
    rows = [{"id": "m", "contextWindow": 8192}, {"id": "n"}, {"id": "tiny", "contextWindow": 1}]
    config = parse_config({"models": {"providers": {"p": {"models": rows}}}})
    assert context_window(config, "p/m") == 8192
    assert [context_window(config, name) for name in ("p/n", "p/other", None)] == [None] * 3
    assert context_window(config, "p/tiny") == 1024
    rows = [{"id": "m", "contextWindow": "8k"}]
    with pytest.raises(ConfigError, match="contextWindow"):
        parse_config({"models": {"providers": {"p": {"models": rows}}}})
