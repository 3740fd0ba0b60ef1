"""Owns the list of core tools. Above: `app`. Below: each tool's own file."""

from __future__ import annotations

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.spawner import Spawner
from toolcell.sources.core.editing import edit_tool
from toolcell.sources.core.finding import find_tool
from toolcell.sources.core.grepping import grep_tool
from toolcell.sources.core.listing import ls_tool
from toolcell.sources.core.patching import apply_patch_tool
from toolcell.sources.core.reading import read_tool
from toolcell.sources.core.shell import ShellOptions, exec_tool, process_tool
from toolcell.sources.core.shell_session import ShellSessions
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.sources.core.writing import Turns, write_tool
from toolcell.tools.tool import Tool


def core_tools(
    workspace: WorkspaceRoots,
    shell: ShellOptions | None = None,
    *,
    spawner: Spawner | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Tool]:
    """Return the core tools of a workspace.

    They are `read`, `ls`, `find`, `grep`, `write`, `edit`, `apply_patch`, and with a shell `exec`
    and `process`.

    Args:
        workspace: The directories the file tools may read and write.
        shell: How commands run; None for no shell tools.
        spawner: Where commands live that outlast a call; needed with `shell`.
        clock: For durations.

    Raises:
        ValueError: a shell without a spawner.
    """
    turns = Turns()
    tools = [
        read_tool(workspace),
        ls_tool(workspace),
        find_tool(workspace),
        grep_tool(workspace),
        write_tool(workspace, turns),
        edit_tool(workspace, turns),
        apply_patch_tool(workspace, turns),
    ]
    if shell is None:
        return tools
    if spawner is None:
        raise ValueError("shell tools need a spawner: commands may outlast the call")
    sessions = ShellSessions(spawner, max_running=shell.max_running, clock=clock)
    return [*tools, exec_tool(workspace, shell, sessions), process_tool(shell, sessions)]
