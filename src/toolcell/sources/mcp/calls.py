"""Owns one call to a server: the request, its timeout, its progress, and what its end means.

Above: the connection. Below: `sources.mcp.live`, `sources.mcp.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from toolcell.base import jsontext
from toolcell.base.clock import Clock
from toolcell.errors import CallError
from toolcell.sources.mcp.live import Live
from toolcell.sources.mcp.results import (
    operation_result,
    prompt_message,
    resource_contents,
    tool_result,
    without_meta,
)
from toolcell.sources.mcp.text import clean, one_line
from toolcell.sources.mcp.tools import ListedTool, Operation
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import ToolContext

PROGRESS_SECONDS = 0.05
"""Shortest time between two progress reports that are passed on."""

MAX_OPERATION_PAGES = 50

_TRANSPORT_CODES = frozenset({types.CONNECTION_CLOSED})
# How the SDK words an HTTP answer that carries no JSON-RPC error of the server's own.
_TRANSPORT_TEXTS = frozenset({"Session terminated", "Server returned an error response"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What calls to one server need.

    Attributes:
        server: Its raw name.
        timeout: Seconds a call may take.
        clock: Time for progress reports.
        surrogates: Whether lone surrogates of JavaScript strings can be sent; an HTTP body cannot.
        live: Gives the session, or raises `CallError` when there is none.
        suspect: Told of every sign that the connection may be broken.
    """

    server: str
    timeout: float
    clock: Clock
    surrogates: bool
    live: Callable[[], Live]
    suspect: Callable[[], None]

    async def tool(
        self, listed: ListedTool, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Call a tool.

        Raises:
            CallError: the server refused, did not answer in time, or is gone.
        """
        self._check_sendable(listed.name, arguments)
        params = types.CallToolRequestParams(name=listed.wire_name, arguments=dict(arguments))
        request = types.CallToolRequest(params=params)
        raw = await self._request(listed.name, request, context)
        return tool_result(raw, structured=listed.structured)

    async def operation(
        self, operation: Operation, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Run a resource or prompt operation. Raises `CallError` like `tool`."""
        self._check_sendable(operation, arguments)
        if operation == "resources.read":
            uri = self._text(operation, arguments, "uri")
            read = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
            raw = await self._request(operation, read, context)
            return operation_result({"contents": _each(raw, "contents", resource_contents)})
        if operation == "prompts.get":
            return await self._prompt(arguments, context)
        kind = operation.removesuffix(".list")
        return await self._listed(kind, arguments, context)

    async def _prompt(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        given = arguments.get("arguments") or {}
        if not isinstance(given, Mapping):
            raise _bad_input("prompts.get", "'arguments' must be an object of texts")
        params = types.GetPromptRequestParams(
            name=self._text("prompts.get", arguments, "name"),
            arguments={str(key): _prompt_text(value) for key, value in given.items()},
        )
        raw = await self._request("prompts.get", types.GetPromptRequest(params=params), context)
        details: dict[str, Any] = {"messages": _each(raw, "messages", prompt_message)}
        if isinstance(raw.get("description"), str):
            details["description"] = clean(raw["description"], 16_384)
        return operation_result(details)

    async def _listed(
        self, kind: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """List everything, or the one page a given cursor stands for."""
        given = arguments.get("cursor")
        cursor = given if isinstance(given, str) else None
        items: list[dict[str, Any]] = []
        for _ in range(MAX_OPERATION_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            request: types.Request[Any, Any] = (
                types.ListResourcesRequest(params=params)
                if kind == "resources"
                else types.ListPromptsRequest(params=params)
            )
            raw = await self._request(f"{kind}.list", request, context)
            items += _each(raw, kind, without_meta)
            following = raw.get("nextCursor")
            cursor = following if isinstance(following, str) and following != cursor else None
            if given is not None or not cursor:
                break
        details: dict[str, Any] = {kind: items}
        if cursor:
            details["nextCursor"] = cursor
        return operation_result(details)

    async def _request(
        self, what: str, request: types.Request[Any, Any], context: ToolContext
    ) -> Mapping[str, Any]:
        live = self.live()
        seconds = self.timeout
        if context.deadline is not None:
            seconds = min(seconds, context.deadline.remaining)
        try:
            with anyio.fail_after(seconds):
                raw = await live.request(request, self._progress(context))
        except TimeoutError:
            self.suspect()
            msg = (
                f"MCP server {self.server!r} did not answer {what!r} within {seconds:g} s; "
                "the call was cancelled, its effect is unknown"
            )
            raise CallError(
                msg,
                code="unavailable",
            ) from None
        except MCPError as error:
            raise self._failure(what, error) from None
        if raw.get("resultType") == "input_required":
            msg = (
                f"MCP server {self.server!r} asks for user input before it runs {what!r}; "
                "toolcell answers no elicitation and no sampling"
            )
            raise CallError(
                msg,
                code="unavailable",
            )
        return raw

    def _check_sendable(self, what: str, arguments: Mapping[str, Any]) -> None:
        """Refuse what a transport would choke on: it would take the whole connection with it."""
        try:
            text = jsontext.dumps(arguments)
            if not self.surrogates:
                text.encode("utf-8")
        except UnicodeEncodeError:
            raise _bad_input(what, "a text holds half of a surrogate pair") from None
        except (TypeError, ValueError, RecursionError) as error:
            raise _bad_input(what, f"the arguments are not JSON: {error}") from None

    def _failure(self, what: str, error: MCPError) -> CallError:
        broken = error.code in _TRANSPORT_CODES or error.message in _TRANSPORT_TEXTS
        if broken:
            self.suspect()
            return CallError(
                f"MCP server {self.server!r} went away during {what!r}; its effect is unknown",
                code="unavailable",
            )
        verb = "answered unreadably to" if error.code == types.PARSE_ERROR else "refused"
        return CallError(
            f"MCP server {self.server!r} {verb} {what!r}: {clean(error.message, 2_000)} "
            f"(code {error.code})",
            untrusted=True,
        )

    def _progress(self, context: ToolContext) -> ProgressFnT:
        last = float("-inf")

        async def report(progress: float, total: float | None, message: str | None) -> None:
            nonlocal last
            now = self.clock.monotonic()
            if now - last < PROGRESS_SECONDS and progress != total:
                return
            last = now
            update: dict[str, Any] = {"progress": progress}
            if total is not None:
                update["total"] = total
            if message is not None:
                update["message"] = one_line(message, 500)
            context.update(update)

        return report

    def _text(self, what: str, arguments: Mapping[str, Any], key: str) -> str:
        value = arguments.get(key)
        if not isinstance(value, str):
            raise _bad_input(what, f"{key!r} must be a text")
        return value


def _bad_input(what: str, problem: str) -> CallError:
    return CallError(f"{what}: {problem}", code="invalid_input", effect="none")


def _prompt_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _bad_input("prompts.get", "the values of 'arguments' must be texts")
    return value


def _each(
    raw: Mapping[str, Any], key: str, read: Callable[[Any], dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """Read the items of a list, malformed ones left out."""
    items = raw.get(key)
    found = map(read, items if isinstance(items, list) else ())
    return [item for item in found if item is not None]
