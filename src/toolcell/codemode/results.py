"""Owns the result union of `exec` and `wait` in the contract's JSON (rules 3.3, 8.4, 3.9).

Above: the runtime, the library face. Below: `base`. Refuses to know: how a result came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolcell.base.jsontext import Json, dumps
from toolcell.base.untrusted import wrapped
from toolcell.errors import CellErrorCode

Phase = Literal["input", "guest", "host", "bridge"]
Reason = Literal["pending_tools", "yield"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The program returned `value`.

    Attributes:
        value: Plain JSON; a marker `{truncated, omittedBytes, guidance, prefix}` over the cap.
        output: New entries of `text` and `json`, in call order (all of them with the tools API).
        telemetry: Catalog size, sources, counters, visible tools.
        omitted_bytes: What the output cap left out, value included; 0 for nothing.
        replay_safe: Whether the cell was restart-safe (rule 3.13).
        untrusted: Whether anything from the network reached the cell (rule 4.9).
        terminate: Whether a tool that the program called said that the turn is over; no part of
            the JSON.
    """

    value: Json
    output: tuple[Mapping[str, Any], ...] = ()
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    omitted_bytes: int = 0
    replay_safe: bool = False
    untrusted: bool = False
    terminate: bool = False
    status: Literal["completed"] = field(default="completed", init=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's JSON."""
        return _document(self, {"value": self.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The program was parked; `wait` with `cell_id` as its `runId` goes on.

    Attributes:
        cell_id: `cm_<uuid>`; `runId` in JSON.
        reason: `yield` when nothing but a yield is outstanding, else `pending_tools`.
        pending: Unsettled requests, `{id, method}` each.
        replay_id: For a restart-safe cell, equal for the same call of the same turn.
    """

    cell_id: str
    reason: Reason
    pending: tuple[Mapping[str, str], ...] = ()
    output: tuple[Mapping[str, Any], ...] = ()
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    omitted_bytes: int = 0
    replay_safe: bool = False
    replay_id: str | None = None
    untrusted: bool = False
    status: Literal["waiting"] = field(default="waiting", init=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's JSON."""
        own: dict[str, Any] = {
            "runId": self.cell_id,
            "reason": self.reason,
            "pendingToolCalls": [dict(item) for item in self.pending],
        }
        if self.replay_id is not None:
            own["replayId"] = self.replay_id
        return _document(self, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The program did not return.

    Attributes:
        error: Why, and what to do; ends with ` [error truncated]` when it was cut.
        code: A code of rule 3.9; None for an abort with the tools API.
        phase: In whose hands it failed (BEHAVIOURS 139 to 144).
        dispatched: Whether any request had been handed to the host.
    """

    error: str
    code: CellErrorCode | None
    phase: Phase
    dispatched: bool = False
    output: tuple[Mapping[str, Any], ...] = ()
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    omitted_bytes: int = 0
    replay_safe: bool = False
    untrusted: bool = False
    status: Literal["failed"] = field(default="failed", init=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's JSON."""
        own: dict[str, Any] = {"error": self.error}
        if self.code is not None:
            own["code"] = self.code
        own["failurePhase"] = self.phase
        own["bridgeDispatchStarted"] = self.dispatched
        return _document(self, own)


Outcome: TypeAlias = Completed | Waiting | Failed


def _document(outcome: Outcome, own: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"status": outcome.status, **own}
    if outcome.output:
        out["output"] = [dict(entry) for entry in outcome.output]
    if outcome.omitted_bytes:
        out["truncated"] = True
        out["omittedBytes"] = outcome.omitted_bytes
    if outcome.replay_safe:
        out["replaySafe"] = True
    out["telemetry"] = dict(outcome.telemetry)
    return out


def model_text(outcome: Outcome) -> str:
    """Return what a model reads: compact JSON (REPORTS LM-04).

    What came from the network is wrapped once: `value` and `output` move into one wrapped block
    after the envelope; `error` is wrapped where it stands, by whoever made the outcome.
    """
    document = outcome.to_dict()
    if not outcome.untrusted:
        return _well_formed(dumps(document))
    outside = {key: document.pop(key) for key in ("value", "output") if key in document}
    envelope = dumps(document)
    return _well_formed(f"{envelope}\n{wrapped(dumps(outside))}" if outside else envelope)


def _well_formed(text: str) -> str:
    """Replace lone surrogates, which no wire can carry."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
