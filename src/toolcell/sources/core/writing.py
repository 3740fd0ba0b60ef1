"""Owns the `write` tool: a whole file, put in place at one instant.

Above: `sources.core.toolset`. Below: `sources.core.placing`. Refuses to know: what was there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.jsontext import utf8_length
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, closed
from toolcell.sources.core.placing import Place, placed, told_of
from toolcell.sources.core.work import Arguments, Stop, Text, in_thread, refused
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

MAX_BYTES: Final = 16 << 20

OUTPUT: Final[Mapping[str, Any]] = closed({"path": STRING, "bytes": INTEGER, "created": BOOLEAN})


class Turns:
    """One change of files at a time, so that no call overwrites what another one just did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, stop: Stop) -> Iterator[None]:
        """Wait for the turn; a call that was cancelled meanwhile changes nothing any more."""
        with self._lock:
            stop.check()
            yield


class WriteArguments(Arguments):
    """Arguments of `write`."""

    path: Annotated[Text, Field(min_length=1, description="File, relative to the workspace.")]
    content: Annotated[Text, Field(description="The whole text, written as UTF-8.")]


def write_tool(workspace: WorkspaceRoots, turns: Turns) -> Tool:
    """Return the `write` tool for a workspace."""

    async def execute(arguments: WriteArguments) -> ToolResult:
        return await in_thread(lambda stop: _write(workspace, turns, arguments, stop))

    return build_tool(
        name="write",
        label="Write file",
        description=(
            "Write a text file of the workspace, whole: makes missing directories, replaces what "
            "was there at one instant. To change a part of a file, use edit or apply_patch."
        ),
        parameters=WriteArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


def encoded(text: str, what: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        CallError: it is too long, or no text a file can hold.
    """
    if utf8_length(text) > MAX_BYTES:
        message = f"{what} has {utf8_length(text)} bytes, at most {MAX_BYTES}."
        raise refused(message)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"{what} holds a lone surrogate at {error.start}, which is no text."
        raise refused(message) from None


def put(place: Place, data: bytes, *, unless_changed: bool = False) -> None:
    """Write a file, or leave everything as it was.

    Raises:
        CallError: it cannot be written, or with `unless_changed` is not the file that was found.
    """
    with told_of(place.shown):
        staged = place.stage(data)
        try:
            if unless_changed:
                place.check_unchanged()
            place.commit(staged)
        except BaseException:
            place.drop(staged)
            raise


def _write(
    workspace: WorkspaceRoots, turns: Turns, arguments: WriteArguments, stop: Stop
) -> ToolResult:
    data = encoded(arguments.content, "content")
    with turns.taken(stop), placed(workspace, arguments.path, make_parents=True) as place:
        put(place, data)
    details = {"path": place.shown, "bytes": len(data), "created": place.info is None}
    verb = "Created" if details["created"] else "Replaced"
    text = f"{verb} {place.shown} ({len(data)} bytes)."
    return ToolResult(content=(TextContent(text),), details=details)
