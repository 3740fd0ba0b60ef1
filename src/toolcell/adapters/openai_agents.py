"""Owns toolcell's tools for the OpenAI Agents SDK.

Above: the user's program. Below: `adapters.session`; `agents` when it is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolcell.adapters.missing import needs
from toolcell.adapters.session import Asked, ToolSession, answered


def openai_agents_tools(session: ToolSession) -> list[Any]:
    """Return the session's tools as `agents.FunctionTool`s.

    Raises:
        ToolcellError: the SDK is not installed.
    """
    with needs("openai-agents"):
        from agents import FunctionTool  # noqa: PLC0415 - an optional package

    def calling(name: str) -> Callable[[Any, str], Awaitable[str]]:
        async def call(_context: Any, arguments: str) -> str:
            answer = await answered(session, Asked("", name, arguments))
            return answer.text

        return call

    return [
        FunctionTool(
            name=tool["name"],
            description=tool["description"],
            params_json_schema=tool["inputSchema"],
            on_invoke_tool=calling(tool["name"]),
            # Strict schemas have no optional properties; these have.
            strict_json_schema=False,
        )
        for tool in session.definitions("mcp")
    ]
