"""Owns the `image` tool: a picture of the workspace, or of the web, for a model that sees.

It is direct-only (rule 2.2): a picture cannot cross the JSON bridge to a program. An address is
`web_fetch`'s to load: where policy does not allow that tool, `image` has files only.

Above: `sources.core.toolset`. Below: `workspace`, `http_types`, `base.images`. Refuses to know:
what a picture shows; which addresses may be reached.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import Field

from toolcell.base.images import MAX_IMAGE_BYTES, base64_text, picture_for_model
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import build_tool
from toolcell.sources.core.contracts import INTEGER, STRING, closed
from toolcell.sources.core.http_types import Http, HttpRequest
from toolcell.sources.core.work import Absent, Arguments, Stop, Text, failed, in_thread, refused
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.content import ImageContent, TextContent, ToolResult
from toolcell.tools.tool import Borrowed, Tool

OUTPUT: Final[Mapping[str, Any]] = closed(
    {"from": STRING, "mimeType": STRING, "width": INTEGER, "height": INTEGER, "size": INTEGER}
)
_ACCEPT: Final = "image/png,image/jpeg,image/gif,image/webp"
_NO_ADDRESS: Final = (
    "image may not load addresses in this run: its tool policy does not allow web_fetch. Give the"
    " path of a file in the workspace instead, or ask the operator to allow web_fetch (group:web)."
)


class ImageArguments(Arguments):
    """Arguments of `image` without the web."""

    path: Annotated[
        Text, Field(min_length=1, description="PNG, JPEG, GIF or WebP, relative to the workspace.")
    ]


class WebImageArguments(Arguments):
    """Arguments of `image` where it may load addresses."""

    path: Annotated[
        Text | Absent,
        Field(min_length=1, description="PNG, JPEG, GIF or WebP, relative to the workspace."),
    ] = None
    url: Annotated[
        str | Absent, Field(min_length=1, description="Or its http or https address.")
    ] = None


class RefusedImageArguments(WebImageArguments):
    """Arguments of `image` in a run whose policy keeps it from addresses."""

    url: Annotated[
        str | Absent, Field(min_length=1, description="Not in this run: it may not load addresses.")
    ] = None


def image_tool(workspace: WorkspaceRoots, http: Http | None = None, seconds: float = 20.0) -> Tool:
    """Return the `image` tool.

    Args:
        workspace: The directories it may read.
        http: How it loads addresses; None when it may not.
        seconds: How long one address may take, redirects included.
    """

    async def from_file(arguments: ImageArguments) -> ToolResult:
        return await in_thread(lambda stop: _file(workspace, arguments.path, stop))

    if http is None:
        return _made(ImageArguments, from_file, replay_safe=True)

    async def from_address(url: str) -> ToolResult:
        return await _address(http, url, seconds)

    async def no_address(_url: str) -> ToolResult:
        raise CallError(_NO_ADDRESS, code="blocked", effect="none")

    async def from_either(
        arguments: WebImageArguments, load: Callable[[str], Awaitable[ToolResult]]
    ) -> ToolResult:
        path, url = arguments.path, arguments.url
        if (path is None) == (url is None):
            raise refused("image takes either path or url.")
        if path is not None:
            return await in_thread(lambda stop: _file(workspace, path, stop))
        return await load(url or "")

    files_only = _made(
        RefusedImageArguments, lambda given: from_either(given, no_address), replay_safe=True
    )
    # What an address gives may have changed, and asking it again is an effect.
    whole = _made(
        WebImageArguments, lambda given: from_either(given, from_address), replay_safe=False
    )
    lent = Borrowed(tool="web_fetch", used=_has_address, without=files_only)
    return replace(whole, borrows=lent)


def _has_address(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("url") is not None


def _made(
    parameters: type[Arguments],
    execute: Callable[[Any], Awaitable[ToolResult]],
    *,
    replay_safe: bool,
) -> Tool:
    made = build_tool(
        name="image",
        label="Look at image",
        description="Look at an image: it is shown to you with the result.",
        parameters=parameters,
        output_schema=OUTPUT,
        execute=execute,
        catalog_mode="direct-only",
        replay_safe=replay_safe,
    )
    return replace(made, needs_vision=True)


def _file(workspace: WorkspaceRoots, path: str, stop: Stop) -> ToolResult:
    with workspace.file(path) as found:
        size = found.info.st_size
        data = _bytes(found.fd, stop)
        return _result(data, max(size, len(data)), found.shown, untrusted=False)


def _bytes(fd: int, stop: Stop) -> bytes:
    """Return a file, or one byte more than may be sent."""
    parts: list[bytes] = []
    left = MAX_IMAGE_BYTES + 1
    while left and (part := os.read(fd, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
        stop.check()
    return b"".join(parts)


async def _address(http: Http, url: str, seconds: float) -> ToolResult:
    request = HttpRequest(
        url=url, headers={"Accept": _ACCEPT}, max_bytes=MAX_IMAGE_BYTES, seconds=seconds
    )
    reply = await http.get(request)
    if not 200 <= reply.status < 300:
        message = f"{url[:200]!r} answered {reply.status}, not with an image."
        raise failed(message)
    size = len(reply.body)
    if reply.truncated:
        message = f"{url[:200]!r} has more than {size} bytes, the most that can be sent."
        raise failed(message)
    return await in_thread(lambda _stop: _result(reply.body, size, reply.url, untrusted=True))


def _result(data: bytes, size: int, shown: str, *, untrusted: bool) -> ToolResult:
    picture = picture_for_model(data, size)
    if isinstance(picture, str):
        message = f"{shown[:200]!r} cannot be shown: {picture}."
        raise failed(message)
    details = {
        "from": shown,
        "mimeType": picture.mime_type,
        "width": picture.width,
        "height": picture.height,
        "size": size,
    }
    told = TextContent(f"{shown} [{picture.shown}, {size} bytes]")
    image = ImageContent(base64_text(data), picture.mime_type)
    return ToolResult(content=(told, image), details=details, untrusted=untrusted)
