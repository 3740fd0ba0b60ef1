"""Owns the check of names that a client's own tools bring along (CN-07).

Above: `plan`. Below: `tools`, `errors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from toolcell.errors import RequestError
from toolcell.tools.tool import SourcedTool


def check_client_names(
    tools: Iterable[SourcedTool], *, mode: Literal["direct", "code", "directory"]
) -> None:
    """Refuse client tools whose names cannot be kept apart.

    In code mode a client tool wins its name and the other tool is reached by its exact id; where
    tools are sent directly, or hidden ones are called by their exact names (`directory`), one name
    can only mean one tool.

    Raises:
        RequestError: two client tools have one name, or (not in code mode) a client tool has
            the name of a tool that is there.
    """
    tools = list(tools)
    counts = Counter(sourced.tool.name for sourced in tools if sourced.source == "client")
    for name, count in counts.items():
        if count > 1:
            message = f"tool {name!r} is given {count} times; give each tool a name of its own"
            raise RequestError(message)
    if mode != "code":
        # A direct call of an exact hidden name reaches MCP tools as well (rule 10.4).
        others = {"openclaw"} if mode == "direct" else {"openclaw", "mcp"}
        taken = {s.tool.name: s.id for s in tools if s.source in others}
        for name in counts:
            if name in taken:
                message = f"tool {name!r} is there already ({taken[name]}); rename yours"
                raise RequestError(message)
