"""Owns `exec` and `wait` as ordinary tools: names, input schemas, bodies (rules 3.1, 2.7).

They are of kind CONTROL: the catalog drops them, the gate gives them hooks and a record.

Above: the runtime. Below: `arguments`, `results`, `tools`. Refuses to know: cells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias

from toolcell.codemode.arguments import rewritten_by_hooks, shown_to_hooks
from toolcell.codemode.description import CODE, CODE_TOOLS, RESTART_SAFE, RUN_ID, TITLE, WAIT
from toolcell.codemode.results import Outcome, model_text
from toolcell.config.code_mode import CodeModeOptions, GuestApi
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext, ToolKind

EXEC_NAME: Final = "exec"
WAIT_NAME: Final = "wait"

Body: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The two controls of one run."""

    exec: Tool
    wait: Tool

    def __iter__(self) -> Any:
        """Yield `exec`, then `wait`."""
        return iter((self.exec, self.wait))


def make_controls(
    *, description: str, options: CodeModeOptions, run: Body, resume: Body
) -> Controls:
    """Return the controls with these bodies."""
    return Controls(
        exec=Tool(
            name=EXEC_NAME,
            description=description,
            parameters=exec_parameters(options.guest_api),
            execute=_body(run),
            label="Run code",
            kind=ToolKind.CONTROL,
        ),
        wait=Tool(
            name=WAIT_NAME,
            description=WAIT,
            parameters=WAIT_PARAMETERS,
            execute=_body(resume),
            label="Resume code",
            kind=ToolKind.CONTROL,
        ),
    )


WAIT_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"runId": {"type": "string", "description": RUN_ID}},
    "required": ["runId"],
    "additionalProperties": False,
}


@cache
def exec_parameters(guest_api: GuestApi) -> Mapping[str, Any]:
    """Return the input schema of `exec`: flat, no unions (rule 3.1). The same one each time."""
    about = CODE if guest_api == "catalog" else CODE_TOOLS
    code = {"type": "string", "description": about}
    restart_safe = {"type": "boolean", "description": RESTART_SAFE}
    properties: dict[str, Any]
    if guest_api == "catalog":
        title = {"type": "string", "description": TITLE}
        properties = {"title": title, "code": code, "restartSafe": restart_safe}
    else:
        properties = {
            "code": code,
            "command": {"type": "string", "description": "Alias of code; equal when both are set."},
            "language": {
                "type": "string",
                "enum": ["javascript", "typescript"],
                "description": "javascript by default.",
            },
            "restartSafe": restart_safe,
        }
    return {
        "type": "object",
        "properties": properties,
        "required": ["code"],
        "additionalProperties": False,
    }


def with_hook_view(tool: Tool, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
    """Prepare one call of a control for the gate's hooks (BEHAVIOURS 75 to 77).

    Returns:
        The tool to invoke and the arguments to invoke it with. For `exec` hooks see `code` and
        `command` with equal text, and when they rewrite one of the two, the other follows.
    """
    if tool.name != EXEC_NAME or tool.kind is not ToolKind.CONTROL:
        return tool, arguments
    shown = shown_to_hooks(arguments)

    async def execute(returned: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return await tool.execute(rewritten_by_hooks(shown, returned), context)

    return replace(tool, execute=execute), shown


def tool_result(outcome: Outcome) -> ToolResult:
    """Return an outcome as the result of a control call.

    The text is what a model reads, already wrapped where it must be; `details` is the contract's
    JSON and agrees with the outcome.
    """
    return ToolResult(
        content=(TextContent(model_text(outcome)),),
        details=outcome.to_dict(),
        is_error=outcome.status == "failed",
        terminate=outcome.status == "completed" and outcome.terminate,
    )


def _body(run: Body) -> Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]:
    async def execute(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return tool_result(await run(arguments, context))

    return execute
