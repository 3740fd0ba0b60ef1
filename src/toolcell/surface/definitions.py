"""Owns what the library hands to other people's agent loops: a plan in a wire's own shape.

Above: `CodeMode.definitions`, adapters. Below: `plan`, `providers.tool_shapes`.
"""

from __future__ import annotations

from typing import Any

from toolcell.base.jsontext import to_plain
from toolcell.providers.tool_shapes import Shape, render_tool
from toolcell.surface.plan import SurfacePlan


def definitions(plan: SurfacePlan, shape: Shape = "openai") -> list[dict[str, Any]]:
    """Return the visible tools as fresh plain JSON data.

    Args:
        plan: The visible tools.
        shape: `openai` (Chat Completions), `openai-responses`, `anthropic` or `mcp`.

    Raises:
        ValueError: there is no such shape.
    """
    return [to_plain(render_tool(definition, shape)) for definition in plan.definitions]
