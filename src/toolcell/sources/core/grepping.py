"""Owns the `grep` tool: lines of files that match a pattern.

Above: `sources.core.toolset`. Below: `scanning`, `matching`, `walk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.jsontext import JsonObject
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, array, closed
from toolcell.sources.core.globs import Glob
from toolcell.sources.core.matching import matcher
from toolcell.sources.core.scanning import Batch, Buffer, Scan
from toolcell.sources.core.walk import Walk, WalkOptions
from toolcell.sources.core.work import Absent, Arguments, Stop, Text, in_thread
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DEFAULT_LIMIT: Final = 200
MAX_LIMIT: Final = 10_000
MAX_CONTEXT: Final = 10
MAX_LINE_BYTES: Final = 500
_CONTEXT_REACH: Final = 16_384
"""Bytes looked at for each context line; a longer line is shown cut anyway."""

OUTPUT: Final[Mapping[str, Any]] = closed(
    {
        "matches": array(
            closed(
                {
                    "path": STRING,
                    "line": INTEGER,
                    "text": STRING,
                    "before": array(STRING),
                    "after": array(STRING),
                },
                optional=("before", "after"),
            )
        ),
        "files": INTEGER,
        "skipped": INTEGER,
        "truncated": BOOLEAN,
    }
)


class GrepArguments(Arguments):
    """Arguments of `grep`."""

    pattern: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4096,
            description="Regular expression (RE2: no look-around, no back references), per line.",
        ),
    ]
    path: Annotated[Text, Field(min_length=1, description="A directory or one file.")] = "."
    glob: Annotated[str | Absent, Field(description="Only files like this: `*.py`.")] = None
    literal: Annotated[bool, Field(description="`pattern` is plain text.")] = False
    ignore_case: Annotated[bool, Field(description="Match letters in either case.")] = False
    context: Annotated[
        int, Field(ge=0, le=MAX_CONTEXT, description="Lines to add before and after.")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Matches at most.")] = DEFAULT_LIMIT
    hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = False
    gitignore: Annotated[bool, Field(description="Pass over what .gitignore names.")] = True


def grep_tool(workspace: WorkspaceRoots) -> Tool:
    """Return the `grep` tool for a workspace."""

    async def execute(arguments: GrepArguments) -> ToolResult:
        return await in_thread(lambda stop: _grep(workspace, arguments, stop))

    return build_tool(
        name="grep",
        label="Search in files",
        description=(
            "Search the text of workspace files line by line with a regular expression. Passes "
            "over binary, hidden and git-ignored files unless told otherwise."
        ),
        parameters=GrepArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=True,
    )


@dataclass(slots=True)
class _Found:
    """The matches of one call, as they are returned."""

    context: int
    matches: list[JsonObject] = field(default_factory=list)

    def take(self, batch: Batch, index: int, number: int, first: int, end: int, /) -> None:
        """Take a line."""
        buffer = batch.buffer
        text = _shown(buffer[first:end])
        found: JsonObject = {"path": batch.paths[index], "line": number, "text": text}
        count = self.context
        if count:
            # Lines of the same chunk only: a chunk is 4 MiB, and context is a comfort.
            reach = count * _CONTEXT_REACH
            before = buffer[max(batch.starts[index], first - reach) : first]
            after = buffer[end + 1 : min(batch.ends[index], end + 1 + reach)]
            found["before"] = _lines(before, -count)
            found["after"] = _lines(after, count)
        self.matches.append(found)


def _lines(part: Buffer, count: int) -> list[str]:
    """Return the first lines of a part, or the last ones for a negative count."""
    if count > 0:
        lines = part.split(b"\n", count)[:count]
        if lines and not lines[-1]:
            lines.pop()
    else:
        lines = part.removesuffix(b"\n").split(b"\n")[count:] if part else []
    return [_shown(each) for each in lines]


def _shown(line: Buffer) -> str:
    text = line[: MAX_LINE_BYTES * 4].decode("utf-8", "replace")
    return text if len(text) <= MAX_LINE_BYTES else f"{text[:MAX_LINE_BYTES]}…"


def _grep(workspace: WorkspaceRoots, arguments: GrepArguments, stop: Stop) -> ToolResult:
    found = _Found(arguments.context)
    scan = Scan(
        matcher(arguments.pattern, literal=arguments.literal, ignore_case=arguments.ignore_case),
        stop,
        arguments.limit,
        found.take,
    )
    with workspace.opened(arguments.path) as start:
        if not start.is_directory:
            scan.file(start.fd, start.shown)
            return _result(scan, found.matches)
        options = WalkOptions(
            glob=Glob(arguments.glob) if arguments.glob else None,
            kind="file",
            hidden=arguments.hidden,
            gitignore=arguments.gitignore,
        )
        prefix = "" if start.shown == "." else f"{start.shown}/"
        scan.tree(Walk(workspace, start, options, stop), prefix)
    return _result(scan, found.matches)


def _result(scan: Scan, matches: list[JsonObject]) -> ToolResult:
    details = {
        "matches": matches,
        "files": scan.files,
        "skipped": scan.skipped,
        "truncated": scan.truncated,
    }
    lines = [f"{each['path']}:{each['line']}:{each['text']}" for each in matches]
    if scan.truncated:
        lines.append("[more follows; narrow the pattern or raise the limit]")
    return ToolResult(content=(TextContent("\n".join(lines) or "[no match]"),), details=details)
