"""Owns replay: a recorded cell runs again against recorded answers, and is compared step by step.

No tool runs, no model is asked: whatever the program asks for, it gets what it got then, in the
same order. What a program takes from the clock or from chance is not recorded and may differ.

A bundle may come from a stranger: its programs run in the sandbox like any other.

Above: the CLI. Below: `execution`, the prelude of `codemode`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolcell.base.jsontext import clip_utf8, dumps, loads
from toolcell.codemode.extensions.contract import prelude
from toolcell.errors import SessionError
from toolcell.execution.contract import (
    Answer,
    Executor,
    Faulted,
    Finished,
    GuestImage,
    Limits,
    Program,
    Refusal,
    Settled,
    Step,
    Suspended,
)

DEFAULT_SECONDS: Final = 10.0
_SHOWN_BYTES: Final = 300
_BY_KIND_ONLY: Final = frozenset({"timeout", "memory", "crash", "snapshot_limit", "restore"})
"""Faults whose words are about machines, not about the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """What replaying one cell came to.

    Attributes:
        status: `skipped` when the record does not hold what it takes.
        steps: Steps that were compared and agreed.
        detail: Where and how it differs, or why it was skipped.
    """

    cell_id: str
    status: Literal["same", "differs", "skipped"]
    steps: int
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        out = {"cellId": self.cell_id, "status": self.status, "steps": self.steps}
        return out | {"detail": self.detail} if self.detail else out


class _NotOnRecordError(Exception):
    """The record does not hold what it takes."""


async def replay_cell(
    cell: Mapping[str, Any], image_text: str, executor: Executor, *, seconds: float
) -> CellReport:
    """Run a cell of `cells.jsonl` again.

    Args:
        cell: The cell.
        image_text: The content its `image` names.
        executor: Runs it.
        seconds: Wall clock for each step.

    Raises:
        RuntimeUnavailableError: the executor cannot be loaded.
    """
    cell_id = str(cell.get("cellId"))
    agreed = 0
    step: Step | None = None
    try:
        steps = _list(cell.get("steps"))
        program = _program(cell, image_text)
        for recorded in steps:
            if step is None:
                step = await executor.start(program, Limits(), seconds)
            elif isinstance(step, Suspended):
                step = await step.continuation.resume(_settled(recorded), seconds)
            else:
                return _report(cell_id, agreed, "the program is over, on record it goes on")
            found = _difference(step, recorded)
            if found:
                return _report(cell_id, agreed, found)
            agreed += 1
    except _NotOnRecordError as reason:
        return CellReport(cell_id=cell_id, status="skipped", steps=agreed, detail=str(reason))
    finally:
        if isinstance(step, Suspended):
            await step.continuation.dispose()
    if not agreed:
        return CellReport(
            cell_id=cell_id, status="skipped", steps=0, detail="no step of it is on record"
        )
    return CellReport(cell_id=cell_id, status="same", steps=agreed)


def _report(cell_id: str, agreed: int, found: str) -> CellReport:
    detail = f"step {agreed + 1}: {found}"
    return CellReport(cell_id=cell_id, status="differs", steps=agreed, detail=detail)


def _program(cell: Mapping[str, Any], image_text: str) -> Program:
    code, start = cell.get("code"), cell.get("start")
    if not isinstance(code, str):
        msg = "its program was cut when it was recorded"
        raise _NotOnRecordError(msg)
    if start is None:
        msg = "its beginning is not on record"
        raise _NotOnRecordError(msg)
    if not isinstance(start, Mapping) or _cut(start):
        msg = "what it began with was cut when it was recorded"
        raise _NotOnRecordError(msg)
    names, _, data = image_text.partition("\n")
    try:
        loads(data)
        controller, *extensions = (prelude(name) for name in _names(names))
    except (ValueError, OSError, RecursionError) as error:
        msg = f"what it began with cannot be made again: {error}"
        raise _NotOnRecordError(msg) from error
    image = GuestImage(controller=controller, extensions=tuple(extensions), data=data)
    return Program(image=image, source=code, start=dumps(start))


def _names(line: str) -> list[str]:
    """Names of prelude files, from a file that a stranger may have written."""
    names = line.split(" ")
    bad = [name for name in names if not name.replace("_", "").isalnum()]
    if bad:
        msg = f"{bad[0]!r} is no part of the prelude"
        raise ValueError(msg)
    return names


def _settled(recorded: Any) -> list[Settled]:
    out: list[Settled] = []
    for answer in _list(recorded.get("answers") if isinstance(recorded, Mapping) else None):
        if not isinstance(answer, Mapping) or not isinstance(answer.get("id"), int):
            msg = "an answer was cut when it was recorded"
            raise _NotOnRecordError(msg)
        if _cut(answer.get("value")) or _cut(answer.get("error")):
            msg = f"the answer to request {answer['id']} was cut when it was recorded"
            raise _NotOnRecordError(msg)
        if "error" in answer:
            out.append(Refusal(answer["id"], dumps(answer["error"])))
        else:
            out.append(Answer(answer["id"], dumps(answer.get("value"))))
    return out


def _difference(step: Step, recorded: Any) -> str:
    """Return how a step differs from the record; empty when it does not."""
    was = recorded if isinstance(recorded, Mapping) else {}
    for what, new, old in (
        ("output", _output(step), _list(was.get("output"))),
        ("asked", _requests(step), _list(was.get("requests"))),
        ("gave up", _withdrawn(step), _list(was.get("withdrawn"))),
    ):
        if any(_cut(each) for each in old):
            msg = f"what it {what} was cut when it was recorded"
            raise _NotOnRecordError(msg)
        for index in range(max(len(new), len(old))):
            now = new[index] if index < len(new) else None
            then = old[index] if index < len(old) else None
            if now != then:
                return f"{what} {_shown(now)}, on record {_shown(then)}"
    ended, end = _end(step), was.get("end")
    return "" if _same_end(ended, end) else f"ended {_shown(ended)}, on record {_shown(end)}"


def _same_end(now: Any, then: Any) -> bool:
    if isinstance(now, Mapping) and isinstance(then, Mapping) and "fault" in now:
        if now["fault"] in _BY_KIND_ONLY:
            return bool(now["fault"] == then.get("fault"))
        return all(now[key] == then.get(key) for key in ("fault", "name", "message"))
    return bool(now == then)


def _output(step: Step) -> list[Any]:
    return [
        {"type": "json", "value": loads(frame.text)}
        if frame.type == "json"
        else {"type": "text", "text": frame.text}
        for frame in step.output
    ]


def _requests(step: Step) -> list[Any]:
    requests = step.requests if isinstance(step, Suspended) else ()
    return [{"id": r.id, "method": r.method, "args": loads(r.args)} for r in requests]


def _withdrawn(step: Step) -> list[Any]:
    return list(step.withdrawn) if isinstance(step, Suspended) else []


def _end(step: Step) -> Any:
    match step:
        case Finished():
            return {"value": loads(step.value)}
        case Faulted():
            error = step.error
            return {"fault": step.kind, "name": error.name, "message": error.message}
        case _:
            return None


def _list(value: Any) -> Sequence[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        msg = "the bundle's cells.jsonl has a list that is none"
        raise SessionError(msg)
    return value


def _cut(value: Any) -> bool:
    """Whether the record has a stand-in here; results of tools may say `truncated` too."""
    if not isinstance(value, Mapping) or value.get("truncated") is not True:
        return False
    return value.keys() <= {"truncated", "prefix"}


def _shown(value: Any) -> str:
    return "nothing" if value is None else clip_utf8(dumps(value), _SHOWN_BYTES)
