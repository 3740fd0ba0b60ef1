"""Owns what a session's record says about tools: what was shown, looked up and called (rule 10.7).

It answers, for each run and from the record alone: how many schemas did the model see up front, how
often did it search and describe, which tools were called in the end, and whose are they.

Above: `toolcell sessions show --tools`, scenarios. Below: `listing`, `projections`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolcell.base.jsontext import utf8_length
from toolcell.sessions.listing import Trace
from toolcell.sessions.projections import CallNode, call_tree
from toolcell.sessions.records import Record

_CONTROLS: Final = frozenset(
    {
        *("openclaw:code-mode:exec", "openclaw:code-mode:wait"),
        *("openclaw:tool-search:tool_search_code", "openclaw:tool-search:tool_search"),
        *("openclaw:tool-search:tool_describe", "openclaw:tool-search:tool_call"),
    }
)
"""What the record calls the controls: never by the id of a tool of the same name."""


def tool_use(trace: Trace) -> dict[str, Any]:
    """Return plain JSON data: `{sessionId, runs: [...]}`, the runs in order.

    Each run has `mode` (`code`, `tools`, `directory`, or None without Tool Search), `toolsUpFront`
    and `toolNames`, `modelCalls`, `requestBytes` of its first model call, `toolBytes` and
    `promptBytes` as they were sent, `catalogSize` and `sources`, `searches`, `describes`, and
    `calls`: `{tool, source, status, through?}` for each tool that was called in the end, nested or
    not; `through` is the control it was called from.
    """
    roots = call_tree(trace.records)
    runs = list(dict.fromkeys(r.run_id for r in trace.records if r.type == "model_called"))
    runs += [root.run_id for root in roots if root.run_id not in runs]
    return {
        "sessionId": trace.info.session_id,
        "runs": [_run(run, trace, roots) for run in dict.fromkeys(runs)],
    }


def _run(run: str | None, trace: Trace, roots: Sequence[CallNode]) -> dict[str, Any]:
    records = [record for record in trace.records if record.run_id == run]
    models = [record.data() for record in records if record.type == "model_called"]
    # A summary shows no tools, and none of its bytes are the run's.
    models = [data for data in models if data.get("purpose") != "summary"]
    used = _last(records, "catalog_used")
    first = models[0] if models else {}
    names = first.get("tool_names", used.get("visible_tools", []))
    return {
        "runId": run,
        "mode": used.get("mode"),
        "toolsUpFront": len(names),
        "toolNames": list(names),
        "modelCalls": len(models),
        "requestBytes": first.get("request_bytes"),
        "toolBytes": _content_bytes(records, trace, "tools"),
        "promptBytes": _content_bytes(records, trace, "system"),
        "catalogSize": used.get("catalog_size"),
        "sources": used.get("sources"),
        "searches": used.get("searches", 0),
        "describes": used.get("describes", 0),
        "calls": list(_calls((root for root in roots if root.run_id == run), None)),
    }


def _calls(nodes: Iterable[CallNode], through: str | None) -> Iterator[dict[str, Any]]:
    for node in nodes:
        if node.tool_id in _CONTROLS:
            yield from _calls(node.children, node.tool_name)
            continue
        call = {"tool": node.tool_id, "source": node.source, "status": node.status}
        yield call if through is None else {**call, "through": through}
        yield from _calls(node.children, through)


def _last(records: Sequence[Record], kind: str) -> dict[str, Any]:
    return next((record.data() for record in reversed(records) if record.type == kind), {})


def _content_bytes(records: Sequence[Record], trace: Trace, kind: str) -> int | None:
    """Return the size of the first content of a kind that the run names."""
    for record in records:
        if record.type == "content_kept" and record.data().get("kind") == kind:
            text = trace.contents.get(str(record.data().get("key")))
            return None if text is None else utf8_length(text)
    return None
