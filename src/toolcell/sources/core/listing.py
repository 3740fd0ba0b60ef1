"""Owns the `ls` tool: the entries of one directory.

Above: `sources.core.toolset`. Below: `sources.core.workspace`. Refuses to know: trees.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, array, closed, nullable
from toolcell.sources.core.walk import Kind, kind_of
from toolcell.sources.core.work import Arguments, Stop, Text, failed, in_thread
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
MAX_NAMES: Final = 1_000_000

OUTPUT: Final[Mapping[str, Any]] = closed(
    {
        "path": STRING,
        "entries": array(
            closed(
                {
                    "name": STRING,
                    "type": {"enum": ["file", "directory", "symlink", "other"]},
                    "size": INTEGER,
                    "modifiedMs": INTEGER,
                }
            )
        ),
        "total": INTEGER,
        "truncated": BOOLEAN,
        "nextOffset": nullable("integer"),
    }
)


class LsArguments(Arguments):
    """Arguments of `ls`."""

    path: Annotated[Text, Field(min_length=1, description="Directory to list.")] = "."
    offset: Annotated[int, Field(ge=0, description="Entries to skip.")] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Entries at most.")] = DEFAULT_LIMIT
    hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = True


def ls_tool(workspace: WorkspaceRoots) -> Tool:
    """Return the `ls` tool for a workspace."""

    async def execute(arguments: LsArguments) -> ToolResult:
        return await in_thread(lambda stop: _list(workspace, arguments, stop))

    return build_tool(
        name="ls",
        label="List directory",
        description=(
            "List one directory of the workspace, sorted by name: names, types, sizes, times. "
            "When `truncated`, call again with `offset: result.nextOffset`."
        ),
        parameters=LsArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=True,
    )


def _list(workspace: WorkspaceRoots, arguments: LsArguments, stop: Stop) -> ToolResult:
    with workspace.directory(arguments.path) as found:
        names = _names(found.fd, arguments, stop)
        end = arguments.offset + arguments.limit
        entries = [
            entry
            for name, kind in names[arguments.offset : end]
            if (entry := _entry(found.fd, name, kind)) is not None
        ]
    truncated = end < len(names)
    details = {
        "path": found.shown,
        "entries": entries,
        "total": len(names),
        "truncated": truncated,
        "nextOffset": end if truncated else None,
    }
    lines = [f"{each['name']}{'/' if each['type'] == 'directory' else ''}" for each in entries]
    if truncated:
        lines.append(f"[{len(names) - end} more; go on with offset {end}]")
    return ToolResult(content=(TextContent("\n".join(lines) or "[empty]"),), details=details)


def _names(fd: int, arguments: LsArguments, stop: Stop) -> list[tuple[str, Kind]]:
    names: list[tuple[str, Kind]] = []
    try:
        with os.scandir(fd) as found:
            for entry in found:
                if arguments.hidden or entry.name[0] != ".":
                    names.append((entry.name, kind_of(entry)))
                if len(names) % 4096 == 0 and (stop.check() or len(names) > MAX_NAMES):
                    msg = f"{arguments.path!r} has too many entries to list."
                    raise failed(msg)
    except OSError as error:
        message = f"{arguments.path!r} cannot be listed: {error.strerror}."
        raise failed(message) from None
    names.sort()
    return names


def _entry(fd: int, name: str, kind: Kind) -> dict[str, Any] | None:
    try:
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None  # removed since it was listed
    return {
        "name": name,
        "type": kind,
        "size": info.st_size,
        "modifiedMs": info.st_mtime_ns // 1_000_000,
    }
