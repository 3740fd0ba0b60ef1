"""Owns one reply's tool calls: finding the tool, reading arguments, running, wording the outcome.

Above: the loop. Below: `surface.plan`, `result_text`. Refuses to know: the gate (it is a port).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anyio

from toolcell.agent.contract import CallTool, RunLimits
from toolcell.agent.conversation import ABORTED, answer
from toolcell.agent.result_text import bounded_text, outside_text, result_parts
from toolcell.base.jsontext import dumps, loads
from toolcell.errors import CallError
from toolcell.protocol.messages import Message, ToolCall
from toolcell.surface.plan import SurfacePlan, VisibleTool
from toolcell.tools.tool import ToolKind

_NAME_SHOWN = 80


class Dispatch:
    """The calls of one reply.

    Attributes:
        answers: One message per call, in the order of the calls, whatever happened.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        plan: SurfacePlan,
        call_tool: CallTool,
        limits: RunLimits,
    ) -> None:
        self._calls = tuple(calls)
        self._plan = plan
        self._call_tool = call_tool
        self._limits = limits
        self.answers = [answer(call.id, ABORTED, is_error=True) for call in calls]
        self._ending: set[int] = set()

    @property
    def over(self) -> bool:
        """Whether the turn is over: every call says so, so that no result is left unread."""
        return len(self._ending) == len(self._calls)

    async def run(self) -> None:
        """Run them at the same time, but each sequential tool alone and in its place."""
        for group in self._groups():
            async with anyio.create_task_group() as tasks:
                for index in group:
                    tasks.start_soon(self._one, index)

    def _groups(self) -> Iterator[list[int]]:
        group: list[int] = []
        for index, call in enumerate(self._calls):
            visible = self._plan.resolve(call.name)
            if visible is not None and visible.sourced.tool.execution_mode == "sequential":
                yield group
                yield [index]
                group = []
            else:
                group.append(index)
        yield group

    async def _one(self, index: int) -> None:
        call = self._calls[index]
        visible = self._plan.resolve(call.name)
        if visible is None:
            self._refuse(index, _unknown(call.name))
            return
        arguments = read_arguments(call.arguments)
        if isinstance(arguments, str):
            self._refuse(index, f"arguments of tool {visible.name!r} {arguments}")
            return
        self.answers[index] = await self._answered(index, visible, arguments)

    async def _answered(
        self, index: int, visible: VisibleTool, arguments: Mapping[str, Any]
    ) -> Message:
        call_id = self._calls[index].id
        limit = self._limits.max_result_bytes
        own = visible.sourced.tool.kind is ToolKind.CONTROL
        try:
            result = await self._call_tool(visible, arguments, call_id)
        except CallError as error:
            worded = outside_text if error.untrusted else bounded_text
            return answer(call_id, worded(error.message, limit), is_error=True)
        if result.terminate:
            self._ending.add(index)
        text, images = result_parts(result, limit=None if own else limit)
        return answer(call_id, text, is_error=result.is_error, images=images)

    def _refuse(self, index: int, text: str) -> None:
        self.answers[index] = answer(self._calls[index].id, text, is_error=True)


def read_arguments(text: str) -> Mapping[str, Any] | str:
    """Return the arguments a model wrote, or what is wrong with them."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
        dumps(value)
    except (ValueError, RecursionError) as error:
        return f"are not JSON ({error}); send one JSON object that fits its schema"
    if not isinstance(value, dict):
        return f"are {_json_type(value)}; send one JSON object that fits its schema"
    return value


def _unknown(name: str) -> str:
    """Quote what was asked for and nothing else (CN-08)."""
    return f"unknown tool {name[:_NAME_SHOWN]!r}; call one of the tools of this request by its name"


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"
