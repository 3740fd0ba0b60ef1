"""Owns `Tool`, the value everything else lists, ranks, guards and runs, and where a tool is from.

Above: sources make them, catalog and policy read them, the gate runs them. Below: `tools.content`,
`protocol.scope`. Refuses to know: how a call is guarded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from toolcell.base.deadline import Deadline
from toolcell.protocol.scope import RunScope
from toolcell.tools.content import ToolResult


class ToolKind(StrEnum):
    """What part a tool plays. Only `ORDINARY` tools are searched, counted and indexed."""

    ORDINARY = "ordinary"
    CONTROL = "control"
    MCP_OPERATION = "mcp-operation"


class Group(StrEnum):
    """Catalog order of rule 4.1; the members stand in that order."""

    CORE = "core"
    BUNDLED = "bundled"
    EXTERNAL = "external"
    MCP = "mcp"
    CLIENT = "client"


SourceName = Literal["openclaw", "mcp", "client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a running tool may know.

    Attributes:
        scope: Whom the run acts for.
        call_id: This call.
        parent_id: The `exec` call whose cell made it, or None.
        deadline: How long the caller will wait before it goes on without an answer; None for as
            long as it takes. A call may outlive it (rule 3.5), so nothing must stop at it; a tool
            that can hand back something to poll does so well before (REPORTS RS-10).
        update: Report progress: any JSON value; never blocks.
    """

    scope: RunScope
    call_id: str
    parent_id: str | None
    deadline: Deadline | None
    update: Callable[[Any], None]


Execute: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]
"""The body of a tool: validated plain arguments in, a result out; raises to fail. Cancellation is
the abort signal: a body that is cancelled must clean up and let the cancellation through."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Borrowed:
    """What a tool can do only where another core tool is allowed: a part of it, not all of it.

    Attributes:
        tool: The name of the core tool whose work the part is, such as `web_fetch`.
        used: Whether a call with these arguments does that work; approval rules about the other
            tool then decide about the call as well.
        without: What stands in the tool's place in runs that may not have the other one. It has
            the same name.
    """

    tool: str
    used: Callable[[Mapping[str, Any]], bool]
    without: Tool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """One tool. Frozen: to change it, publish another.

    Attributes:
        name: Its own name, as its author wrote it.
        description: What it does, for search and for models that see it directly.
        parameters: JSON Schema of its one object argument.
        execute: Its body.
        label: A short title for people.
        output_schema: JSON Schema of `details` (rule 7.1); None when the shape is not stable.
        catalog_mode: `direct-only` keeps it visible to the model and out of the catalog (rule 2.2).
        execution_mode: `sequential` never overlaps another nested call (BEHAVIOURS 191).
        replay_safe: May run again after a restart without harm (rule 3.13).
        kind: Its part.
        needs_vision: Its results are images: offered only to models that take them.
        borrows: The part of it that stands under another tool's policy; None when it has none.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    execute: Execute
    label: str | None = None
    output_schema: Mapping[str, Any] | None = None
    catalog_mode: Literal["catalog", "direct-only"] = "catalog"
    execution_mode: Literal["parallel", "sequential"] = "parallel"
    replay_safe: bool = False
    kind: ToolKind = ToolKind.ORDINARY
    needs_vision: bool = False
    borrows: Borrowed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOrigin:
    """Where an MCP tool is from: raw server name, raw tool name, and the kind of operation."""

    server: str
    tool: str
    operation: Literal[
        "tool",
        "resources.list",
        "resources.templates",
        "resources.read",
        "prompts.list",
        "prompts.get",
    ] = "tool"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourcedTool:
    """A tool and where it is from: what a source gives and the catalog takes.

    Attributes:
        tool: The tool.
        source: `openclaw`, `mcp` or `client`; there is no `plugin` source (rule 4.1).
        owner: `core`, the plugin id, the raw MCP server name or the client app.
        group: Its place in catalog order.
        mcp: For MCP tools, their origin.
    """

    tool: Tool
    source: SourceName
    owner: str
    group: Group
    mcp: McpOrigin | None = None
    id: str = field(init=False)

    def __post_init__(self) -> None:
        """Give it its catalog id: `<source>:<owner>:<tool-name>`."""
        object.__setattr__(self, "id", f"{self.source}:{self.owner}:{self.tool.name}")

    @property
    def trusted(self) -> bool:
        """Whether its schemas and descriptions come from local code (core or a plugin)."""
        return self.source == "openclaw"


def core_tool(tool: Tool) -> SourcedTool:
    """Return `tool` as trusted local code: `openclaw:core:<name>`."""
    return SourcedTool(tool=tool, source="openclaw", owner="core", group=Group.CORE)


def borrowed(sourced: SourcedTool) -> SourcedTool | None:
    """Return a stand-in for the tool that `sourced` borrows from, to ask rules about; else None."""
    borrows = sourced.tool.borrows
    return None if borrows is None else core_tool(replace(borrows.without, name=borrows.tool))
