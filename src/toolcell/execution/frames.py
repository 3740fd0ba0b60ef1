"""Owns what a guest hands over in one step: reads frames into requests, output, value or error.

Above: the engines, which carry frames in their own way. Below: the execution contract.
Refuses to know: how a frame travelled, what a request means. Every text in it is hostile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from toolcell.execution.contract import GuestError, OutputFrame, Request


class FrameKind(IntEnum):
    """The kinds of `codemode/prelude/README.md`."""

    REQUEST = 1
    TEXT = 2
    JSON = 3
    DONE = 4
    FAIL = 5
    WITHDRAW = 6


class FrameError(Exception):
    """A frame that no controller of ours sends: the engine cannot be trusted any more."""


@dataclass(slots=True)
class Handed:
    """All that one step handed over, in order.

    Attributes:
        value: JSON text when the program returned.
        error: The error when it failed.
        syntax: The error says that the source does not parse.
        over_budget: The error is the controller's own: one step handed over too much.
    """

    requests: list[Request] = field(default_factory=list)
    withdrawn: list[int] = field(default_factory=list)
    output: list[OutputFrame] = field(default_factory=list)
    value: str | None = None
    error: GuestError | None = None
    syntax: bool = False
    over_budget: bool = False


def read_frames(frames: Iterable[tuple[int, str]], filename: str) -> Handed:
    """Read the frames of one step; `filename` is the name of the user's source.

    Raises:
        FrameError: a frame is not of the protocol.
    """
    handed = Handed()
    opened: dict[int, Request] = {}
    for kind, text in frames:
        match kind:
            case FrameKind.REQUEST:
                request = _request(text)
                opened[request.id] = request
            case FrameKind.TEXT:
                handed.output.append(OutputFrame("text", text))
            case FrameKind.JSON:
                handed.output.append(OutputFrame("json", text))
            case FrameKind.DONE:
                handed.value = text
            case FrameKind.FAIL:
                report = _report(text)
                handed.error = _guest_error(report, filename)
                handed.syntax = report.get("syntax") is True
                handed.over_budget = report.get("frames") is True
            case FrameKind.WITHDRAW:
                number = _identifier(text)
                # One the host knows already is reported; one of this very step never leaves.
                if opened.pop(number, None) is None:
                    handed.withdrawn.append(number)
            case _:
                msg = f"unknown frame kind {kind!r}"
                raise FrameError(msg)
    handed.requests.extend(opened.values())
    return handed


def start_message(source: str, filename: str, start: str) -> str:
    """Return the message of operation 1; `start` is JSON object text and goes in as it is."""
    return f'{{"source":{json.dumps(source)},"filename":{json.dumps(filename)},"start":{start}}}'


def _identifier(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        msg = f"not a request id: {text[:32]!r}"
        raise FrameError(msg)
    return int(text)


def _request(text: str) -> Request:
    parts = text.split(" ", 2)
    if len(parts) != 3:
        msg = "a request frame without three parts"
        raise FrameError(msg)
    return Request(_identifier(parts[0]), parts[1], parts[2])


def _report(text: str) -> dict[str, Any]:
    try:
        report = json.loads(text)
    except ValueError as error:
        msg = f"a fail frame that is not JSON: {error}"
        raise FrameError(msg) from error
    if not isinstance(report, dict):
        msg = "a fail frame that is not an object"
        raise FrameError(msg)
    return report


def _guest_error(report: dict[str, Any], filename: str) -> GuestError:
    stack = "\n".join(
        line for line in str(report.get("stack", "")).splitlines() if filename in line
    )
    place = re.search(re.escape(filename) + r":(\d{1,9}):(\d{1,9})", stack)
    request_id = report.get("request_id")
    return GuestError(
        name=str(report.get("name", "")),
        message=str(report.get("message", "")),
        stack=stack,
        request_id=request_id if isinstance(request_id, int) else None,
        line=int(place[1]) if place else None,
        column=int(place[2]) if place else None,
    )
