"""Owns what one answer of the supervisor means for a program: the step, or why it is over.

Above: `executor`. Below: the execution contract, frames. Refuses to know: processes, time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from toolcell.execution.contract import (
    Faulted,
    FaultKind,
    Finished,
    GuestError,
    GuestImage,
    GuestScript,
    Limits,
    OutputFrame,
    Settled,
    settled_text,
)
from toolcell.execution.frames import FrameError, Handed, read_frames

_OVER_BUDGET = "than the host takes"
_OUT_OF_MEMORY = "out of memory"
_FOLDER = re.compile(r"(?:file://)?(?<![\w.])/(?:[^\s/:()]+/)+")
"""Where a file lies on the host, which is none of a program's business."""


def judge(told: dict[str, Any], filename: str, limits: Limits) -> Handed | Finished | Faulted:
    """Return how the program stands after a step; `Handed` while it waits."""
    kind = told.get("kind")
    try:
        handed = read_frames(_frames(told), filename)
    except FrameError as error:
        return fault("crash", str(error))
    output = tuple(handed.output)
    if kind != "step":
        return _ended(kind, str(told.get("cause", "")), limits, output)
    if handed.error is not None:
        found = _fault_kind(told, handed.error, syntax=handed.syntax)
        found = "frames" if handed.over_budget else found
        return Faulted(kind=found, error=handed.error, output=output)
    if handed.value is not None:
        return Finished(value=handed.value, output=output)
    return handed


def _frames(told: dict[str, Any]) -> list[tuple[int, str]]:
    frames = told.get("frames")
    if not isinstance(frames, list):
        raise FrameError("the supervisor sent no frames")
    for frame in frames:
        if not (isinstance(frame, list) and list(map(type, frame)) == [int, str]):
            raise FrameError("the supervisor sent a frame of another form")
    return [(kind, text) for kind, text in frames]


def _fault_kind(told: dict[str, Any], error: GuestError, *, syntax: bool) -> FaultKind:
    if syntax:
        return "syntax"
    if error.name == "RangeError":
        if told.get("refusedMemory") is True and error.message.startswith(_OUT_OF_MEMORY):
            return "memory"
        if told.get("refusedFrames") is True and _OVER_BUDGET in error.message:
            return "frames"
    return "error"


def _ended(kind: Any, cause: str, limits: Limits, output: tuple[OutputFrame, ...] = ()) -> Faulted:
    """A program whose worker is gone."""
    make = partial(fault, output=output)
    if kind == "timeout":
        return make("timeout", "the program ran longer than it may")
    if kind == "memory":
        limit = limits.memory_bytes
        return make("memory", f"{_OUT_OF_MEMORY}: the program needed more than its {limit} bytes")
    return make("crash", f"the worker of the program ended: {cause or 'it gave no reason'}")


def supervisor_died(words: str, limits: Limits, *, alone: bool) -> Faulted:
    """Judge a program whose process ended; `alone`: no other program was on it.

    One large allocation past the engine's own limits ends the whole process.
    """
    if alone and ("out of memory" in words or "invalid size" in words):
        return _ended("memory", words, limits)
    told = _FOLDER.sub("…/", words)
    return fault("crash", f"the Node supervisor ended: {told or 'it was killed'}")


def fault(kind: FaultKind, message: str, output: tuple[OutputFrame, ...] = ()) -> Faulted:
    """Return a fault that is not the guest's own error."""
    return Faulted(kind=kind, error=GuestError(name="", message=message), output=output)


def image_text(image: GuestImage) -> str:
    """Return the JSON text by which the supervisor learns an image."""

    def script(one: GuestScript) -> dict[str, str]:
        return {"name": one.name, "source": one.source}

    return json.dumps(
        {
            "controller": script(image.controller),
            "extensions": [script(one) for one in image.extensions],
            "data": image.data,
        }
    )


def settle_message(settled: Sequence[Settled]) -> str:
    """Return the message of operation 2; values and errors are JSON text and go in as they are."""
    return "[" + ",".join(map(settled_text, settled)) + "]"
