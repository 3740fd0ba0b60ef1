"""Owns `API.list` and `API.read`: virtual declaration files, answered inside the guest (rule 5.2).

Rendering every declaration costs more than running a cell, so only an image made for programs that
mention `API` carries the files. Another program that reaches `API` all the same is answered by the
host, from the same table.

Above: the sets of guest APIs. Below: `declarations`. No bridge or tool call is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

    def data_with(
        self, view: GuestView, declared: tuple[Callable[[GuestView], Mapping[str, str]], ...]
    ) -> Json:
        """Return the image data with the files that other extensions declare."""
        more = [ApiFile(path, path, text) for d in declared for path, text in d(view).items()]
        files = (*self.files(view), *more)
        return [{**file.listed(), "content": file.content} for file in files]

    def _keep(self, view: GuestView, files: tuple[ApiFile, ...]) -> tuple[ApiFile, ...]:
        self._kept[view] = files
        if len(self._kept) > MAX_TABLES:
            self._kept.popitem(last=False)
        return files


@dataclass(frozen=True, slots=True)
class _Table:
    """Makes the image data of a program that mentions `API`; equal ones make equal images."""

    shelf: DeclarationShelf
    declared: tuple[Callable[[GuestView], Mapping[str, str]], ...]

    def __call__(self, view: GuestView) -> Json:
        return self.shelf.data_with(view, self.declared)


def _no_files(_view: GuestView) -> Json:
    return None


def api_extension(
    shelf: DeclarationShelf, others: tuple[GuestExtension, ...] = (), *, with_files: bool
) -> GuestExtension:
    """Return the extension, for programs that mention `API` or for all others.

    Args:
        shelf: Where the files of the views are kept.
        others: Further extensions, whose declarations are files too.
        with_files: Whether the image carries them.
    """
    table = _Table(shelf, tuple(each.declarations for each in others if each.declarations))

    def answer(_arguments: list[Any], cell: CellContext) -> Json:
        cell.untrusted = cell.untrusted or bool(cell.view.servers)
        return table(cell.view)

    return GuestExtension(
        name="api",
        script=prelude("api"),
        data=table if with_files else _no_files,
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
