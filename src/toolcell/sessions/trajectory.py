"""Owns the trajectory bundle: all of a session in a few bounded files, secrets masked.

| file | holds |
| --- | --- |
| `manifest.json` | format, session, each file with its size and SHA-256, what was left out |
| `events.jsonl` | the events in order |
| `transcript.jsonl` | messages and nested calls, as people read them |
| `calls.jsonl` | the tool calls, nested ones under their parent (rule 8.3) |
| `prompts.jsonl` | what each run began with: model, system prompt, tools, the user's words |
| `cells.jsonl` | each code cell with its program and steps, for replay |
| `tools/*.json` | the tools models were shown |
| `artifacts/*` | large results, and what cells begin with |

Above: the CLI. Below: `cells`, `projections`, `records`, `base.masking`. Refuses to know: where it
is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcell.base.identifiers import digest
from toolcell.base.jsontext import dumps, loads
from toolcell.base.masking import Masker
from toolcell.base.version import VERSION
from toolcell.sessions.cells import cell_documents
from toolcell.sessions.listing import Trace
from toolcell.sessions.projections import call_tree, transcript
from toolcell.sessions.records import Record

FORMAT: Final = "toolcell-trajectory"
FORMAT_VERSION: Final = 1
MAX_FILE_BYTES: Final = 64 << 20
"""Of each list; entries beyond are left out and counted."""
MAX_INLINE_BYTES: Final = 32 << 10
"""A larger result is an artifact of its own, kept once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The files of a trajectory by name.

    Attributes:
        omitted: How many entries of a file did not fit, by name.
    """

    files: Mapping[str, bytes]
    omitted: Mapping[str, int] = field(default_factory=dict)


def trajectory(
    trace: Trace, masker: Masker, *, at: float, max_file_bytes: int = MAX_FILE_BYTES
) -> Bundle:
    """Return the bundle of a session.

    Args:
        trace: Everything that is kept of it.
        masker: Knows the secrets; it learns those that stand under a secret's name in the record.
        at: Unix seconds, for the manifest.
        max_file_bytes: The bound of each list.
    """
    for record in trace.records:
        masker.learn(record.data())
    made = _Files(masker, max_file_bytes)
    made.contents(trace.contents)
    steps = {"cell_stepped"}
    made.lines("events.jsonl", (_event(r) for r in trace.records if r.type not in steps))
    made.lines("transcript.jsonl", transcript(trace.records))
    made.lines("calls.jsonl", (node.to_dict() for node in call_tree(trace.records)))
    made.lines("prompts.jsonl", _prompts(trace))
    made.lines("cells.jsonl", cell_documents(trace.records), whole=True)
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "toolcell": VERSION,
        "exportedAt": at,
        "session": masker.value(trace.info.to_dict()),
        "omitted": made.omitted,
        "files": [
            {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(made.files.items())
        ],
    }
    files = {"manifest.json": encoded(manifest), **made.files}
    return Bundle(files=files, omitted=made.omitted)


def encoded(value: Any) -> bytes:
    """Return JSON as UTF-8; lone surrogates, which that cannot hold, are escaped."""
    text = dumps(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class _Files:
    """Masks, bounds and collects."""

    def __init__(self, masker: Masker, limit: int) -> None:
        self._masker = masker
        self._limit = limit
        self.files: dict[str, bytes] = {}
        self.omitted: dict[str, int] = {}

    def lines(self, name: str, entries: Iterable[Any], *, whole: bool = False) -> None:
        """Put a list into a file, one entry a line; large results become artifacts."""
        lines: list[bytes] = []
        size = omitted = 0
        for entry in entries:
            masked = self._masker.value(entry)
            line = encoded(masked if whole else self._slim(masked))
            if size + len(line) > self._limit:
                omitted += 1
                continue
            size += len(line) + 1
            lines.append(line + b"\n")
        self.files[name] = b"".join(lines)
        if omitted:
            self.omitted[name] = omitted

    def contents(self, contents: Mapping[str, str]) -> None:
        """Put what runs share into files of its own, named by its key."""
        for key, text in contents.items():
            name = content_name(key, text)
            self.files[name] = self._content(name, text)

    def _content(self, name: str, text: str) -> bytes:
        head, line, body = text.partition("\n") if name.endswith(".image") else ("", "", text)
        try:
            masked = dumps(self._masker.value(loads(body)))
        except (ValueError, RecursionError):
            masked = self._masker.text(body)
        return f"{head}{line}{masked}".encode("utf-8", "backslashreplace")

    def _slim(self, entry: Any) -> Any:
        """Replace large results in an entry, and in the calls below it."""
        if not isinstance(entry, dict):
            return entry
        out = dict(entry)
        if "result" in out:
            out["result"] = self._artifact(out["result"])
        if isinstance(out.get("children"), list):
            out["children"] = [self._slim(child) for child in out["children"]]
        return out

    def _artifact(self, value: Any) -> Any:
        data = encoded(value)
        if len(data) <= MAX_INLINE_BYTES:
            return value
        name = f"artifacts/{hashlib.sha256(data).hexdigest()[:24]}.json"
        self.files[name] = data
        return {"artifact": name, "bytes": len(data)}


def content_name(key: str, text: str) -> str:
    """Return the file of a content; keys come from a database and are not trusted as names."""
    safe = digest(key)
    if text.startswith("controller"):
        return f"artifacts/{safe}.image"
    return f"tools/{safe}.json" if text.startswith(("[", "{")) else f"artifacts/{safe}.txt"


def _event(record: Record) -> dict[str, Any]:
    place = {
        "seq": record.seq,
        "type": record.type,
        "at": record.at,
        "runId": record.run_id,
        "callId": record.call_id,
        "parentToolCallId": record.parent_id,
    }
    return {**{key: value for key, value in place.items() if value is not None}, **record.data()}


def _prompts(trace: Trace) -> Iterable[dict[str, Any]]:
    """Return what each run began with; a content may have been told in an earlier run only."""
    runs: dict[str | None, dict[str, Any]] = {}
    for record in trace.records:
        data = record.data()
        run = runs.setdefault(record.run_id, {"runId": record.run_id})
        match record.type:
            case "run_started":
                run |= {"agentId": trace.info.agent_id, "model": data.get("model")}
            case "content_kept" if data.get("kind") == "system":
                run["system"] = trace.contents.get(str(data.get("key")))
            case "content_kept" if data.get("kind") == "tools":
                key = str(data.get("key"))
                run.setdefault("tools", []).append(content_name(key, trace.contents.get(key, "")))
            case "message" if "prompt" not in run:
                run["prompt"] = data.get("message")
    return [run for run in runs.values() if len(run) > 1]
