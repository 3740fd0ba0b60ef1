"""Owns what every adapter works with: a session's tools, and a call's result as a model's text.

`CodeMode`, `ToolSearch` and their sessions are such sessions.

Above: the adapters. Below: `agent`, `tools.content`. Refuses to know: SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import anyio

from toolcell.agent.dispatch import read_arguments
from toolcell.agent.result_text import result_text
from toolcell.tools.content import ToolResult

Shape = Literal["openai", "openai-responses", "anthropic", "mcp"]
MAX_UNTRUSTED_BYTES = 256 << 10
"""UTF-8 bytes of a direct tool's text from the network; controls bound and wrap their own."""
DEFAULT_MAX_TURNS = 50


class ToolSession(Protocol):
    """Tools to show a model, and a way to run what it calls."""

    def definitions(self, shape: Shape = "openai") -> list[dict[str, Any]]:
        """Return the tools in a wire's form."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> ToolResult:
        """Run one call; trouble is a result with `is_error`."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as a model wrote it: `arguments` is JSON text, or an object already."""

    call_id: str
    name: str
    arguments: str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model is to read."""

    call_id: str
    text: str
    is_error: bool


def system_text(session: ToolSession, system: str | None = None) -> str | None:
    """Return the system prompt with what the session adds: the directory of Tool Search."""
    own = getattr(session, "prompt", "")
    return "\n\n".join(filter(None, (system, own))) or None


def model_text(result: ToolResult) -> str:
    """Return a result as text for a model; text from the network is wrapped (rule 4.9)."""
    return result_text(result, limit=MAX_UNTRUSTED_BYTES if result.untrusted else None)


async def answered(session: ToolSession, asked: Asked) -> Answered:
    """Run one call; arguments that are no JSON object are told to the model."""
    arguments = asked.arguments
    if isinstance(arguments, str):
        read = read_arguments(arguments)
        if isinstance(read, str):
            return Answered(asked.call_id, f"arguments of tool {asked.name!r} {read}", True)
        arguments = read
    result = await session.call(asked.name, arguments)
    return Answered(asked.call_id, model_text(result), result.is_error)


async def answered_all(session: ToolSession, calls: Sequence[Asked]) -> list[Answered]:
    """Run the calls of one reply at the same time; the answers are in their order."""
    answers: dict[int, Answered] = {}

    async def one(index: int) -> None:
        answers[index] = await answered(session, calls[index])

    async with anyio.create_task_group() as tasks:
        for index in range(len(calls)):
            tasks.start_soon(one, index)
    return [answers[index] for index in range(len(calls))]
