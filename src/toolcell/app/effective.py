"""Owns what each agent may use: its policy, compiled once, and the tools that policy leaves.

A turn of an agent is a run, so what only changes with the configuration or the sources is kept
here and not made again for each run.

Above: `app.run`, `app.runtime`. Below: `app.toolbox`, `app.settings`, `policy`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from toolcell.app.settings import policy_of
from toolcell.app.toolbox import Toolbox
from toolcell.config.tree import Config
from toolcell.policy.rules import EffectivePolicy, Policy, allows
from toolcell.tools.tool import SourcedTool, borrowed

MAX_POLICIES: Final = 256


class EffectiveTools:
    """One per runtime."""

    def __init__(self, config: Config, toolbox: Toolbox) -> None:
        self._config = config
        self._toolbox = toolbox
        self._policies: OrderedDict[tuple[str, bool], EffectivePolicy] = OrderedDict()
        # By identity; the policy itself is held beside, which keeps the identity its own.
        self._tools: OrderedDict[int, tuple[Policy, int, tuple[SourcedTool, ...]]] = OrderedDict()
        # By identity as well, with the whole tool: agents with the same tools share a catalog.
        self._without: OrderedDict[int, tuple[SourcedTool, SourcedTool]] = OrderedDict()

    def policy(self, agent_id: str, *, sandboxed: bool) -> EffectivePolicy:
        """Return an agent's policy; the same object each time.

        Raises:
            ConfigError: a setting of it cannot be used.
        """
        key = (agent_id, sandboxed)
        found = self._policies.get(key)
        if found is None:
            found = self._policies[key] = policy_of(self._config, agent_id, sandboxed=sandboxed)
            _shorten(self._policies)
        return found

    def tools(self, policy: Policy) -> tuple[SourcedTool, ...]:
        """Return the tools of the toolbox, as they are now, that `policy` allows.

        Of a tool that borrows from another, only what is its own is left where `policy` does not
        allow the other.
        """
        version = self._toolbox.version
        found = self._tools.get(id(policy))
        if found is not None and found[1] == version:
            return found[2]
        allowed = tuple(
            self._left(policy, tool) for tool in self._toolbox.tools() if allows(policy, tool)
        )
        self._tools[id(policy)] = (policy, version, allowed)
        _shorten(self._tools)
        return allowed

    def _left(self, policy: Policy, whole: SourcedTool) -> SourcedTool:
        borrows, other = whole.tool.borrows, borrowed(whole)
        if borrows is None or other is None or allows(policy, other):
            return whole
        found = self._without.get(id(whole))
        if found is None:
            found = self._without[id(whole)] = whole, replace(whole, tool=borrows.without)
            _shorten(self._without)
        return found[1]


def _shorten(kept: OrderedDict[Any, Any]) -> None:
    if len(kept) > MAX_POLICIES:
        kept.popitem(last=False)
