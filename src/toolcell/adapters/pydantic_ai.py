"""Owns toolcell's tools as a toolset for pydantic-ai agents.

Above: the user's program. Below: `adapters.session`; `pydantic_ai` when it is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolcell.adapters.missing import needs
from toolcell.adapters.session import Asked, ToolSession, answered


def pydantic_ai_toolset(session: ToolSession) -> Any:
    """Return the session's tools as a `pydantic_ai.FunctionToolset`.

    A failed call is text the model reads; it is not counted as a retry, since code mode and Tool
    Search say themselves what to change.

    Raises:
        ToolcellError: pydantic-ai is not installed.
    """
    with needs("pydantic-ai-slim"):
        from pydantic_ai import FunctionToolset, Tool  # noqa: PLC0415 - an optional package

    def calling(name: str) -> Callable[..., Awaitable[str]]:
        async def call(**arguments: Any) -> str:
            answer = await answered(session, Asked("", name, arguments))
            return answer.text

        return call

    return FunctionToolset(
        [
            Tool.from_schema(
                calling(tool["name"]),
                name=tool["name"],
                description=tool["description"],
                json_schema=tool["inputSchema"],
            )
            for tool in session.definitions("mcp")
        ]
    )
