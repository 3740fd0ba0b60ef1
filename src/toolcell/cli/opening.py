"""Owns starting a runtime for a command: config, core tools, record, progress, approvals.

Above: the commands that run something. Below: `app`, `sessions`, `sources.core`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from toolcell.app.conversation import with_children
from toolcell.app.host import Host
from toolcell.app.logsink import LogSink
from toolcell.app.runtime import Parts, Runtime
from toolcell.app.settings import sessions_path_of, workspace_of
from toolcell.cli.approving import TerminalApprover, somebody_there
from toolcell.cli.console import Progress
from toolcell.cli.watching import ProgressSink
from toolcell.config.tree import Config
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.protocol.approvals import Approver, NoApprover
from toolcell.protocol.scope import DEFAULT_AGENT
from toolcell.protocol.sink import Sink
from toolcell.sessions.contract import Sessions
from toolcell.sessions.memory import MemorySessions
from toolcell.sessions.store import SessionStore
from toolcell.sources.mcp.options import McpOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a command wants its runtime.

    Attributes:
        agent: The agent whose workspace the core tools get.
        record: Keep what happens in the session database; else in memory, for this process.
        plugins: Plugins of the command's own.
        sinks: Who else gets events.
        core: Whether the core tools are there.
        warn: Whether to name on stderr what is not available.
        mcp: What all MCP servers share.
        approver: Who is asked instead of a person at the terminal.
        log: Where diagnostics go.
    """

    agent: str = DEFAULT_AGENT
    record: bool = False
    plugins: tuple[ToolPlugin, ...] = ()
    sinks: tuple[Sink, ...] = field(default=())
    core: bool = True
    warn: bool = True
    mcp: McpOptions | None = None
    approver: Approver | None = None
    log: Sink = field(default_factory=LogSink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A running runtime and the record of what it does."""

    runtime: Runtime
    sessions: Sessions
    progress: Progress


@asynccontextmanager
async def opened(config: Config, opening: Opening, progress: Progress) -> AsyncIterator[Opened]:
    """Start a runtime and close it afterwards.

    Raises:
        ToolcellError: the config, a plugin or the session database cannot be used.
    """
    async with AsyncExitStack() as stack:
        sessions: Sessions = MemorySessions()
        if opening.record:
            store = SessionStore(sessions_path_of(config))
            sessions = await stack.enter_async_context(store)
        watching = ProgressSink(progress)
        stack.callback(_told, watching, progress)
        parts = Parts(
            workspace=workspace_of(config, opening.agent) if opening.core else None,
            sessions=sessions,
            plugins=opening.plugins,
            mcp=opening.mcp,
            sinks=(sessions, watching, *opening.sinks),
            on_progress=progress.say,
        )
        approver = opening.approver or _approver(progress)
        runtime = Runtime(config, parts, Host(approver=approver, sink=opening.log))
        stack.push_async_callback(runtime.aclose)
        with_children(runtime)
        await runtime.start()
        for each in runtime.unavailable() if opening.warn else ():
            progress.warn(f"{each.owner} is unavailable: {each.reason}")
        yield Opened(runtime=runtime, sessions=sessions, progress=progress)


def _told(watching: ProgressSink, progress: Progress) -> None:
    """Leave the tree of child agents on the terminal when the work is over."""
    if progress.shown and watching.tree:
        progress.line("\n".join(watching.tree.lines()))


def _approver(progress: Progress) -> Approver:
    """Ask on the terminal when somebody sits there; else every answer is no."""
    return TerminalApprover(progress) if somebody_there(progress) else NoApprover()
