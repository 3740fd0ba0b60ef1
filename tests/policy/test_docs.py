"""The examples of the documentation do what the text says."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.calls.kit import SCOPE, Counted, core, gate, invocation, mcp, plugin
from toolcell.config.load import parse_json5
from toolcell.config.parse import parse_config
from toolcell.config.tools_tree import ToolPolicySettings
from toolcell.errors import CallError
from toolcell.policy.approvals import ApprovalRule, ApprovalRules
from toolcell.policy.rules import ToolPolicy, allows, effective

DOCS = Path(__file__).parents[2] / "docs"
BODY = Counted({"token": "t", "ok": 1})


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def layer(settings: ToolPolicySettings) -> ToolPolicy:
    return ToolPolicy(
        allow=None if settings.allow is None else tuple(settings.allow),
        deny=tuple(settings.deny),
        also_allow=tuple(settings.also_allow),
        profile=settings.profile,
    )


def test_the_policy_page_is_true() -> None:
    """rule 2.1, rule 2.3: profile, additions, denials, an agent's lists and an empty one."""
    first, sandboxed = [
        parse_config(parse_json5(text, origin="docs")) for text in blocks("policy.md", "json5")
    ]
    everyone = layer(first.tools)
    read, shell, web = (core(name, BODY) for name in ("read", "exec", "web_fetch"))
    ticket, page = plugin("tickets", "create", BODY), mcp("docs", "read.page", BODY)
    assert all(allows(effective(everyone), tool) for tool in (read, web, ticket, page))
    assert not allows(effective(everyone), shell)
    assert not allows(effective(everyone), mcp("other", "x", BODY))
    agents = first.agents.entries
    reader = effective(everyone, layer(agents["reader"].tools))
    assert [allows(reader, tool) for tool in (read, web, ticket, shell)] == [
        True,
        True,
        False,
        False,
    ]
    assert effective(everyone, layer(agents["quiet"].tools)).empty
    inside = layer(sandboxed.tools.sandbox.tools)
    assert allows(effective(ToolPolicy(), None, inside), page)
    assert not allows(effective(ToolPolicy(), None, ToolPolicy()), page)


def test_the_approval_rules_are_true() -> None:
    """PO-06, PO-07: the first that matches decides."""
    (text,) = blocks("hooks-and-approvals.md", "json5")
    settings = parse_config(parse_json5(text, origin="docs")).tools.approvals
    rules = ApprovalRules(tuple(ApprovalRule(**rule.model_dump()) for rule in settings.rules))
    ops = type(SCOPE)(agent_id="ops-1", session_id="s", session_key="k", run_id="r")
    decided = [
        rules.first(core(name, BODY), arguments, scope)
        for name, arguments, scope in (
            ("exec", {"command": "rm x"}, ops),
            ("exec", {"command": "git status"}, ops),
            ("exec", {"command": "git status"}, SCOPE),
            ("pay", {}, SCOPE),
        )
    ]
    assert [rule and rule.decision for rule in decided] == ["deny", "allow", None, "ask"]


@pytest.mark.anyio
async def test_the_hooks_and_the_approver_run() -> None:
    """PO-03, BEHAVIOURS 285: block, ask, rewrite and mask as the page says."""
    names: dict[str, Any] = {}
    for text in blocks("hooks-and-approvals.md", "python"):
        exec(compile(text, "docs", "exec"), names)  # noqa: S102 - our own page
    made, _ = gate(hooks=names["hooks"], approver=names["Terminal"]())
    for name, arguments, message in (
        ("exec", {"command": "rm x"}, "deleting is not allowed here"),
        ("pay", {"amount": 5}, "nobody is at the terminal"),
    ):
        with pytest.raises(CallError, match=message):
            await made.call(invocation(core(name, BODY), arguments))
    result = await made.call(invocation(core("read", BODY), {"path": "a"}))
    assert result.details == {"token": "***", "ok": 1}
    assert BODY.seen[-1] == {"path": "a", "limit": 100}
