"""Owns the `edit` tool: one exact text in a file replaced by another.

Above: `sources.core.toolset`. Below: `changes`, `placing`. Refuses to know: patches (`patching`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.jsontext import clip_utf8, utf8_length
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.changes import Changes, Span
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, closed, nullable
from toolcell.sources.core.placing import Place, placed
from toolcell.sources.core.work import Arguments, Stop, Text, failed, in_thread, refused
from toolcell.sources.core.workspace import NotFoundError, WorkspaceRoots
from toolcell.sources.core.writing import MAX_BYTES, Turns, encoded, put
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

DIFF_BYTES: Final = 32 << 10
"""`diff` is for reading: the rest is left out with a note."""

PATCH_BYTES: Final = 256 << 10
"""A longer `patch` is null: half a patch would be none."""

MAX_REPLACEMENTS: Final = 100_000
"""Every replacement is an object of its own until the file is written."""

_NAMED: Final = 5

OUTPUT: Final[Mapping[str, Any]] = closed(
    {
        "path": STRING,
        "changed": BOOLEAN,
        "replacements": INTEGER,
        "firstChangedLine": nullable("integer"),
        "diff": STRING,
        "patch": nullable("string"),
    }
)


class EditArguments(Arguments):
    """Arguments of `edit`."""

    path: Annotated[Text, Field(min_length=1, description="File, relative to the workspace.")]
    old_text: Annotated[Text, Field(min_length=1, description="Exact text, found just once.")]
    new_text: Annotated[Text, Field(description="What takes its place.")]
    replace_all: Annotated[bool, Field(description="Replace every occurrence.")] = False


def edit_tool(workspace: WorkspaceRoots, turns: Turns) -> Tool:
    """Return the `edit` tool for a workspace."""

    async def execute(arguments: EditArguments) -> ToolResult:
        return await in_thread(lambda stop: _edit(workspace, turns, arguments, stop))

    return build_tool(
        name="edit",
        label="Edit file",
        description=(
            "Replace an exact text in a file of the workspace. The text must be found exactly "
            "once, unless `replaceAll`. Says whether the file changed, with a diff and a patch."
        ),
        parameters=EditArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=False,
    )


def text_of(place: Place, path: str) -> str:
    """Return a file's text.

    Raises:
        NotFoundError: there is no file.
        CallError: it is too large or no UTF-8.
    """
    if place.info is None:
        message = f"{path!r} does not exist."
        raise NotFoundError(message, code="tool_error", effect="none")
    try:
        return place.read(MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path!r} is not UTF-8 text (byte {error.start}), so it cannot be edited."
        raise failed(message) from None


def _edit(
    workspace: WorkspaceRoots, turns: Turns, arguments: EditArguments, stop: Stop
) -> ToolResult:
    with turns.taken(stop), placed(workspace, arguments.path, make_parents=False) as place:
        text = text_of(place, arguments.path)
        spans = _spans(text, arguments)
        changes = Changes(text, spans)
        if changes.first_line is not None:
            data = encoded(_replaced(text, spans), "the edited file")
            put(place, data, unless_changed=True)
    patch = changes.patch(place.shown)
    details = {
        "path": place.shown,
        "changed": changes.first_line is not None,
        "replacements": len(spans),
        "firstChangedLine": changes.first_line,
        "diff": _bounded(changes.diff()),
        "patch": patch if utf8_length(patch) <= PATCH_BYTES else None,
    }
    told = f"{place.shown} is as it was." if not details["changed"] else f"Edited {place.shown}."
    return ToolResult(
        content=(TextContent(f"{told}\n{details['diff']}".rstrip()),), details=details
    )


def _spans(text: str, arguments: EditArguments) -> list[Span]:
    old, new = arguments.old_text, arguments.new_text
    if old not in text and "\r\n" in text and "\n" in old:
        # The file has the line ends of DOS; who wrote `oldText` saw plain ones.
        old, new = (_with_dos_ends(each) for each in (old, new))
    at = text.find(old)
    starts: list[int] = []
    while at >= 0:
        starts.append(at)
        if len(starts) > MAX_REPLACEMENTS:
            message = (
                f"oldText is found more than {MAX_REPLACEMENTS} times in {arguments.path!r}; "
                "add text around it, or write the whole file."
            )
            raise refused(message)
        at = text.find(old, at + len(old))
    if not starts:
        raise refused(_missing(text, arguments))
    if len(starts) > 1 and not arguments.replace_all:
        lines = ", ".join(str(text.count("\n", 0, each) + 1) for each in islice(starts, _NAMED))
        more = ", …" if len(starts) > _NAMED else ""
        message = (
            f"oldText is found {len(starts)} times in {arguments.path!r}, in lines {lines}{more}. "
            "Add text around it until it is unique, or pass replaceAll: true."
        )
        raise refused(message)
    return [Span(start, start + len(old), new) for start in starts]


def _missing(text: str, arguments: EditArguments) -> str:
    message = f"oldText is not found in {arguments.path!r}."
    first = next((line.strip() for line in arguments.old_text.split("\n") if line.strip()), "")
    at = text.find(first) if first else -1
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        return f"{message} Its first line is there, in line {line}: compare white space and rest."
    return f"{message} Read the file and copy the text exactly."


def _replaced(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += [text[position : span.start], span.text]
        position = span.end
    return "".join([*parts, text[position:]])


def _with_dos_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _bounded(text: str) -> str:
    shown = clip_utf8(text, DIFF_BYTES)
    return text if shown == text else f"{shown}\n[the rest of the diff is left out]"
