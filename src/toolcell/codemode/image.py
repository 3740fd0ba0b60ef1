"""Owns the guest image of a catalog: made once per set of visible tools and kept for a while.

Above: the runtime. Below: extensions, `execution.contract`. Refuses to know: engines, cells.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from typing import Final

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.contract import GuestExtension, prelude
from toolcell.codemode.extensions.view import GuestView
from toolcell.execution.contract import GuestImage, GuestScript

MAX_IMAGES: Final = 8


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """An image and what it shows."""

    image: GuestImage
    view: GuestView


@cache
def _controller() -> GuestScript:
    return prelude("controller")


def build_image(view: GuestView, extensions: tuple[GuestExtension, ...]) -> GuestImage:
    """Return the image of `view` with these extensions; equal inputs give equal keys."""
    data = {extension.name: extension.data(view) for extension in extensions}
    return GuestImage(
        controller=_controller(),
        extensions=tuple(extension.script for extension in extensions),
        data=dumps(data),
    )


class ImageShelf:
    """The images of one run's catalog, by what is visible; the least recently used goes first.

    Entries are compared by identity: a snapshot never changes, so the same entries show the same.
    """

    __slots__ = ("_extensions", "_operations", "_plans")

    def __init__(
        self, extensions: tuple[GuestExtension, ...], operations: tuple[Entry, ...]
    ) -> None:
        self._extensions = extensions
        self._operations = operations
        self._plans: OrderedDict[tuple[Entry, ...], ImagePlan] = OrderedDict()

    def plan(self, entries: tuple[Entry, ...]) -> ImagePlan:
        """Return the image that shows exactly `entries`."""
        newest = next(reversed(self._plans), None)
        if newest is not None and (newest is entries or newest == entries):
            return self._plans[newest]
        found = self._plans.pop(entries, None)
        if found is None:
            view = GuestView(entries=entries, operations=self._operations)
            found = ImagePlan(build_image(view, self._extensions), view)
            if len(self._plans) >= MAX_IMAGES:
                self._plans.popitem(last=False)
        self._plans[entries] = found
        return found
