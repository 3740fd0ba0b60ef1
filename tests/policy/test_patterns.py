"""Globs, MCP filters and approval rules."""

import time

import pytest

from tests.calls.kit import SCOPE, Counted, core, mcp
from toolcell.errors import ConfigError
from toolcell.policy.approvals import (
    ASK_BEFORE_SHELL,
    MAX_MATCHED_CHARS,
    ApprovalRule,
    ApprovalRules,
)
from toolcell.policy.globs import Globs
from toolcell.policy.mcp_filter import filtered, selected
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolKind

BODY = Counted()
SHELL = core("exec", BODY)
SHOWN = {"read.page": "docs__read-page", "docs__read-page": "docs__docs__read-page", "list": "l"}


@pytest.mark.parametrize(
    ("pattern", "name", "whole"),
    [
        ("a*", "abc", True),
        ("a*", "xabc", False),
        ("*c", "abc", True),
        ("a*c*e", "abcde", True),
        ("a*c*e", "abcd", False),
        ("a*bc", "abcbc", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("*", "", True),
        ("a*", "a\nb", True),
    ],
)
def test_a_glob_matches_the_whole_name(pattern: str, name: str, *, whole: bool) -> None:
    """rule 2.1: only `*` and `?` are special."""
    assert Globs([pattern]).match(name) is whole


def test_a_hostile_name_cannot_make_a_glob_slow() -> None:
    """rule 2.1: matching never backtracks over what a star took."""
    globs = Globs(["*a" * 30 + "b"])
    before = time.thread_time()
    assert not globs.match("a" * 5000)
    assert time.thread_time() - before < 1.0


def test_mcp_filters_take_raw_and_shown_names() -> None:
    """MC-12: shown name, raw name and raw glob all keep exactly that tool."""
    for include in (["docs__read-page"], ["read.page"], ["read*"]):
        assert filtered(SHOWN, include=include) == ("read.page",)
    assert selected(["docs__docs__read-page"], SHOWN) == {"docs__read-page"}
    assert filtered(SHOWN, exclude=["l", "read*"]) == ("docs__read-page",)
    assert filtered(SHOWN, include=[]) == ()


def test_a_rule_denies_the_shell_by_its_command_and_not_the_code_cell() -> None:
    """PO-06: the same name, the same text, another kind."""
    rules = ApprovalRules(
        (ApprovalRule(tool="exec", decision="deny", arguments={"command": r"rm "}, reason="no rm"),)
    )
    cell = SourcedTool(
        tool=Tool(name="exec", description="", parameters={}, execute=BODY, kind=ToolKind.CONTROL),
        source="openclaw",
        owner="core",
        group=Group.CORE,
    )
    found = rules.first(SHELL, {"command": "rm x"}, SCOPE)
    assert found is not None
    assert found.reason == "no rm"
    assert rules.first(SHELL, {"command": "ls"}, SCOPE) is None
    assert rules.first(SHELL, {}, SCOPE) is None
    assert rules.first(SHELL, {"command": ["rm x"]}, SCOPE) is found
    assert rules.first(cell, {"command": "rm -rf demo"}, SCOPE) is None


def test_the_first_rule_that_matches_decides() -> None:
    """PO-07: rules are an ordered list of pattern and decision."""
    rules = ApprovalRules(
        (
            ApprovalRule(tool="pay", decision="allow", agent="billing-*"),
            ApprovalRule(tool="p*", decision="ask"),
            ApprovalRule(tool="*", decision="deny"),
            ASK_BEFORE_SHELL,
        )
    )
    pay = core("pay", BODY)
    found = [rules.first(tool, {}, SCOPE) for tool in (pay, SHELL)]
    assert [rule.decision for rule in found if rule] == ["ask", "deny"]


def test_an_allow_rule_reads_its_pattern_narrowly() -> None:
    """PO-08: `allow read` says nothing about a server's tool called read; `ask read` does."""
    remote = mcp("x", "read", BODY)
    for decision, matches in (("allow", False), ("ask", True), ("deny", True)):
        rule = ApprovalRule(tool="read", decision=decision)  # type: ignore[arg-type]
        assert rule.matches(remote, {}, SCOPE) is matches


def test_an_argument_too_long_to_search_fails_closed() -> None:
    """PO-07: padding cannot slip past a rule."""
    long = {"command": "x" * (MAX_MATCHED_CHARS + 1)}
    for decision, matches in (("deny", True), ("ask", True), ("allow", False)):
        rule = ApprovalRule(tool="exec", decision=decision, arguments={"command": "x"})  # type: ignore[arg-type]
        assert rule.matches(SHELL, long, SCOPE) is matches


def test_a_broken_pattern_is_a_config_error_with_its_place() -> None:
    """rule 1.2: config errors name the path."""
    with pytest.raises(ConfigError, match="rule for 'exec', '\\(' is not a regular") as caught:
        ApprovalRule(tool="exec", decision="deny", arguments={"command": "("})
    assert caught.value.path == "tools.approvals.arguments.command"
