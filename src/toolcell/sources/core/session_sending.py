"""Owns `sessions_send` (a message into another session, answered by a run there), `agents_list`.

Above: `sources.core.toolset`. Below: `ports`, `session_reading`. Refuses to know: how a run is run.
"""

from __future__ import annotations

from typing import Annotated, Final

import anyio
from pydantic import Field

from toolcell.base.jsontext import JsonObject, dumps
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, STRING, array, closed, constant, nullable
from toolcell.sources.core.ports import SENT_CHANNEL, CorePorts
from toolcell.sources.core.session_reading import SessionId, SessionView
from toolcell.sources.core.work import Arguments, refused
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

MAX_MESSAGE_CHARS: Final = 100_000
MAX_WAIT_MS: Final = 600_000

SEND_OUTPUT: Final[JsonObject] = {
    "anyOf": [
        closed({"status": constant(status), "sessionId": STRING, "runId": STRING, **more})
        for status, more in (
            ("replied", {"reply": STRING}),
            ("failed", {"error": STRING}),
            ("running", {}),
        )
    ]
}
AGENTS_OUTPUT: Final = closed(
    {
        "agents": array(
            closed(
                {
                    "id": STRING,
                    "model": nullable("string"),
                    "sandboxed": BOOLEAN,
                    "current": BOOLEAN,
                    "spawnable": BOOLEAN,
                }
            )
        )
    }
)


class SendArguments(Arguments):
    """Arguments of `sessions_send`."""

    session_id: Annotated[SessionId, Field(description="From sessions_list.")]
    message: Annotated[
        str, Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="What to say there.")
    ]
    wait_ms: Annotated[
        int, Field(ge=0, le=MAX_WAIT_MS, description="How long to wait for the reply.")
    ] = 60_000


class NoArguments(Arguments):
    """Arguments of `agents_list`: none."""


def sessions_send_tool(ports: CorePorts, view: SessionView) -> Tool:
    """Return the `sessions_send` tool."""

    async def execute(arguments: SendArguments, context: ToolContext) -> ToolResult:
        details = await _send(ports, view, arguments, context)
        return ToolResult(
            content=(TextContent(dumps(details)),),
            details=details,
            untrusted=details["status"] == "replied",
        )

    return build_tool(
        name="sessions_send",
        label="Send to session",
        description=(
            "Say something in another session of this agent: a run there answers it. Waits for "
            "the reply; with `status: 'running'` it is still to come, see sessions_history."
        ),
        parameters=SendArguments,
        output_schema=SEND_OUTPUT,
        execute=execute,
        replay_safe=False,
    )


def agents_list_tool(ports: CorePorts) -> Tool:
    """Return the `agents_list` tool."""

    async def execute(_arguments: NoArguments, context: ToolContext) -> ToolResult:
        may_start = ports.may_start(context.scope)
        agents = [
            {
                "id": each.id,
                "model": each.model,
                "sandboxed": each.sandboxed,
                "current": each.id == context.scope.agent_id,
                "spawnable": each.id in may_start,
            }
            for each in ports.agents()
        ]
        details = {"agents": agents}
        return ToolResult(content=(TextContent(dumps(details)),), details=details)

    return build_tool(
        name="agents_list",
        label="Agents",
        description=(
            "List the configured agents: their models, which one this is, and which ones a child "
            "agent may run as."
        ),
        parameters=NoArguments,
        output_schema=AGENTS_OUTPUT,
        execute=execute,
        replay_safe=True,
    )


async def _send(
    ports: CorePorts, view: SessionView, arguments: SendArguments, context: ToolContext
) -> JsonObject:
    scope, session = context.scope, arguments.session_id
    if scope.channel == SENT_CHANNEL:
        raise refused("This run answers a message of another session, so it cannot send one.")
    if session == scope.session_id:
        raise refused("A session cannot send to itself; say it in the reply.")
    await view.check(session, scope)
    if ports.sender is None:
        raise CallError(
            "No run can be begun here: this process only runs single calls.",
            code="unavailable",
            effect="none",
        )
    turn = await ports.sender.start(scope, session, arguments.message)
    with anyio.move_on_after(arguments.wait_ms / 1000):
        await turn.done.wait()
    place = {"sessionId": session, "runId": turn.run_id}
    if not turn.done.is_set():
        return {"status": "running", **place}
    if turn.error is not None:
        return {"status": "failed", **place, "error": turn.error}
    return {"status": "replied", **place, "reply": turn.reply}
