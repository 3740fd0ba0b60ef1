"""Owns the cells of a session as one value each: program, steps, end. What a replay runs on.

Above: trajectories. Below: `records`. Refuses to know: executors, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcell.base.jsontext import loads
from toolcell.sessions.records import Record

_TEXTS = ("value", "error", "args")
"""Members of a step that hold JSON text."""


def cell_documents(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the cells in the order they began, as plain JSON.

    Each is `{cellId, callId, runId, executor, code, image, start, steps, ended}`; JSON texts of the
    record are plain values here, but for output of type `text`.
    """
    cells: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.type not in {"cell_started", "cell_stepped", "cell_ended"}:
            continue
        data = record.data()
        cell = cells.setdefault(str(data.get("cell_id")), {"steps": [], "ended": None})
        match record.type:
            case "cell_started":
                cell |= {
                    "cellId": data.get("cell_id"),
                    "callId": record.call_id,
                    "runId": record.run_id,
                    "executor": data.get("executor"),
                    "code": data.get("code"),
                }
            case "cell_stepped":
                if "image" in data:
                    cell["image"] = data["image"]
                if "start" in data:
                    cell["start"] = _parsed(data["start"])
                cell["steps"].append(_step(data))
            case _:
                known = ("status", "code", "error")
                cell["ended"] = {key: data[key] for key in known if key in data}
    return [cell for cell in cells.values() if "cellId" in cell]


def _step(data: Mapping[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = {"number": data.get("number")}
    for name in ("answers", "requests", "output"):
        if data.get(name):
            step[name] = [_item(each) for each in data[name]]
    if data.get("withdrawn"):
        step["withdrawn"] = data["withdrawn"]
    if isinstance(data.get("end"), Mapping):
        step["end"] = _item(data["end"])
    return step


def _item(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    out = {key: _parsed(value) if key in _TEXTS else value for key, value in item.items()}
    if out.get("type") == "json":
        out["value"] = _parsed(out.pop("text", None))
    return out


def _parsed(text: Any) -> Any:
    """Return the value of JSON text; what was cut short is marked as such."""
    if not isinstance(text, str):
        return {"truncated": True}
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return {"truncated": True}
