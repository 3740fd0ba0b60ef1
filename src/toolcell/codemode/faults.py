"""Owns what a fault of the engine is to the model: code, phase and text (rule 3.9, areas G, I, K).

Above: cells. Below: `screen.diagnosis`, `execution.contract`. Refuses to know: budgets, telemetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolcell.codemode.bridge import Refused
from toolcell.codemode.results import Phase
from toolcell.codemode.screen.diagnosis import syntax_error
from toolcell.errors import CellErrorCode
from toolcell.execution.contract import Faulted, FaultKind, GuestError, Program

TIMEOUT: Final = (
    "code mode timeout exceeded ({timeout} ms): the program ran too long without waiting for "
    "a tool. Do less in one cell; tool calls that were made keep their effects."
)
MEMORY: Final = (
    "code mode memory limit exceeded ({memory} bytes): {detail}. Work on less data at once."
)
FRAMES: Final = (
    "code mode output limit exceeded: one step handed over more than the host takes. Return, print "
    "or request less at once."
)
SNAPSHOT: Final = (
    "code mode snapshot limit exceeded ({snapshot} bytes): {detail}. Keep less data alive across "
    "waits, or return it first."
)
RESTORE: Final = "code mode run cannot be resumed: {detail}. Run the cell again."
CRASH: Final = "the code mode engine stopped: {detail}"
ABORTED: Final = "code mode execution aborted"

_OF_KIND: Final[Mapping[FaultKind, tuple[str, CellErrorCode, Phase]]] = {
    "timeout": (TIMEOUT, "timeout", "guest"),
    "memory": (MEMORY, "internal_error", "guest"),
    "frames": (FRAMES, "output_limit_exceeded", "guest"),
    "snapshot_limit": (SNAPSHOT, "snapshot_limit_exceeded", "host"),
    "restore": (RESTORE, "internal_error", "host"),
    "crash": (CRASH, "runtime_unavailable", "host"),
}
# QuickJS does not say which call it was, and its column may be that of an argument; so the line is
# shown, because models repair what they see.
_UNNAMED: Final = "not a function"
TOO_SHORT: Final = "the program ends too early: a bracket, a brace or a quote is not closed"
_AROUND_CHARS: Final = 60
# What a nested call's own code says about its arguments makes the cell's failure one of input.
_INPUT_CODES: Final = frozenset({"input_contract", "invalid_input"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a cell failed.

    Attributes:
        untrusted: The text may come from the network; None when that depends on the whole cell.
        hint: What the host says to do about it, ready to stand after `error`.
    """

    error: str
    code: CellErrorCode
    phase: Phase
    untrusted: bool | None = False
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits that messages name."""

    timeout_ms: int
    memory_bytes: int
    snapshot_bytes: int
    takes_typescript: bool = False


def verdict(
    fault: Faulted, *, program: Program, bounds: Bounds, refusals: Mapping[int, Refused]
) -> Verdict:
    """Return the verdict on a fault."""
    if fault.kind == "error":
        return _uncaught(fault.error, program, refusals)
    if fault.kind == "syntax":
        return Verdict(
            error=_syntax(fault.error, program, bounds), code="invalid_input", phase="input"
        )
    template, code, phase = _OF_KIND[fault.kind]
    text = template.format(
        timeout=bounds.timeout_ms,
        memory=bounds.memory_bytes,
        snapshot=bounds.snapshot_bytes,
        detail=fault.error.message or fault.error.name or "no detail",
    )
    return Verdict(error=text, code=code, phase=phase)


def _uncaught(error: GuestError, program: Program, refusals: Mapping[int, Refused]) -> Verdict:
    text = _text(error, program)
    refused = refusals.get(error.request_id) if error.request_id is not None else None
    if refused is None:
        return Verdict(error=text, code="internal_error", phase="guest", untrusted=None)
    if refused.code == "aborted":
        return Verdict(error=text, code="aborted", phase="bridge")
    code: CellErrorCode = "invalid_input" if refused.code in _INPUT_CODES else "internal_error"
    return Verdict(error=text, code=code, phase="bridge", untrusted=refused.untrusted)


def _text(error: GuestError, program: Program) -> str:
    """`TypeError: …` with the frames of the user's own lines (REPORTS EX-03)."""
    head = f"{error.name}: {error.message}" if error.name else error.message
    if error.message == _UNNAMED and error.name == "TypeError":
        head += _near(error, program.source)
    stack = error.stack.rstrip()
    return f"{head}\n{stack}" if stack else head


def _syntax(error: GuestError, program: Program, bounds: Bounds) -> str:
    lines = program.source.split("\n")
    line, column, message = error.line, error.column or 1, error.message
    if line is None:
        line = 1
    elif line > len(lines):
        # What was met is our own text behind the program, which nobody else has seen.
        line, column, message = len(lines), len(lines[-1]) + 1, TOO_SHORT
    return syntax_error(
        program.source,
        message,
        place=f"{program.filename}:{line}:{column}",
        takes_typescript=bounds.takes_typescript,
    )


def _near(error: GuestError, source: str) -> str:
    """Show the source around the place where an error says it arose."""
    lines = source.split("\n")
    if error.line is None or error.column is None or not 0 < error.line <= len(lines):
        return ""
    line = lines[error.line - 1]
    start = max(0, error.column - 1 - _AROUND_CHARS)
    end = error.column - 1 + _AROUND_CHARS
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f", near: {before}{line[start:end].strip()}{after}"
