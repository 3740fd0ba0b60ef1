"""Owns the trivial executor: programs are Python generators that ask and are answered.

It proves that the contract has no engine in it, and lets tests of the rooms above run without one.

Above: tests and code mode. Below: the execution contract. Refuses to know: JavaScript.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcell.execution.contract import (
    Answer,
    Faulted,
    Finished,
    GuestError,
    GuestImage,
    Limits,
    OutputFrame,
    Program,
    Request,
    Settled,
    Step,
    Suspended,
)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a script yields to make a request; the answer comes back as plain data."""

    method: str
    args: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Say:
    """What a script yields to put out text."""

    text: str


class ScriptError(Exception):
    """A refused request, raised inside the script; `request_id` says which."""

    def __init__(self, message: str, request_id: int | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


Script = Callable[[], Generator["Ask | Say", Any, Any]]


class ScriptedExecutor:
    """Runs the scripts it was given; a program's source is the name of one."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._scripts = dict(scripts)
        self._started = 0
        self._live = 0

    @property
    def name(self) -> str:
        """`scripted`."""
        return "scripted"

    async def identify(self) -> str:
        """Return what it is."""
        return "scripts of the test"

    async def prepare(self, image: GuestImage) -> None:
        """Do nothing: a script has no image."""

    async def start(self, program: Program, limits: Limits, seconds: float) -> Step:  # noqa: ARG002 - the contract's shape
        """Run the script named by the source; an unknown name is a syntax fault."""
        self._started += 1
        script = self._scripts.get(program.source)
        if script is None:
            message = f"no script is called {program.source!r}"
            return Faulted(kind="syntax", error=GuestError(name="SyntaxError", message=message))
        self._live += 1
        return await _Script(self, script()).resume((), 0.0)

    async def aclose(self) -> None:
        """Do nothing: scripts hold nothing."""

    def statistics(self) -> Mapping[str, int]:
        """Return counts of started and live programs."""
        return {"programs_started": self._started, "live": self._live, "parked": 0}

    def ended(self) -> None:
        """Count one live program less."""
        self._live -= 1


class _Script:
    def __init__(self, executor: ScriptedExecutor, steps: Generator[Ask | Say, Any, Any]) -> None:
        self._executor = executor
        self._steps = steps
        self._asked = 0
        self._over = False

    async def resume(self, settled: Sequence[Settled], seconds: float) -> Step:  # noqa: ARG002 - the contract's shape
        output: list[OutputFrame] = []
        try:
            told = self._answer(settled)
            while isinstance(told, Say):
                output.append(OutputFrame("text", told.text))
                told = next(self._steps)
        except StopIteration as end:
            self._end()
            return Finished(value=json.dumps(end.value), output=tuple(output))
        except ScriptError as error:
            self._end()
            report = GuestError(name="Error", message=str(error), request_id=error.request_id)
            return Faulted(kind="error", error=report, output=tuple(output))
        self._asked += 1
        request = Request(self._asked, told.method, json.dumps(list(told.args)))
        return Suspended(requests=(request,), continuation=self, output=tuple(output))

    async def park(self) -> int | Faulted:
        return 0

    async def dispose(self) -> None:
        if not self._over:
            self._steps.close()
            self._end()

    def _answer(self, settled: Sequence[Settled]) -> Ask | Say:
        if not settled:
            return next(self._steps)
        one = settled[0]
        if isinstance(one, Answer):
            return self._steps.send(json.loads(one.value))
        message = str(json.loads(one.error).get("message", ""))
        return self._steps.throw(ScriptError(message, one.id))

    def _end(self) -> None:
        self._over = True
        self._executor.ended()
