"""Owns the seam under the SDK's session where results are taken as they came over the wire.

The SDK validates a result as a whole: one tool with a bad schema, or one bad content block, would
cost the whole list or call. `Wire` sits between session and JSON-RPC dispatcher, keeps the raw
result for us and shows the session an empty one, so each part is judged by itself.

Above: the connection. Below: the MCP SDK. Refuses to know: what the results mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import Tool
from pydantic import RootModel, ValidationError

from toolcell.sources.mcp.schemas import schema_problem

TICKET = "toolcell/ticket"
_JUDGED_BY_US = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
    }
)


class Ticket(RootModel[dict[str, Any]]):
    """The empty result a session passes through; it says which raw result to claim."""


class Answers(Protocol):
    """Answers the requests of a server; raises `MCPError` to refuse."""

    async def answer(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the result."""
        ...


class Wire(Dispatcher[TransportContext]):
    """A JSON-RPC dispatcher that keeps raw results and answers what a server may not ask.

    Attributes:
        modern: The connection speaks the 2026 revision, whose session learns HTTP headers from
            tool lists; it is shown the well-formed tools of a page.
    """

    def __init__(
        self,
        inner: JSONRPCDispatcher[TransportContext],
        *,
        on_notification: Callable[[str, Mapping[str, Any]], None],
        answering: Answers,
        on_closed: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._on_notification = on_notification
        self._answering = answering
        self._on_closed = on_closed
        self.modern = False
        self._numbers = itertools.count()
        self._kept: dict[int, dict[str, Any]] = {}

    def claim(self, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return, once, what the server sent in the place of an empty result with this `_meta`."""
        return self._kept.pop((meta or {})[TICKET])

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request; of a result that we judge ourselves only a ticket goes up.

        The session serialises what it validates: the raw data itself would cost twice, and a deep
        schema in it would fail.
        """
        raw = await self._inner.send_raw_request(method, params, opts)
        if method not in _JUDGED_BY_US:
            return raw
        number = next(self._numbers)
        self._kept[number] = raw
        tools = raw.get("tools") if self.modern and method == "tools/list" else None
        return {
            "tools": _well_formed(tools),
            "content": [],
            "resources": [],
            "resourceTemplates": [],
            "contents": [],
            "prompts": [],
            "messages": [],
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {TICKET: number},
        }

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Receive until the connection ends, then say so."""

        async def answer(
            context: DispatchContext[TransportContext],
            method: str,
            params: Mapping[str, Any] | None,
        ) -> dict[str, Any]:
            if method == "ping":
                return await on_request(context, method, params)
            return await self._answering.answer(method, params)

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            # Taken here, in order and without a task each, so that a burst costs little.
            if on_notify_intercept is None or not on_notify_intercept(method, params):
                self._on_notification(method, params or {})
            return True

        try:
            await self._inner.run(answer, on_notify, intercept, task_status=task_status)
        finally:
            self._on_closed()


def _well_formed(tools: Any) -> list[Any]:
    kept = []
    for entry in tools if isinstance(tools, list) else ():
        try:
            tool = Tool.model_validate(entry, by_name=False)
        except (ValidationError, RecursionError):
            continue
        if schema_problem(tool.input_schema) is None:
            kept.append({"name": tool.name, "inputSchema": tool.input_schema})
    return kept
