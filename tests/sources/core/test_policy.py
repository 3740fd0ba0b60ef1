"""Groups and profiles over the real core tools (issue part 5; rule 2.1)."""

from __future__ import annotations

import pytest

from tests.sources.core.test_index import OURS, runtime
from toolcell.app.settings import policy_of
from toolcell.config.parse import parse_config
from toolcell.policy.groups import CORE_GROUPS
from toolcell.policy.rules import ToolPolicy, allows

SESSIONS = {
    "agents_list",
    "session_status",
    "sessions_history",
    "sessions_list",
    "sessions_search",
    "sessions_send",
}
CONVERSATIONS = {"conversations_list", "conversations_send", "conversations_turn"}
FILES = {"read", "ls", "find", "grep", "write", "edit", "apply_patch", "image"}


def allowed(root, policy) -> set[str]:
    return {each.tool.name for each in runtime(root).tools() if allows(policy, each)}


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("group:fs", FILES),
        ("group:runtime", {"exec", "process"}),
        ("group:sessions", SESSIONS),
        ("group:web", {"web_fetch", "web_search"}),
        ("group:messaging", CONVERSATIONS),
    ],
)
def test_each_group_holds_its_tools(root, group, names):
    assert allowed(root, ToolPolicy(allow=(group,))) == names
    assert allowed(root, ToolPolicy(deny=(group,))) == OURS - names


def test_every_core_tool_but_the_owners_own_is_in_a_group():
    assert frozenset().union(*CORE_GROUPS.values()) >= OURS - {"openclaw"}


@pytest.mark.parametrize(
    ("profile", "names"),
    [
        ("minimal", {"session_status"}),
        ("coding", OURS - CONVERSATIONS - {"openclaw"}),
        (
            "messaging",
            CONVERSATIONS
            | {"sessions_history", "sessions_list", "sessions_send", "session_status"},
        ),
        ("full", set(OURS)),
    ],
)
def test_each_profile_is_what_it_says(root, profile, names):
    assert allowed(root, ToolPolicy(profile=profile)) == names


def test_a_sandboxed_agent_can_be_kept_to_reading(root):
    config = parse_config(
        {
            "tools": {
                "sandbox": {"tools": {"deny": ["group:runtime", "write", "edit", "apply_patch"]}}
            }
        }
    )
    inside = allowed(root, policy_of(config, "main", sandboxed=True))
    assert inside == OURS - {"exec", "process", "write", "edit", "apply_patch"}
    assert allowed(root, policy_of(config, "main", sandboxed=False)) == OURS
