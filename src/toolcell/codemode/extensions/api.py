"""Owns `API.list` and `API.read`: virtual declaration files, answered inside the guest (rule 5.2).

Rendering every declaration costs more than running a cell, so only an image made for programs that
mention `API` carries the files. Another program that reaches `API` all the same is answered by the
host, from the same table.

Above: the sets of guest APIs. Below: `declarations`. No bridge or tool call is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import anyio.to_thread

from toolcell.base.jsontext import Json
from toolcell.codemode.declarations.files import ApiFile, api_files
from toolcell.codemode.extensions.contract import (
    Answering,
    CellContext,
    GuestExtension,
    prelude,
)
from toolcell.codemode.view import GuestView

MENTION: Final = "API"
MAX_TABLES: Final = 8


class DeclarationShelf:
    """The files of the views in use, made once each; shared by all runs of a host."""

    def __init__(self) -> None:
        self._kept: OrderedDict[GuestView, tuple[ApiFile, ...]] = OrderedDict()

    async def ready(self, view: GuestView) -> None:
        """Make the files of `view`, off the event loop, unless they are there."""
        if view not in self._kept:
            self._keep(view, await anyio.to_thread.run_sync(api_files, view))

    def files(self, view: GuestView) -> tuple[ApiFile, ...]:
        """Return the files of `view`."""
        found = self._kept.get(view)
        return self._keep(view, api_files(view)) if found is None else found

    def data(self, view: GuestView) -> Json:
        """Return the image data of a program that mentions `API`."""
        return [{**file.listed(), "content": file.content} for file in self.files(view)]

    def _keep(self, view: GuestView, files: tuple[ApiFile, ...]) -> tuple[ApiFile, ...]:
        self._kept[view] = files
        if len(self._kept) > MAX_TABLES:
            self._kept.popitem(last=False)
        return files


def _no_files(_view: GuestView) -> Json:
    return None


def api_extension(shelf: DeclarationShelf, *, with_files: bool) -> GuestExtension:
    """Return the extension, for programs that mention `API` or for all others."""

    def answer(_arguments: list[Any], cell: CellContext) -> Json:
        cell.untrusted = cell.untrusted or bool(cell.view.servers)
        return shelf.data(cell.view)

    return GuestExtension(
        name="api",
        script=prelude("api"),
        data=shelf.data if with_files else _no_files,
        handlers={"api.files": Answering(answer)},
        prompt=_prompt,
    )


def _prompt(view: GuestView) -> str | None:
    if not view.servers:
        return None
    return (
        'API.list("mcp") names declaration files and API.read("mcp/<server>.d.ts") gives the '
        "TypeScript of a server's functions."
    )
