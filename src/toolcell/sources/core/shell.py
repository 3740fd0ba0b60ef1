"""Owns the `exec` and `process` tools: shell commands, and those that run on in the background.

Above: `sources.core.toolset`. Below: `sources.core.shell_session`. Refuses to know: code cells,
whose own `exec` is another tool. The shell is not confined to the workspace: who may call it may do
what the user may do, which is why policy asks first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

import anyio
from pydantic import Field

from toolcell.base.jsontext import JsonObject
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, closed, nullable
from toolcell.sources.core.shell_session import Command, ShellSession, ShellSessions
from toolcell.sources.core.work import Absent, Arguments, Positive, Text, in_thread, refused
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

MAX_COMMAND_BYTES: Final = 120_000
"""Linux takes 128 KiB for one argument."""

MAX_YIELD_MS: Final = 600_000
_CLEAN_UP_SECONDS: Final = 10.0

OUTPUT: Final[Mapping[str, Any]] = closed(
    {
        "status": {"enum": ["completed", "running", "timed_out", "killed"]},
        "exitCode": nullable("integer"),
        "sessionId": nullable("string"),
        "stdout": STRING,
        "stderr": STRING,
        "truncated": BOOLEAN,
        "durationMs": INTEGER,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOptions:
    """How shell commands run.

    Attributes:
        shell: What is started; the command text is added.
        env: The whole environment of a command; nothing is inherited.
        timeout_ms: When a command is ended that names no time itself.
        max_timeout_ms: The longest time it may name.
        yield_ms: When a call without a deadline hands back a running command.
        output_bytes: What is kept of each output stream.
        max_running: Commands that may run at one time.
    """

    shell: tuple[str, ...] = ("/bin/sh", "-c")
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.defpath})
    timeout_ms: int = 600_000
    max_timeout_ms: int = 3_600_000
    yield_ms: int = 10_000
    output_bytes: int = 256 * 1024
    max_running: int = 16


Yield: TypeAlias = Annotated[int, Field(ge=0, le=MAX_YIELD_MS)]


class ExecArguments(Arguments):
    """Arguments of the shell tool `exec`."""

    command: Annotated[Text, Field(min_length=1, description="Text for /bin/sh.")]
    cwd: Annotated[Text, Field(min_length=1, description="Directory of the workspace.")] = "."
    env: Annotated[dict[str, str] | Absent, Field(description="Variables to add.")] = None
    stdin: Annotated[Text | Absent, Field(description="Text to feed to it.")] = None
    timeout_ms: Annotated[Positive | Absent, Field(description="Ended after this time.")] = None
    yield_ms: Annotated[
        Yield | Absent,
        Field(description="Hand it back as `running` after this time."),
    ] = None
    background: Annotated[bool, Field(description="Hand it back at once.")] = False


class ProcessArguments(Arguments):
    """Arguments of `process`."""

    session_id: Annotated[str, Field(min_length=1, description="From a `running` result of exec.")]
    action: Annotated[
        Literal["poll", "kill"], Field(description="`poll` waits a while for the end.")
    ] = "poll"
    wait_ms: Annotated[Yield | Absent, Field(description="How long poll waits at most.")] = None


def exec_tool(workspace: WorkspaceRoots, options: ShellOptions, sessions: ShellSessions) -> Tool:
    """Return the shell tool `exec`."""

    async def execute(arguments: ExecArguments, context: ToolContext) -> ToolResult:
        command = await in_thread(lambda _stop: _command(workspace, options, arguments))
        session = sessions.start(command, context.scope.session_key)
        wait_ms = 0 if arguments.background else arguments.yield_ms
        if wait_ms is None:
            wait_ms = _preset(context, options.yield_ms)
        session.listener = context.update
        await _wait(session, wait_ms, kill_on_cancel=True)
        return _told(session, sessions)

    return build_tool(
        name="exec",
        label="Run shell command",
        description=(
            "Run a shell command in the workspace. A command that takes long comes back with "
            "`status: 'running'` and a `sessionId`; go on with the process tool. What it leaves "
            "running ends with it, unless `background` keeps the command itself alive."
        ),
        parameters=ExecArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


def process_tool(options: ShellOptions, sessions: ShellSessions) -> Tool:
    """Return the `process` tool."""

    async def execute(arguments: ProcessArguments, context: ToolContext) -> ToolResult:
        session = sessions.get(arguments.session_id, context.scope.session_key)
        if arguments.action == "kill":
            session.kill()
            await _wait(session, int(_CLEAN_UP_SECONDS * 1000), kill_on_cancel=False)
        else:
            wait_ms = arguments.wait_ms
            if wait_ms is None:
                wait_ms = _preset(context, options.yield_ms)
            await _wait(session, wait_ms, kill_on_cancel=False)
        return _told(session, sessions)

    return build_tool(
        name="process",
        label="Background command",
        description="Look after a shell command that runs in the background: poll or kill it.",
        parameters=ProcessArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


def _preset(context: ToolContext, without_deadline: int) -> int:
    """Return when to hand back a running command: well before the cell's own deadline.

    min(1000, a quarter of the remaining time) (BEHAVIOURS 183), so that the cell completes with a
    handle instead of costing a `wait` (RS-10).
    """
    if context.deadline is None:
        return without_deadline
    return min(1000, int(context.deadline.remaining * 1000 / 4))


async def _wait(session: ShellSession, wait_ms: int, *, kill_on_cancel: bool) -> None:
    """Wait for the end or the time; a cancelled call takes its command with it."""
    try:
        with anyio.move_on_after(wait_ms / 1000):
            await session.done.wait()
    except anyio.get_cancelled_exc_class():
        if kill_on_cancel:
            session.kill()
            with anyio.move_on_after(_CLEAN_UP_SECONDS, shield=True):
                await session.done.wait()
        raise
    finally:
        session.listener = None


def _told(session: ShellSession, sessions: ShellSessions) -> ToolResult:
    if session.done.is_set():
        sessions.forget(session)
    sessions.keep_few()
    details = session.result()
    return ToolResult(content=(TextContent(_content(details)),), details=details)


def _command(workspace: WorkspaceRoots, options: ShellOptions, arguments: ExecArguments) -> Command:
    text = arguments.command
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise refused("command holds a lone surrogate, which is no text for a shell.") from None
    if size > MAX_COMMAND_BYTES or "\0" in text:
        message = (
            f"command must be text without NUL of at most {MAX_COMMAND_BYTES} bytes. "
            "Feed long input through `stdin`."
        )
        raise refused(message)
    added = dict(arguments.env or {})
    for name, value in added.items():
        if not name or "=" in name or "\0" in name + value:
            msg = f"env has a variable {name[:80]!r} that no process can have."
            raise refused(msg)
    if arguments.timeout_ms is not None and arguments.timeout_ms > options.max_timeout_ms:
        message = f"timeoutMs {arguments.timeout_ms} is over the limit {options.max_timeout_ms}."
        raise refused(message)
    with workspace.directory(arguments.cwd) as found:
        cwd = workspace.real_path(found)
    return Command(
        argv=(*options.shell, text),
        cwd=cwd,
        env={**options.env, **added},
        stdin=arguments.stdin,
        timeout_seconds=(arguments.timeout_ms or options.timeout_ms) / 1000,
        output_bytes=options.output_bytes,
    )


def _content(details: JsonObject) -> str:
    parts = [details["stdout"]] if details["stdout"] else []
    if details["stderr"]:
        parts.append(f"[stderr]\n{details['stderr']}")
    match details["status"]:
        case "running":
            parts.append(f"[still running as session {details['sessionId']}; poll with process]")
        case "completed":
            if details["exitCode"]:
                parts.append(f"[exit code {details['exitCode']}]")
        case other:
            parts.append(f"[{other}]")
    return "\n".join(parts) or "[no output]"
