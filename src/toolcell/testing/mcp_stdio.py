"""Owns a small MCP server over stdio, on the standard library alone, so that it starts at once.

It speaks revision 2025-11-25: initialize, ping, tools, resources, prompts, progress, cancellation,
list-changed notices, log messages. Slow tools run in threads of their own.

Above: `mcp_fixture` and `demo_mcp`, which bring the tools. Below: the standard library.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeAlias

PROTOCOL = "2025-11-25"
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class RpcError(Exception):
    """An error answer of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Call:
    """One running call: what a tool may say while it works, and whether it was cancelled."""

    server: StdioServer
    token: Any = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, when the client asked for it."""
        if self.token is None:
            return
        params: dict[str, Any] = {"progressToken": self.token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        self.server.notify("notifications/progress", params)


Run: TypeAlias = Callable[[Mapping[str, Any], Call], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """One tool: its entry in `tools/list`, its body, and whether it may take long."""

    entry: Mapping[str, Any]
    run: Run
    slow: bool = False


def served(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    run: Run,
    *,
    slow: bool = False,
    required: Sequence[str] | None = None,
) -> ServedTool:
    """Return a tool with a closed object schema; every property is required unless told."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }
    return ServedTool(
        entry={"name": name, "description": description, "inputSchema": schema}, run=run, slow=slow
    )


def text(*parts: str, **more: Any) -> dict[str, Any]:
    """Return a tool result of text blocks."""
    return {"content": [{"type": "text", "text": part} for part in parts], **more}


def structured(value: Any) -> dict[str, Any]:
    """Return a tool result with structured content and the same as text."""
    return text(json.dumps(value, ensure_ascii=False), structuredContent=value)


class StdioServer:
    """Answers requests on stdin with lines on stdout.

    Attributes:
        tools: What `tools/list` gives; may be changed while it runs.
        handlers: Other methods, such as `resources/list`.
        capabilities: Declared in the handshake.
    """

    def __init__(self, name: str, version: str, tools: Sequence[ServedTool]) -> None:
        self.tools: dict[str, ServedTool] = {str(tool.entry["name"]): tool for tool in tools}
        self.handlers: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "ping": lambda _: {},
            "initialize": self._initialize,
            "tools/list": self._list,
        }
        self.capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        self._info = {"name": name, "version": version}
        self._out: TextIO = sys.stdout
        self._writing = threading.Lock()
        self._calls: dict[Any, Call] = {}

    def serve(self) -> None:
        """Work until stdin ends."""
        for line in sys.stdin:
            if line.strip():
                self._take(json.loads(line))

    def write(self, line: str) -> None:
        """Write one raw line."""
        with self._writing:
            self._out.write(line + "\n")
            self._out.flush()

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message))

    def running(self) -> list[Any]:
        """Return the ids of the calls at work."""
        return list(self._calls)

    def reply(self, ident: Any, result: Mapping[str, Any]) -> None:
        """Answer a request."""
        self.write(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}))

    def _take(self, message: Mapping[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled":
            call = self._calls.get(params.get("requestId"))
            if call is not None:
                call.cancelled.set()
        elif method == "tools/call" and "id" in message:
            self._call(message["id"], params)
        elif "id" in message and isinstance(method, str):
            self._answer(message["id"], lambda: self._handle(method, params))

    def _call(self, ident: Any, params: Mapping[str, Any]) -> None:
        tool = self.tools.get(params.get("name", ""))
        call = Call(self, token=(params.get("_meta") or {}).get("progressToken"))
        self._calls[ident] = call

        def work() -> None:
            try:
                self._answer(ident, lambda: self._run(tool, params, call))
            finally:
                self._calls.pop(ident, None)

        if tool is not None and tool.slow:
            threading.Thread(target=work, daemon=True).start()
        else:
            work()

    def _run(
        self, tool: ServedTool | None, params: Mapping[str, Any], call: Call
    ) -> Mapping[str, Any]:
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {params.get('name')}")
        return tool.run(params.get("arguments") or {}, call)

    def _answer(self, ident: Any, work: Callable[[], Mapping[str, Any]]) -> None:
        try:
            self.reply(ident, work())
        except RpcError as error:
            body = {"code": error.code, "message": str(error)}
            self.write(json.dumps({"jsonrpc": "2.0", "id": ident, "error": body}))

    def _handle(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        handler = self.handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
        return handler(params)

    def _initialize(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = params.get("protocolVersion", PROTOCOL)
        return {
            "protocolVersion": asked if isinstance(asked, str) and asked <= PROTOCOL else PROTOCOL,
            "capabilities": self.capabilities,
            "serverInfo": self._info,
        }

    def _list(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"tools": [tool.entry for tool in self.tools.values()]}
