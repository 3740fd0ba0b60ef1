"""Owns toolcell's tools as LangChain tools, for chains, agents and LangGraph graphs.

Above: the user's program. Below: `adapters.session`; `langchain_core` when it is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolcell.adapters.missing import needs
from toolcell.adapters.session import Asked, ToolSession, answered


def langchain_tools(session: ToolSession) -> list[Any]:
    """Return the session's tools as `langchain_core` `StructuredTool`s; they are asynchronous.

    A failed call becomes a tool message with status `error`, which the model reads.

    Raises:
        ToolcellError: LangChain is not installed.
    """
    with needs("langchain-core"):
        from langchain_core.tools import (  # noqa: PLC0415 - an optional package
            StructuredTool,
            ToolException,
        )

    def calling(name: str) -> Callable[..., Awaitable[str]]:
        async def call(**arguments: Any) -> str:
            answer = await answered(session, Asked("", name, arguments))
            if answer.is_error:
                raise ToolException(answer.text)
            return answer.text

        return call

    return [
        StructuredTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["inputSchema"],
            coroutine=calling(tool["name"]),
            handle_tool_error=True,
        )
        for tool in session.definitions("mcp")
    ]
