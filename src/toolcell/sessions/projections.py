"""Owns what records come to: the whole history, the tree of calls, the transcript for people.

Nested calls are activity of their `exec` call: shown under it, never sent to a model (rule 8.3;
BEHAVIOURS 356-359).

Above: the stores. Below: `records`. Refuses to know: where records are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolcell.protocol.messages import Message
from toolcell.sessions.compactions import compaction
from toolcell.sessions.records import Record, to_message

CallStatus = Literal["running", "completed", "failed", "blocked", "aborted", "interrupted"]
"""`running`: no end yet. `interrupted`: its run is over and its end was never recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """One tool call with the calls its cell made, in dispatch order.

    Attributes:
        started: Its number in dispatch order within the run.
        duration_ms: None until it ended.
        error: The text of its failure.
        code: The failure's code.
    """

    call_id: str
    parent_id: str | None
    run_id: str
    tool_id: str
    tool_name: str
    source: str
    arguments: Any
    at: float
    started: int
    status: CallStatus
    duration_ms: float | None = None
    result: Any = None
    error: str | None = None
    code: str | None = None
    children: tuple[CallNode, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, the children inside."""
        out: dict[str, Any] = {
            "callId": self.call_id,
            "parentToolCallId": self.parent_id,
            "runId": self.run_id,
            "toolId": self.tool_id,
            "toolName": self.tool_name,
            "source": self.source,
            "arguments": self.arguments,
            "at": self.at,
            "started": self.started,
            "status": self.status,
            "isError": self.status not in {"running", "completed"},
        }
        optional = {
            "durationMs": self.duration_ms,
            "result": self.result,
            "error": self.error,
            "code": self.code,
        }
        out |= {key: value for key, value in optional.items() if value is not None}
        if self.children:
            out["children"] = [child.to_dict() for child in self.children]
        return out


def history(records: Iterable[Record]) -> tuple[Message, ...]:
    """Return the whole conversation, whether or not a summary stands for a part of it.

    Runs that overlapped in time are told one after the other, so that the answers of tools stand
    directly behind the calls they answer.
    """
    runs: dict[str | None, list[Message]] = {}
    for record in records:
        if record.type == "message":
            runs.setdefault(record.run_id, []).append(to_message(record))
    return tuple(message for messages in runs.values() for message in messages)


def call_tree(records: Iterable[Record]) -> tuple[CallNode, ...]:
    """Return the calls that no cell made, each with those its cell made."""
    nodes: dict[tuple[str | None, str | None], CallNode] = {}
    ended_runs: set[str | None] = set()
    for record in records:
        key = (record.run_id, record.call_id)
        match record.type:
            case "call_started" if key not in nodes:
                nodes[key] = _started(record)
            case "call_ended" if key in nodes and nodes[key].status == "running":
                nodes[key] = _ended(nodes[key], record)
            case "run_ended":
                ended_runs.add(record.run_id)
    return _nest([_settled(node, ended_runs) for node in nodes.values()])


def transcript(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return messages and nested calls in the order they happened, as plain JSON data.

    A nested call is an entry of type `activity` that names its parent; messages are entries of
    type `message`. Compactions, diagnostics and ends of runs that failed are entries too.
    """
    activities = {
        (node.run_id, node.call_id): node for root in call_tree(records) for node in _under(root)
    }
    entries: list[dict[str, Any]] = []
    for record in records:
        match record.type:
            case "message":
                entries.append({"type": "message", **_place(record), **_said(record)})
            case "call_started":
                node = activities.get((record.run_id or "", record.call_id or ""))
                if node is not None and node.parent_id is not None:
                    entries.append({"type": "activity", **replace(node, children=()).to_dict()})
            case "compacted":
                entries.append({"type": "compacted", **_place(record), **compaction(record)})
            case "run_ended" if record.data().get("status") != "completed":
                entries.append({"type": "run_ended", **_place(record), **record.data()})
            case "diagnostic":
                entries.append({"type": "diagnostic", **_place(record), **record.data()})
    return entries


@dataclass(slots=True)
class _Branch:
    node: CallNode
    children: list[_Branch] = field(default_factory=list)

    def built(self) -> CallNode:
        self.children.sort(key=lambda branch: branch.node.started)
        return replace(self.node, children=tuple(child.built() for child in self.children))


def _nest(nodes: Sequence[CallNode]) -> tuple[CallNode, ...]:
    branches = {(node.run_id, node.call_id): _Branch(node) for node in nodes}
    roots = []
    for node in nodes:
        branch = branches[node.run_id, node.call_id]
        parent = branches.get((node.run_id, node.parent_id)) if node.parent_id else None
        # A record that names itself, or a later call, as its parent must not make a loop.
        if parent is None or parent.node.started >= node.started:
            roots.append(branch)
        else:
            parent.children.append(branch)
    return tuple(branch.built() for branch in roots)


def _under(node: CallNode) -> Iterable[CallNode]:
    yield node
    for child in node.children:
        yield from _under(child)


def _started(record: Record) -> CallNode:
    data = record.data()
    return CallNode(
        call_id=record.call_id or "",
        parent_id=record.parent_id,
        run_id=record.run_id or "",
        tool_id=data.get("tool_id", ""),
        tool_name=data.get("tool_name", ""),
        source=data.get("source", ""),
        arguments=data.get("arguments"),
        at=record.at,
        started=data.get("started", 0),
        status="running",
    )


def _ended(node: CallNode, record: Record) -> CallNode:
    data = record.data()
    return replace(
        node,
        status=data.get("status", "failed"),
        duration_ms=data.get("duration_ms"),
        result=data.get("result"),
        error=data.get("error"),
        code=data.get("code"),
    )


def _settled(node: CallNode, ended_runs: set[str | None]) -> CallNode:
    if node.status == "running" and node.run_id in ended_runs:
        return replace(node, status="interrupted")
    return node


def _said(record: Record) -> dict[str, Any]:
    data = record.data()
    message: dict[str, Any] = data.get("message", data)
    return message


def _place(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "at": record.at, "runId": record.run_id}
