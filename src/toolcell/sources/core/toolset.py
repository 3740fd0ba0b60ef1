"""Owns the list of core tools. Above: `app`. Below: each tool's own file."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.spawner import Spawner
from toolcell.sources.core.conversations import Conversations, conversation_tools
from toolcell.sources.core.editing import edit_tool
from toolcell.sources.core.fetching import FetchOptions, web_fetch_tool
from toolcell.sources.core.finding import find_tool
from toolcell.sources.core.grepping import grep_tool
from toolcell.sources.core.http_types import Http
from toolcell.sources.core.listing import ls_tool
from toolcell.sources.core.own_gateway import openclaw_tool
from toolcell.sources.core.patching import apply_patch_tool
from toolcell.sources.core.ports import CorePorts
from toolcell.sources.core.reading import read_tool
from toolcell.sources.core.seeing import image_tool
from toolcell.sources.core.session_reading import SessionView, session_tools
from toolcell.sources.core.session_sending import agents_list_tool, sessions_send_tool
from toolcell.sources.core.shell import ShellOptions, exec_tool, process_tool
from toolcell.sources.core.shell_session import ShellSessions
from toolcell.sources.core.web_search import SearchSetup, web_search_tool
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.sources.core.writing import Turns, write_tool
from toolcell.tools.tool import Tool


def core_tools(
    workspace: WorkspaceRoots,
    shell: ShellOptions | None = None,
    *,
    spawner: Spawner | None = None,
    clock: Clock = SYSTEM_CLOCK,
    pictures: Http | None = None,
    picture_seconds: float = 20.0,
) -> list[Tool]:
    """Return the core tools of a workspace.

    They are `read`, `ls`, `find`, `grep`, `write`, `edit`, `apply_patch`, `image`, and with a shell
    `exec` and `process`.

    Args:
        workspace: The directories the file tools may read and write.
        shell: How commands run; None for no shell tools.
        spawner: Where commands live that outlast a call; needed with `shell`.
        clock: For durations.
        pictures: How `image` loads addresses; None when it may not.
        picture_seconds: How long one of those may take.

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
        image_tool(workspace, pictures, picture_seconds),
    ]
    if shell is None:
        return tools
    if spawner is None:
        raise ValueError("shell tools need a spawner: commands may outlast the call")
    sessions = ShellSessions(spawner, max_running=shell.max_running, clock=clock)
    return [*tools, exec_tool(workspace, shell, sessions), process_tool(shell, sessions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Online:
    """How the tools that reach the network do so.

    Attributes:
        pages: For addresses a model names.
        services: For addresses the operator names, which may be private.
        conversations: Whom messages can be sent to.
        fetch: How pages are fetched.
        search: Who searches; None when nobody does.
    """

    pages: Http
    services: Http
    conversations: Conversations
    fetch: FetchOptions = field(default_factory=FetchOptions)
    search: SearchSetup | None = None


def online_tools(online: Online, *, clock: Clock = SYSTEM_CLOCK) -> list[Tool]:
    """Return `web_fetch`, `web_search` and `conversations_list/send/turn`."""
    return [
        web_fetch_tool(online.pages, online.fetch, clock=clock),
        web_search_tool(online.services, online.search),
        *conversation_tools(online.conversations),
    ]


def program_tools(ports: CorePorts, *, clock: Clock = SYSTEM_CLOCK) -> list[Tool]:
    """Return the tools about agents, sessions and this process, as far as there are ports."""
    tools = [agents_list_tool(ports)]
    if ports.sessions is not None:
        view = SessionView(ports.sessions, clock)
        tools += [*session_tools(ports.sessions, clock=clock), sessions_send_tool(ports, view)]
    if ports.own is not None:
        tools.append(openclaw_tool(ports.own))
    return tools
