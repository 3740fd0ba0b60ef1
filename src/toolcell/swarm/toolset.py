"""Owns `sessions_spawn` and `agents_wait`: children for loops without code mode (rule 11).

Above: `app.run`. Below: `swarm`, `tools`. Refuses to know: programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcell.base.jsontext import dumps
from toolcell.swarm.request import THINKING, read_request
from toolcell.swarm.swarm import Refusal, Swarm
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import SourcedTool, Tool, ToolContext, core_tool

SPAWN: Final = "sessions_spawn"
WAIT: Final = "agents_wait"
MAX_WAIT_IDS: Final = 1000
ONLY_RUNS: Final = "sessions_spawn with collect=true needs mode=run and thread=false."
ONLY_COLLECT: Final = "sessions_spawn starts collector children only; pass collect: true."
RECEIPT: Final = (
    "Collect the result with agents_wait and this runId; in a program, await agents.run does both "
    "at once. Nothing is sent by itself."
)
_TEXT: Final = {"type": "string"}
SPAWN_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "status": {"enum": ["accepted", "forbidden", "error"]},
        "runId": _TEXT,
        "sessionId": _TEXT,
        "groupId": _TEXT,
        "note": _TEXT,
        "error": _TEXT,
    },
    "required": ["status"],
    "additionalProperties": False,
}
WAIT_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "completed": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "runId": _TEXT,
                    "status": {"enum": ["completed", "failed", "cancelled"]},
                    "agentId": _TEXT,
                    "sessionId": _TEXT,
                    "label": _TEXT,
                    "phase": _TEXT,
                    "result": _TEXT,
                    "structured": {},
                    "error": _TEXT,
                    "schemaError": _TEXT,
                    "startedAt": {"type": "integer"},
                    "endedAt": {"type": "integer"},
                },
                "required": ["runId", "status"],
                "additionalProperties": False,
            },
        },
        "pending": {"type": "array", "items": _TEXT},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"runId": _TEXT, "error": {"enum": ["not_found", "not_owner"]}},
                "required": ["runId", "error"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["success", "completed", "pending"],
    "additionalProperties": False,
}


def swarm_tools(swarm: Swarm, agent_id: str) -> tuple[SourcedTool, SourcedTool]:
    """Return the two tools for runs of `agent_id`; their schemas name the agents it may start."""
    return core_tool(_spawn_tool(swarm, agent_id)), core_tool(_wait_tool(swarm, agent_id))


def _spawn_tool(swarm: Swarm, agent_id: str) -> Tool:
    rules = swarm.rules(agent_id)
    allowed = ", ".join(rules.allowed) or "none"

    async def execute(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if arguments.get("collect") is False:
            return _refused(Refusal(ONLY_COLLECT, "error"))
        if arguments.get("mode") == "session" or arguments.get("thread") is True:
            return _refused(Refusal(ONLY_RUNS, "error"))
        asked = read_request(SPAWN, arguments.get("task"), dict(arguments))
        if isinstance(asked, str):
            return _refused(Refusal(asked.replace(f"{SPAWN} prompt", f"{SPAWN} task"), "error"))
        child = swarm.spawn(context.scope, asked)
        if isinstance(child, Refusal):
            return _refused(child)
        details = {
            "status": "accepted",
            "runId": child.run_id,
            "sessionId": child.task.session_id,
            "groupId": child.group_id,
            "note": RECEIPT,
        }
        return ToolResult(content=(TextContent(dumps(details)),), details=details)

    return Tool(
        name=SPAWN,
        label="Start a child agent",
        description=(
            "Start a child agent on a task of its own and go on at once; collect what it came to "
            f"with {WAIT}. Agents it may run as: {allowed}. For work that is worth an agent of "
            "its own, several at once; do one small task yourself."
        ),
        parameters=_spawn_parameters(rules.allowed, rules.default_agent),
        execute=execute,
        output_schema=SPAWN_OUTPUT,
    )


def _spawn_parameters(allowed: tuple[str, ...], default: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "task": {**_TEXT, "minLength": 1, "description": "What the child is to do."},
            "collect": {"type": "boolean", "description": "Always true: you collect the result."},
            "label": {**_TEXT, "description": "What people see of it."},
            "agentId": {
                **_TEXT,
                "description": f"One of: {', '.join(allowed) or 'none'}. Default: {default}.",
            },
            "model": {**_TEXT, "description": "provider/model, instead of the agent's own."},
            "thinking": {"enum": list(THINKING)},
            "schema": {"type": "object", "description": "JSON Schema of the value to get back."},
            "phase": {**_TEXT, "description": "The part of the work it belongs to."},
            "mode": {"enum": ["run", "session"], "description": "Only run."},
            "thread": {"type": "boolean", "description": "Only false."},
        },
        "required": ["task"],
        "additionalProperties": False,
    }


def _wait_tool(swarm: Swarm, agent_id: str) -> Tool:
    longest = swarm.rules(agent_id).options.wait_timeout_seconds_max

    async def execute(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        asked = arguments.get("timeoutSeconds")
        seconds = longest if asked is None else min(max(asked, 0), longest)
        answer = await swarm.wait(context.scope, arguments["runIds"], seconds)
        details: dict[str, Any] = {
            "success": bool(answer.completed or answer.pending),
            "completed": [child.record() for child in answer.completed],
            "pending": list(answer.pending),
        }
        if answer.errors:
            details["errors"] = [{"runId": one, "error": why} for one, why in answer.errors]
        return ToolResult(
            content=(TextContent(dumps(details)),),
            details=details,
            is_error=not details["success"],
            untrusted=any(child.untrusted for child in answer.completed),
        )

    return Tool(
        name=WAIT,
        label="Wait for child agents",
        description=(
            "Wait until one of the child agents is over, or the time is. Gives {completed, "
            "pending}; call it again with what is pending. Asking for a child that is over gives "
            "the same answer again."
        ),
        parameters={
            "type": "object",
            "properties": {
                "runIds": {
                    "type": "array",
                    "items": {**_TEXT, "minLength": 1},
                    "minItems": 1,
                    "maxItems": MAX_WAIT_IDS,
                },
                "timeoutSeconds": {
                    "type": "number",
                    "description": f"At most {longest}, the default.",
                },
            },
            "required": ["runIds"],
            "additionalProperties": False,
        },
        execute=execute,
        output_schema=WAIT_OUTPUT,
        replay_safe=True,
    )


def _refused(refusal: Refusal) -> ToolResult:
    details = {"status": refusal.status, "error": refusal.message}
    return ToolResult(content=(TextContent(dumps(details)),), details=details, is_error=True)
