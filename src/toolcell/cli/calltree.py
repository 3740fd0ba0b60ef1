"""Owns how a tree of calls is shown: nested calls under their parent, with times.

Above: `agent`, `sessions`, `demo`. Below: `cli.console`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolcell.base.jsontext import dumps
from toolcell.cli.console import printable

MAX_ARGUMENTS = 60


def tree_lines(calls: Sequence[Mapping[str, Any]], *, most: int = 12) -> Iterator[str]:
    """Yield a line for each call; of many siblings the first `most` are shown.

    Args:
        calls: Nodes as `CallNode.to_dict` gives them.
        most: How many siblings are shown before the rest is counted.
    """
    yield from _lines(calls, "", most)


def tool_use_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield what one run did with tools, as `sessions.tool_use` tells it."""
    yield f"run {run['runId']}"
    size = run["requestBytes"]
    sent = "" if size is None else f", {size} bytes in the first request"
    yield f"  schemas up front: {run['toolsUpFront']}{sent}"
    if run["catalogSize"] is not None:
        sources = ", ".join(f"{count} {name}" for name, count in run["sources"].items() if count)
        yield f"  hidden ({run['mode']}): {run['catalogSize']} tools: {sources or 'none'}"
        yield f"  searches: {run['searches']}, describes: {run['describes']}"
    for call in run["calls"]:
        through = f" through {call['through']}" if "through" in call else ""
        status = "" if call["status"] == "completed" else f"  {call['status']}"
        yield f"  called {call['tool']} (source {call['source']}){through}{status}"


def compaction_line(entry: Mapping[str, Any]) -> str:
    """Return what a compaction did, as an entry of the transcript tells it."""
    before, after = entry["tokensBefore"], entry["tokensAfter"]
    return f"{entry['messages']} messages summarised: about {before} tokens became {after}"


def _lines(calls: Sequence[Mapping[str, Any]], indent: str, most: int) -> Iterator[str]:
    for number, call in enumerate(calls[:most]):
        last = number == len(calls) - 1
        yield f"{indent}{'└─' if last else '├─'} {_line(call)}"
        yield from _lines(call.get("children", ()), indent + ("   " if last else "│  "), most)
    if len(calls) > most:
        yield f"{indent}└─ … and {len(calls) - most} more"


def _line(call: Mapping[str, Any]) -> str:
    arguments = printable(dumps(call.get("arguments")))
    if len(arguments) > MAX_ARGUMENTS:
        arguments = arguments[: MAX_ARGUMENTS - 1] + "…"
    took = call.get("durationMs")
    shown = f"{took:.1f} ms" if isinstance(took, int | float) else "running"
    status = call.get("status")
    name = printable(str(call.get("toolName")))
    return f"{name} {arguments}  {shown}" + ("" if status == "completed" else f"  {status}")
