"""Owns one call to a server: the request, its timeout, its progress, and what its end means.

Above: the connection. Below: `sources.mcp.live`, `sources.mcp.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from toolcell.base import jsontext
from toolcell.base.clock import Clock
from toolcell.errors import CallError
from toolcell.sources.mcp.live import Live
from toolcell.sources.mcp.paging import Items, read_each
from toolcell.sources.mcp.results import (
    operation_result,
    prompt_message,
    resource_contents,
    tool_result,
    without_meta,
)
from toolcell.sources.mcp.templates import TemplateError, Templates, filled_in
from toolcell.sources.mcp.text import clean, one_line
from toolcell.sources.mcp.tools import ListedTool, Operation
from toolcell.tools.content import ToolResult
from toolcell.tools.threads import run_sync
from toolcell.tools.tool import ToolContext

PROGRESS_SECONDS = 0.05
"""Shortest time between two progress reports that are passed on."""

MAX_OPERATION_PAGES = 50

_PLAIN: Callable[[str], Items] = partial(Items, read=without_meta)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """How one kind of thing is listed: the request, its key, its items; what having none means."""

    request: Callable[..., types.Request[Any, Any]]
    key: str
    items: Callable[[str], Items] = _PLAIN
    absent: Mapping[str, Any] | None = None


_LISTINGS: Mapping[Operation, _Listing] = {
    "resources.list": _Listing(request=types.ListResourcesRequest, key="resources"),
    "resources.templates": _Listing(
        request=types.ListResourceTemplatesRequest,
        key="resourceTemplates",
        items=Templates,
        # A server may have resources and no templates, and not know of them.
        absent={},
    ),
    "prompts.list": _Listing(request=types.ListPromptsRequest, key="prompts"),
}
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
            uri = self._uri(arguments)
            read = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
            raw = await self._request(operation, read, context)
            return operation_result({"contents": read_each(raw, "contents", resource_contents)})
        if operation == "prompts.get":
            return await self._prompt(arguments, context)
        return await self._listed(operation, arguments, context)

    def _uri(self, arguments: Mapping[str, Any]) -> str:
        uri = self._text("resources.read", arguments, "uri")
        variables = arguments.get("variables")
        if variables is None:
            return uri
        try:
            return filled_in(uri, variables)
        except TemplateError as error:
            raise _bad_input("resources.read", str(error)) from None

    async def _prompt(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        given = arguments.get("arguments") or {}
        if not isinstance(given, Mapping):
            raise _bad_input("prompts.get", "'arguments' must be an object of texts")
        params = types.GetPromptRequestParams(
            name=self._text("prompts.get", arguments, "name"),
            arguments={str(key): _prompt_text(value) for key, value in given.items()},
        )
        raw = await self._request("prompts.get", types.GetPromptRequest(params=params), context)
        details: dict[str, Any] = {"messages": read_each(raw, "messages", prompt_message)}
        if isinstance(raw.get("description"), str):
            details["description"] = clean(raw["description"], 16_384)
        return operation_result(details)

    async def _listed(
        self, operation: Operation, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """List everything within bounds, or the one page a given cursor stands for."""
        listing = _LISTINGS[operation]
        given = arguments.get("cursor")
        cursor = given if isinstance(given, str) else None
        items = listing.items(listing.key)
        for _ in range(MAX_OPERATION_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            request = listing.request(params=params)
            raw = await self._request(operation, request, context, absent=listing.absent)
            # A page may have thousands of items, and a template takes up to a millisecond to read.
            await run_sync(partial(items.take, raw))
            cursor = items.following(raw, cursor)
            if given is not None or not cursor or items.full:
                break
        return operation_result(items.details(cursor))

    async def _request(
        self,
        what: str,
        request: types.Request[Any, Any],
        context: ToolContext,
        *,
        absent: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Send a request; `absent` is the answer of a server that does not know its method."""
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
            if absent is not None and error.code == types.METHOD_NOT_FOUND:
                return absent
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
