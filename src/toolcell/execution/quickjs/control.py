"""Owns the layout of the guest's control block: `struct control` of `native/glue.c`.

Above: cells and images. Below: `engine`. Refuses to know: what the host does about a flag.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from toolcell.base.jsontext import from_utf8
from toolcell.execution.quickjs.engine import GuestAddressError, Instance

_LAYOUT = struct.Struct("<iIqqIIIIIII")
_HEADER = struct.Struct("<II")
# A fail frame may pass the budget by this much (OOM_RESERVE in glue.c), header and all.
_LAST_FRAME = (128 << 10) + 8


class Flag(IntEnum):
    """Why the guest must stop."""

    RUN = 0
    CANCELLED = 1
    DEADLINE = 2
    MEMORY = 3


@dataclass(frozen=True, slots=True)
class Control:
    """The block as it was at one moment. Hostile: the guest can hardly write it, but it might."""

    flag: int
    refused_allocations: int
    frames_at: int
    frames_length: int
    refused_frames: int


def read_control(instance: Instance, at: int) -> Control:
    """Read the control block.

    Raises:
        GuestAddressError: `at` is outside the memory.
    """
    flag, oom, _deadline, _base, out, length, _cap, _max, _used, _limit, refused = _LAYOUT.unpack(
        instance.read(at, _LAYOUT.size)
    )
    return Control(flag, oom, out, length, refused)


def read_frames(
    instance: Instance, control: Control, frame_bytes: int
) -> Iterator[tuple[int, str]]:
    """Copy the frames of the step out and take them apart.

    Raises:
        GuestAddressError: they do not lie in the guest's memory, or are more than allowed.
    """
    if control.frames_length > frame_bytes + _LAST_FRAME:
        msg = "more frames than the step's budget"
        raise GuestAddressError(msg)
    if not control.frames_length:
        return
    data = instance.read(control.frames_at, control.frames_length)
    at = 0
    while at < len(data):
        if at + _HEADER.size > len(data):
            msg = "a frame header is cut off"
            raise GuestAddressError(msg)
        kind, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if at + length > len(data):
            msg = "a frame is cut off"
            raise GuestAddressError(msg)
        yield kind, from_utf8(data[at : at + length])
        at += length
