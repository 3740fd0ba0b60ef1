"""Owns what `agents.*.compaction` comes to for one agent, after defaults and clamps.

Above: the agent loop, `app`. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """The effective options of one agent.

    Attributes:
        enabled: Whether long conversations are compacted by themselves.
        reserve_tokens: Of the context window, kept free for the answer.
        keep_recent_tokens: Of the newest messages, kept as they are.
    """

    enabled: bool = True
    reserve_tokens: int = 16384
    keep_recent_tokens: int = 20000
