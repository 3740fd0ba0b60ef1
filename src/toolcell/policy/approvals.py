"""Owns approval rules: which calls a person must approve, which are refused, decided by data.

Above: the gate, which asks; `app`, which reads them from config. Below: `rules`, `globs`.
Refuses to know: who is asked. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from toolcell.base.jsontext import canonical
from toolcell.errors import ConfigError
from toolcell.policy.globs import Globs
from toolcell.policy.rules import Selector
from toolcell.protocol.scope import RunScope
from toolcell.tools.tool import SourcedTool, ToolKind, borrowed

Decision = Literal["ask", "allow", "deny"]

MAX_MATCHED_CHARS: Final = 1 << 16
"""A longer argument is not searched: it counts as a match for `ask` and `deny`, not for `allow`."""

_STRICTNESS: Final[Mapping[Decision, int]] = MappingProxyType({"allow": 0, "ask": 1, "deny": 2})

_NO_ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """One rule.

    Attributes:
        tool: A name, id, group, plugin id or glob, as in a tool policy.
        decision: What happens to a call that matches.
        agent: An agent id or glob; None for every agent.
        arguments: Argument name to a regular expression that must be found in its text; a value
            that is no string is searched as compact JSON. All must be found.
        reason: Shown to the person asked, and to the caller when the answer is no.

    Raises:
        ConfigError: the pattern or a regular expression is not valid.
    """

    tool: str
    decision: Decision
    agent: str | None = None
    arguments: Mapping[str, str] = field(default_factory=lambda: _NO_ARGUMENTS)
    reason: str = ""
    _tools: Selector = field(init=False, repr=False, compare=False)
    _agents: Globs | None = field(init=False, repr=False, compare=False)
    _found: tuple[tuple[str, re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns. An `allow` rule reads its tool pattern narrowly, as policy does."""
        wide = self.decision != "allow"
        tools = Selector((self.tool,), wide=wide, place="tools.approvals")
        found = tuple(
            (name, _compiled(self.tool, name, text)) for name, text in self.arguments.items()
        )
        object.__setattr__(self, "_tools", tools)
        object.__setattr__(self, "_agents", None if self.agent is None else Globs((self.agent,)))
        object.__setattr__(self, "_found", found)

    def matches(self, sourced: SourcedTool, arguments: Mapping[str, Any], scope: RunScope) -> bool:
        """Whether the rule speaks about this call."""
        if self._agents is not None and not self._agents.match(scope.agent_id):
            return False
        if not self._tools.match(sourced):
            return False
        return all(
            name in arguments and self._finds(regex, arguments[name]) for name, regex in self._found
        )

    def _finds(self, regex: re.Pattern[str], value: Any) -> bool:
        text = value if isinstance(value, str) else canonical(value)
        if len(text) > MAX_MATCHED_CHARS:
            return self.decision != "allow"
        return regex.search(text) is not None


def _compiled(tool: str, name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        msg = f"in the rule for {tool!r}, {text!r} is not a regular expression: {error}"
        raise ConfigError(
            msg,
            path=f"tools.approvals.arguments.{name}",
        ) from error


ASK_BEFORE_SHELL: Final = ApprovalRule(
    tool="openclaw:core:exec", decision="ask", reason="a shell command can do anything you can"
)
"""The built-in last rule of a configured run."""


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """Rules in order; the first that matches decides, and a call that none matches may run."""

    rules: tuple[ApprovalRule, ...] = ()

    def first(
        self, sourced: SourcedTool, arguments: Mapping[str, Any], scope: RunScope
    ) -> ApprovalRule | None:
        """Return the rule that decides about a call.

        Control tools match no rule: a rule about the shell's `exec` never reaches the code cell's
        (PO-06). A call that does the work of another tool is that tool's call as well: of the two
        rules the stricter one decides.
        """
        if sourced.tool.kind is ToolKind.CONTROL:
            return None
        own = self._first(sourced, arguments, scope)
        borrows, other = sourced.tool.borrows, borrowed(sourced)
        if borrows is None or other is None or not borrows.used(arguments):
            return own
        lent = self._first(other, arguments, scope)
        found = [rule for rule in (own, lent) if rule is not None]
        return max(found, key=lambda rule: _STRICTNESS[rule.decision], default=None)

    def _first(
        self, sourced: SourcedTool, arguments: Mapping[str, Any], scope: RunScope
    ) -> ApprovalRule | None:
        for rule in self.rules:
            if rule.matches(sourced, arguments, scope):
                return rule
        return None
