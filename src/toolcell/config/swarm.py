"""Owns what `tools.swarm` comes to for one agent: rule 11.2 after defaults and clamps.

Above: swarm, `app`. Below: nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Backend = Literal["local", "ray"]
_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmOptions:
    """The effective options of one agent. Defaults are those of rule 11.2."""

    enabled: bool = False
    max_concurrent: int = 8
    max_children_per_group: int = 50
    max_total_per_group: int = 200
    wait_timeout_seconds_max: int = 600
    default_agent_id: str = ""
    backend: Backend = "local"


def address_problem(address: str) -> str | None:
    """Return what is wrong with the address of a Ray cluster; None when it may be one."""
    if address.startswith("ray://"):
        return (
            f"{address!r} is an address for Ray Client, which cannot tell how children get on; "
            'run toolcell on a machine of the cluster and give "auto" or host:port'
        )
    if address == "auto" or _ADDRESS.fullmatch(address):
        return None
    return f'must be "auto" or host:port, such as "10.0.0.5:6379", not {address!r}'
