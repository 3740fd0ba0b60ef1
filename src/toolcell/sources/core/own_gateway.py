"""Owns the `openclaw` tool: this very process, its state and its config, for its owner.

Above: `sources.core.toolset`. Below: `ports`. Refuses to know: how the state is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.base.jsontext import JsonObject, clip_utf8, dumps
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.protocol.scope import RunScope
from toolcell.sources.core.contracts import (
    BOOLEAN,
    INTEGER,
    STRING,
    array,
    closed,
    constant,
)
from toolcell.sources.core.ports import SENT_CHANNEL, Self
from toolcell.sources.core.work import Arguments, refused
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

CONFIG_BYTES: Final = 64 << 10

OUTPUT: Final[Mapping[str, Any]] = {
    "anyOf": [
        closed(
            {
                "kind": constant("status"),
                "version": STRING,
                "uptimeSeconds": INTEGER,
                "tools": INTEGER,
                "agents": array(STRING),
                "servers": array(closed({"name": STRING, "state": STRING})),
                "unavailable": array(STRING),
                "counts": array(closed({"name": STRING, "value": INTEGER})),
            }
        ),
        closed({"kind": constant("config"), "path": STRING, "json": STRING, "truncated": BOOLEAN}),
    ]
}


class OpenclawArguments(Arguments):
    """Arguments of `openclaw`."""

    action: Literal["status", "config"] = "status"
    path: Annotated[str, Field(max_length=300, description="Config path: `tools.codeMode`.")] = ""


def openclaw_tool(own: Self) -> Tool:
    """Return the `openclaw` tool."""

    async def execute(arguments: OpenclawArguments, context: ToolContext) -> ToolResult:
        _check_owner(context.scope)
        details = _status(own) if arguments.action == "status" else _config(own, arguments.path)
        return ToolResult(content=(TextContent(dumps(details)),), details=details)

    return build_tool(
        name="openclaw",
        label="This gateway",
        description=(
            "Tell how this gateway stands (`status`), or what its config says (`config`, as JSON "
            "text with secrets masked). For its owner only."
        ),
        parameters=OpenclawArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=True,
    )


def _check_owner(scope: RunScope) -> None:
    """Refuse everybody but the owner.

    Who runs the program or holds the gateway's token is its owner. A run that acts for a sender a
    client names, for a message of another session, or in the sandbox may be led by somebody else.
    """
    if scope.sandboxed or scope.sender is not None or scope.channel == SENT_CHANNEL:
        raise CallError(
            "This is for the owner of the gateway only: not for sandboxed agents, and not for runs "
            "that act for somebody else.",
            code="blocked",
            effect="none",
        )


def _status(own: Self) -> JsonObject:
    status = own.status()
    return {
        "kind": "status",
        "version": status.version,
        "uptimeSeconds": int(status.uptime_seconds),
        "tools": status.tools,
        "agents": list(status.agents),
        "servers": [{"name": each.name, "state": each.state} for each in status.servers],
        "unavailable": list(status.unavailable),
        "counts": [{"name": name, "value": value} for name, value in status.counts.items()],
    }


def _config(own: Self, path: str) -> JsonObject:
    value: Any = own.config()
    for part in filter(None, path.split(".")):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif (
            isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value)
        ):
            value = value[int(part)]
        else:
            known = ", ".join(list(value)[:30]) if isinstance(value, dict) else "nothing"
            message = f"The config has no {part[:80]!r} in {path!r}. There is: {known}."
            raise refused(message)
    text = dumps(value)
    shown = clip_utf8(text, CONFIG_BYTES)
    return {"kind": "config", "path": path, "json": shown, "truncated": shown != text}
