"""Owns the `read` tool: text of a file, in parts that continue where the last one ended; images.

Above: `sources.core.toolset`. Below: `workspace`, `base.images`. Refuses to know: what a picture
shows.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.images import (
    HEAD_BYTES,
    MAX_IMAGE_BYTES,
    Picture,
    base64_text,
    picture_for_model,
    picture_of,
)
from toolcell.base.jsontext import JsonObject, clip_utf8
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import BOOLEAN, INTEGER, STRING, closed, constant, nullable
from toolcell.sources.core.work import (
    Absent,
    Arguments,
    Natural,
    Positive,
    Stop,
    Text,
    failed,
    in_thread,
    refused,
)
from toolcell.sources.core.workspace import NotFoundError, Opened, WorkspaceRoots
from toolcell.tools.content import ImageContent, TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

MAX_BYTES: Final = 1 << 20
"""Text of one call at most: a program wants whole files, and loops over `next` for the rest."""

CONTENT_BYTES: Final = 64 * 1024
"""Text a model that calls the tool directly is shown at most."""

MAX_DECODED_BYTES: Final = 64 << 20
"""Files in other encodings than UTF-8 are decoded whole, up to this size."""

_MAGIC: Final = 32
_PROBE: Final = 8192
_SCAN: Final = 1 << 20

ENCODINGS: Final = (
    "utf-8",
    "utf-8-lossy",
    "utf-16",
    "latin-1",
    "cp1252",
    "shift_jis",
    "euc-jp",
    "euc-kr",
    "gb18030",
    "big5",
)

OUTPUT: Final[Mapping[str, Any]] = {
    "anyOf": [
        closed(
            {
                "kind": constant("text"),
                "path": STRING,
                "text": STRING,
                "startLine": INTEGER,
                "lines": INTEGER,
                "size": INTEGER,
                "truncated": BOOLEAN,
                "next": {
                    "anyOf": [
                        closed({"offset": INTEGER, "byteOffset": INTEGER}),
                        {"type": "null"},
                    ]
                },
            }
        ),
        closed(
            {
                "kind": constant("image"),
                "path": STRING,
                "mimeType": STRING,
                "width": nullable("integer"),
                "height": nullable("integer"),
                "size": INTEGER,
            }
        ),
        closed({"kind": constant("not_found"), "path": STRING}),
    ]
}


class ReadArguments(Arguments):
    """Arguments of `read`."""

    path: Annotated[Text, Field(min_length=1, description="File, relative to the workspace.")]
    offset: Annotated[int, Field(ge=1, description="First line, counted from 1.")] = 1
    limit: Annotated[Positive | Absent, Field(description="Lines at most; default all.")] = None
    byte_offset: Annotated[
        Natural | Absent,
        Field(description="Where to go on: spread `next` of the last result into the call."),
    ] = None
    encoding: Annotated[
        str | Absent,
        Field(description=f"Default UTF-8, or what a byte order mark says. {', '.join(ENCODINGS)}"),
    ] = None
    optional: Annotated[
        bool, Field(description="Give `{kind: 'not_found'}` instead of an error.")
    ] = False


def read_tool(workspace: WorkspaceRoots) -> Tool:
    """Return the `read` tool for a workspace."""

    async def execute(arguments: ReadArguments, context: ToolContext) -> ToolResult:
        direct = context.parent_id is None
        return await in_thread(lambda stop: _read(workspace, arguments, stop, direct=direct))

    return build_tool(
        name="read",
        label="Read file",
        description=(
            "Read a text file of the workspace. Returns up to 1 MiB; when `truncated`, call again "
            "with `{path, ...result.next}`. Of an image, a program gets the kind and the size."
        ),
        parameters=ReadArguments,
        output_schema=OUTPUT,
        execute=execute,
        replay_safe=True,
    )


def _read(
    workspace: WorkspaceRoots, arguments: ReadArguments, stop: Stop, *, direct: bool
) -> ToolResult:
    try:
        with workspace.file(arguments.path) as found:
            if arguments.encoding is None:
                raw = _Text(found.fd, found.info.st_size, None, "strict")
                if (picture := picture_of(raw.at(0, _MAGIC))) is not None:
                    return _image(raw, found, picture, direct=direct)
            return _part(_text_of(found, arguments, stop), found, arguments, stop)
    except NotFoundError:
        if not arguments.optional:
            raise
        details = {"kind": "not_found", "path": arguments.path}
        return ToolResult(
            content=(TextContent(f"{arguments.path} does not exist."),), details=details
        )


def _image(raw: _Text, found: Opened, picture: Picture, *, direct: bool) -> ToolResult:
    """Describe an image; who calls `read` directly also gets the picture, when it is not large."""
    picture = picture_of(raw.at(0, HEAD_BYTES)) or picture
    details = {
        "kind": "image",
        "path": found.shown,
        "mimeType": picture.mime_type,
        "width": picture.width,
        "height": picture.height,
        "size": raw.size,
    }
    said = f"{picture.shown}, {raw.size} bytes"
    if not direct:
        return ToolResult(content=(TextContent(f"[{said}]"),), details=details)
    data = raw.at(0, MAX_IMAGE_BYTES + 1)
    usable = picture_for_model(data, raw.size)
    if isinstance(usable, str):
        return ToolResult(content=(TextContent(f"[{said}; not shown: {usable}]"),), details=details)
    shown = ImageContent(base64_text(data), usable.mime_type)
    return ToolResult(content=(TextContent(f"[{said}]"), shown), details=details)


@dataclass(frozen=True, slots=True)
class _Text:
    """UTF-8 to read from: a file as it is, or one decoded into memory."""

    fd: int
    size: int
    decoded: bytes | None
    errors: str

    def at(self, position: int, count: int) -> bytes:
        if self.decoded is not None:
            return self.decoded[position : position + count]
        parts: list[bytes] = []
        while count > 0:
            part = os.pread(self.fd, count, position)
            if not part:
                break
            parts.append(part)
            position += len(part)
            count -= len(part)
        return b"".join(parts)


def _text_of(found: Opened, arguments: ReadArguments, stop: Stop) -> _Text:
    raw = _Text(found.fd, found.info.st_size, None, "strict")
    head = raw.at(0, _PROBE)
    encoding = _encoding(arguments, head)
    if encoding in {"utf-8", "utf-8-lossy"}:
        if b"\0" in head:
            message = f"{arguments.path!r} is binary ({raw.size} bytes); read takes text."
            raise failed(message)
        return _Text(raw.fd, raw.size, None, "strict" if encoding == "utf-8" else "replace")
    if raw.size > MAX_DECODED_BYTES:
        limit = MAX_DECODED_BYTES >> 20
        message = f"{arguments.path!r} is larger than {limit} MiB, too large to decode {encoding}."
        raise failed(message)
    data = raw.at(0, MAX_DECODED_BYTES)
    stop.check()
    try:
        decoded = data.decode(encoding).encode("utf-8")
    except UnicodeError as error:
        message = f"{arguments.path!r} is not {encoding} text: {error}."
        raise failed(message) from None
    return _Text(raw.fd, len(decoded), decoded, "strict")


def _encoding(arguments: ReadArguments, head: bytes) -> str:
    given = arguments.encoding
    if given is None:
        marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return "utf-16" if head.startswith(marks) else "utf-8"
    if given.lower() not in ENCODINGS:
        msg = f"encoding {given!r} is not known. Use one of {', '.join(ENCODINGS)}."
        raise refused(msg)
    return given.lower()


def _part(text: _Text, found: Opened, arguments: ReadArguments, stop: Stop) -> ToolResult:
    """Return the lines asked for."""
    position, line = _beginning(text, arguments, stop)
    data = text.at(position, MAX_BYTES + 1)
    taken = _cut(data, arguments.limit)
    end = position + len(taken)
    if position == 0:
        taken = taken.removeprefix(codecs.BOM_UTF8)
    try:
        shown = taken.decode("utf-8", text.errors)
    except UnicodeDecodeError as error:
        message = (
            f"{arguments.path!r} is not UTF-8 text (byte {position + error.start}). "
            "Pass encoding, such as 'latin-1', or 'utf-8-lossy' to replace what is not."
        )
        raise failed(message) from None
    breaks = taken.count(b"\n")
    lines = breaks + (1 if taken and not taken.endswith(b"\n") else 0)
    truncated = len(taken) < len(data) and end < position + len(data)
    more: JsonObject | None = None
    if truncated:
        more = {"offset": line + breaks, "byteOffset": end}
    details = {
        "kind": "text",
        "path": found.shown,
        "text": shown,
        "startLine": line,
        "lines": lines,
        "size": found.info.st_size,
        "truncated": truncated,
        "next": more,
    }
    return ToolResult(content=(TextContent(_content(details)),), details=details)


def _beginning(text: _Text, arguments: ReadArguments, stop: Stop) -> tuple[int, int]:
    """Return the byte the first line starts at, and its number."""
    if arguments.byte_offset is not None:
        if arguments.byte_offset > text.size:
            size = text.size
            msg = f"byteOffset {arguments.byte_offset} is past the end ({size} bytes)."
            raise refused(msg)
        return arguments.byte_offset, arguments.offset
    missing = arguments.offset - 1
    position = 0
    while missing:
        chunk = text.at(position, _SCAN)
        if not chunk or stop.check():
            break
        count = chunk.count(b"\n")
        if count >= missing:
            index = -1
            for _ in range(missing):
                index = chunk.index(b"\n", index + 1)
            return position + index + 1, arguments.offset
        missing -= count
        position += len(chunk)
    if missing:
        last = arguments.offset - missing
        msg = f"offset {arguments.offset} is past the end: about {last} lines."
        raise refused(msg)
    return 0, 1


def _cut(data: bytes, limit: int | None) -> bytes:
    """Return whole lines of at most `MAX_BYTES`; part of a line only when one is longer."""
    if limit is not None:
        index = -1
        for _ in range(limit):
            index = data.find(b"\n", index + 1)
            if index < 0:
                break
        if 0 <= index < MAX_BYTES:
            return data[: index + 1]
    if len(data) <= MAX_BYTES:
        return data
    last = data.rfind(b"\n", 0, MAX_BYTES)
    if last >= 0:
        return data[: last + 1]
    end = MAX_BYTES
    while end and (data[end] & 0xC0) == 0x80:
        end -= 1
    return data[:end]


def _content(details: Mapping[str, Any]) -> str:
    text = clip_utf8(details["text"], CONTENT_BYTES)
    if len(text) < len(details["text"]):
        line = details["startLine"] + text.count("\n")
        return f"{text}\n[cut here in line {line}; go on with offset {line}]"
    if details["next"] is not None:
        return f"{text}\n[more follows; go on with {details['next']}]"
    return text
