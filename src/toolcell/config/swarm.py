"""Owns what `tools.swarm` comes to for one agent: rule 11.2 after defaults and clamps.

Above: swarm, `app`. Below: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmOptions:
    """The effective options of one agent. Defaults are those of rule 11.2."""

    enabled: bool = False
    max_concurrent: int = 8
    max_children_per_group: int = 50
    max_total_per_group: int = 200
    wait_timeout_seconds_max: int = 600
    default_agent_id: str = ""
