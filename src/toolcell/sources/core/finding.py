"""Owns the `find` tool: paths whose names match a glob.

Above: `sources.core.toolset`. Below: `sources.core.walk`. Refuses to know: contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, array, closed
from toolcell.sources.core.globs import Glob
from toolcell.sources.core.walk import MAX_DEPTH, Walk, WalkOptions
from toolcell.sources.core.work import Arguments, Stop, Text, in_thread
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 50_000

OUTPUT: Final[Mapping[str, Any]] = closed(
    {"paths": array(STRING), "truncated": BOOLEAN, "unreadable": INTEGER}
)


class FindArguments(Arguments):
    """Arguments of `find`."""

    pattern: Annotated[
        str,
        Field(
            min_length=1,
            description="Glob: `*.py` at any depth, `src/**/*.{ts,tsx}` from `path` down.",
        ),
    ]
    path: Annotated[Text, Field(min_length=1, description="Where to start.")] = "."
    type: Annotated[
        Literal["file", "directory", "any"], Field(description="`any` also gives links.")
    ] = "file"
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Paths at most.")] = DEFAULT_LIMIT
    hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = False
    gitignore: Annotated[bool, Field(description="Pass over what .gitignore names.")] = True
    ignore_case: Annotated[bool, Field(description="Match letters in either case.")] = False
    max_depth: Annotated[int, Field(ge=1, le=MAX_DEPTH, description="Levels down.")] = MAX_DEPTH


def find_tool(workspace: WorkspaceRoots) -> Tool:
    """Return the `find` tool for a workspace."""

    async def execute(arguments: FindArguments) -> ToolResult:
        return await in_thread(lambda stop: _find(workspace, arguments, stop))

    return build_tool(
        name="find",
        label="Find files",
        description=(
            "Find files of the workspace by name with a glob pattern. Passes over hidden and "
            "git-ignored files unless told otherwise; does not follow links."
        ),
        parameters=FindArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=True,
    )


def _find(workspace: WorkspaceRoots, arguments: FindArguments, stop: Stop) -> ToolResult:
    options = WalkOptions(
        glob=Glob(arguments.pattern, ignore_case=arguments.ignore_case),
        kind=None if arguments.type == "any" else arguments.type,
        hidden=arguments.hidden,
        gitignore=arguments.gitignore,
        max_depth=arguments.max_depth,
    )
    paths: list[str] = []
    full = False
    with workspace.directory(arguments.path) as start:
        walk = Walk(workspace, start, options, stop)
        prefix = "" if start.shown == "." else f"{start.shown}/"
        for run in walk:
            paths += [f"{prefix}{path}" for path in run.paths] if prefix else run.paths
            if len(paths) > arguments.limit:
                del paths[arguments.limit :]
                full = True
                break
    truncated = full or walk.tally.cut_short
    details = {"paths": paths, "truncated": truncated, "unreadable": walk.tally.unreadable}
    lines = [*paths, "[more were found; narrow the pattern]"] if truncated else paths
    text = "\n".join(lines) or "[nothing found]"
    return ToolResult(content=(TextContent(text),), details=details)
