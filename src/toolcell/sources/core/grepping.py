"""Owns the `grep` tool: lines of files that match a pattern.

Above: `sources.core.toolset`. Below: `sources.core.walk`, `sources.core.matching`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.jsontext import JsonObject
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, array, closed
from toolcell.sources.core.globs import Glob
from toolcell.sources.core.matching import Matcher, matcher
from toolcell.sources.core.walk import Walk, WalkOptions
from toolcell.sources.core.work import Absent, Arguments, Stop, Text, in_thread
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DEFAULT_LIMIT: Final = 200
MAX_LIMIT: Final = 10_000
MAX_CONTEXT: Final = 10
MAX_LINE_BYTES: Final = 500
CHUNK_BYTES: Final = 4 << 20
_PROBE: Final = 8192
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
class _Search:
    """What one call is looking for and has found."""

    arguments: GrepArguments
    matcher: Matcher
    stop: Stop
    matches: list[JsonObject] = field(default_factory=list)
    files: int = 0
    skipped: int = 0
    truncated: bool = False

    @property
    def done(self) -> bool:
        return self.truncated

    def file(self, fd: int, size: int, shown: str) -> None:
        """Search one open file."""
        line = 1
        rest = b""
        first = True
        # A buffer of the file's own size: most files are small, and a large one costs its pages.
        count = min(CHUNK_BYTES, max(size + 1, _PROBE))
        more = True
        while more and not self.done:
            data = os.read(fd, count)
            more = len(data) == count
            if first and b"\0" in data[:_PROBE]:
                self.skipped += 1
                return
            first = False
            buffer = rest + data
            if more:
                # A line that is still open waits for its end; one longer than a chunk is cut.
                end = buffer.rfind(b"\n") + 1 or (len(buffer) if len(rest) >= CHUNK_BYTES else 0)
                buffer, rest = buffer[:end], buffer[end:]
            if b"\r\n" in buffer:
                buffer = buffer.replace(b"\r\n", b"\n")  # so that `$` is the end of such a line
            if buffer:
                line, counted = self._chunk(buffer, shown, line)
                line += buffer.count(b"\n", counted) if more else 0
        self.files += 1

    def _chunk(self, buffer: bytes, shown: str, line: int) -> tuple[int, int]:
        """Search whole lines, the first of which has number `line`.

        Returns:
            The number of a line, and where it starts.
        """
        position = 0
        counted = 0
        while position < len(buffer):
            if self.stop.check():
                self.truncated = True
                return line, counted
            start = self.matcher(buffer, position)
            if start < 0:
                break
            if len(self.matches) >= self.arguments.limit:
                self.truncated = True
                return line, counted
            first = buffer.rfind(b"\n", 0, start) + 1
            end = buffer.find(b"\n", start)
            end = len(buffer) if end < 0 else end
            line += buffer.count(b"\n", counted, first)
            counted = first
            self.matches.append(self._match(buffer, first, end, shown, line))
            position = end + 1
        return line, counted

    def _match(self, buffer: bytes, first: int, end: int, shown: str, line: int) -> JsonObject:
        found: JsonObject = {"path": shown, "line": line, "text": _shown(buffer[first:end])}
        count = self.arguments.context
        if count:
            # Lines of the same chunk only: a chunk is 4 MiB, and context is a comfort.
            reach = count * _CONTEXT_REACH
            found["before"] = _lines(buffer[max(0, first - reach) : first], -count)
            found["after"] = _lines(buffer[end + 1 : end + 1 + reach], count)
        return found


def _lines(part: bytes, count: int) -> list[str]:
    """Return the first lines of a part, or the last ones for a negative count."""
    if count > 0:
        lines = part.split(b"\n", count)[:count]
        if lines and not lines[-1]:
            lines.pop()
    else:
        lines = part.removesuffix(b"\n").split(b"\n")[count:] if part else []
    return [_shown(each) for each in lines]


def _shown(line: bytes) -> str:
    text = line[: MAX_LINE_BYTES * 4].decode("utf-8", "replace")
    return text if len(text) <= MAX_LINE_BYTES else f"{text[:MAX_LINE_BYTES]}…"


def _grep(workspace: WorkspaceRoots, arguments: GrepArguments, stop: Stop) -> ToolResult:
    search = _Search(
        arguments,
        matcher(arguments.pattern, literal=arguments.literal, ignore_case=arguments.ignore_case),
        stop,
    )
    with workspace.opened(arguments.path) as start:
        if not start.is_directory:
            search.file(start.fd, start.info.st_size, start.shown)
            return _result(search)
        options = WalkOptions(
            glob=Glob(arguments.glob) if arguments.glob else None,
            hidden=arguments.hidden,
            gitignore=arguments.gitignore,
        )
        walk = Walk(workspace, start, options, stop)
        prefix = "" if start.shown == "." else f"{start.shown}/"
        for entry in walk:
            if entry.kind != "file":
                continue
            try:
                fd, size = entry.open_file()
            except OSError:
                search.skipped += 1
                continue
            try:
                search.file(fd, size, prefix + entry.path)
            except OSError:
                search.skipped += 1
            finally:
                os.close(fd)
            if search.done:
                break
        search.skipped += walk.tally.unreadable
        search.truncated = search.truncated or walk.tally.cut_short
    return _result(search)


def _result(search: _Search) -> ToolResult:
    details = {
        "matches": search.matches,
        "files": search.files,
        "skipped": search.skipped,
        "truncated": search.truncated,
    }
    lines = [f"{each['path']}:{each['line']}:{each['text']}" for each in search.matches]
    if search.truncated:
        lines.append("[more follows; narrow the pattern or raise the limit]")
    return ToolResult(content=(TextContent("\n".join(lines) or "[no match]"),), details=details)
