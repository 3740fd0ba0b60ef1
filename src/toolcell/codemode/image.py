"""Owns the guest image of a catalog: made once per set of visible tools and kept for a while.

Above: the runtime. Below: extensions, `execution.contract`. Refuses to know: engines, cells.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.contract import GuestExtension, prelude
from toolcell.codemode.view import GuestView
from toolcell.config.code_mode import GuestApi
from toolcell.execution.contract import GuestImage, GuestScript

MAX_IMAGES: Final = 16


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


_Key: TypeAlias = tuple[
    tuple[Entry, ...], tuple[Entry, ...], GuestApi, tuple[tuple[GuestScript, object], ...]
]


class ImageShelf:
    """The images of a host, shared by its runs; the least recently used goes first.

    Entries are compared by identity: a snapshot never changes, so the same entries show the same.
    What a run may see is decided before, by its own catalog.
    """

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: OrderedDict[_Key, ImagePlan] = OrderedDict()

    def plan(self, view: GuestView, extensions: tuple[GuestExtension, ...]) -> ImagePlan:
        """Return the image that shows exactly `view` with these extensions."""
        parts = tuple((extension.script, extension.data) for extension in extensions)
        key = (view.entries, view.operations, view.guest_api, parts)
        found = self._plans.pop(key, None)
        if found is None:
            found = ImagePlan(build_image(view, extensions), view)
            if len(self._plans) >= MAX_IMAGES:
                self._plans.popitem(last=False)
        self._plans[key] = found
        return found
