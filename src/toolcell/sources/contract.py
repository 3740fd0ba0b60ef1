"""Owns the port of a tool source: something that has tools, and may change them.

Above: `app`, which collects them. Below: `tools`. Refuses to know: policy, catalogs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcell.tools.tool import SourcedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """Something a source should offer and cannot; search tells the model (REPORTS SR-12).

    Attributes:
        owner: A server's name, a plugin's id or place.
        reason: Why, for the operator.
        told: The sentence a model reads; None when it may read the reason.
    """

    owner: str
    reason: str
    told: str | None = None


class Source(Protocol):
    """Has tools. `version` grows whenever `tools()` would give something else."""

    @property
    def version(self) -> int:
        """Grows with every change of the tools."""
        ...

    def tools(self) -> Sequence[SourcedTool]:
        """Return the tools as they are now; cheap, and the same objects until `version` grows."""
        ...

    def unavailable(self) -> Sequence[Unavailable]:
        """Return what should be here and is not."""
        ...

    async def start(self) -> None:
        """Make the tools ready. A part that fails becomes `unavailable`, never an error."""
        ...

    async def aclose(self) -> None:
        """Stop child processes and connections."""
        ...
