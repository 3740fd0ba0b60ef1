"""What every conformance case is driven with: one image, one way to run a program to its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcell.execution.contract import (
    Answer,
    Executor,
    Faulted,
    Finished,
    GuestImage,
    GuestScript,
    Limits,
    OutputFrame,
    Program,
    Refusal,
    Request,
    Settled,
    Step,
    Suspended,
)

PRELUDE = Path(__file__).parents[3] / "src" / "toolcell" / "codemode" / "prelude"
FILENAME = "openclaw-code-mode:user.js"

EXTENSION = """(function probe(kit, data) {
  "use strict";
  kit.define("call", (method, ...args) => kit.request(method, args));
  kit.define("text", (value) => kit.text(kit.print(value)));
  kit.define("json", (value) => kit.json(value));
  kit.define("later", (ms) => kit.open("sleep", [ms]));
  kit.define("withdraw", (id) => kit.withdraw(id));
  kit.define("fromData", data);
  const handle = (...args) => kit.request("handle", args);
  kit.serialise(handle, { callableName: "handle" });
  kit.define("handle", handle);
  kit.onStart((values) => kit.define("fromStart", values));
})"""

IMAGE = GuestImage(
    controller=GuestScript("controller.mjs", (PRELUDE / "controller.mjs").read_text("utf-8")),
    extensions=(GuestScript("probe", EXTENSION),),
    data='{"probe":{"greeting":"hello"}}',
)

Host = Callable[[str, list[Any]], Any]


@dataclass
class Ran:
    """A program's whole life."""

    end: Finished | Faulted
    output: list[OutputFrame] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    withdrawn: list[int] = field(default_factory=list)
    steps: int = 0

    @property
    def value(self) -> Any:
        assert isinstance(self.end, Finished), self.end
        return json.loads(self.end.value)

    @property
    def fault(self) -> Faulted:
        assert isinstance(self.end, Faulted), self.end
        return self.end

    @property
    def texts(self) -> list[str]:
        return [frame.text for frame in self.output]


def program(source: str, *, start: str = '{"probe":{"run":1}}') -> Program:
    return Program(image=IMAGE, source=source, start=start)


def echo(method: str, args: list[Any]) -> Any:
    if method == "boom":
        raise ValueError(args[0] if args else "boom")
    return args[0] if args else None


def settle(request: Request, host: Host) -> Settled:
    try:
        value = host(request.method, json.loads(request.args))
    except ValueError as error:
        return Refusal(request.id, json.dumps({"message": str(error), "code": "tool_error"}))
    return Answer(request.id, json.dumps(value))


async def first(
    executor: Executor, source: str, *, limits: Limits | None = None, seconds: float = 10.0
) -> Step:
    return await executor.start(program(source), limits or Limits(), seconds)


async def suspend(executor: Executor, source: str, *, limits: Limits | None = None) -> Suspended:
    step = await first(executor, source, limits=limits)
    assert isinstance(step, Suspended), step
    return step


async def run(
    executor: Executor,
    source: str,
    *,
    host: Host = echo,
    limits: Limits | None = None,
    seconds: float = 10.0,
    park: bool = False,
) -> Ran:
    """Run a program to its end, answering all open requests of each step in order."""
    step = await first(executor, source, limits=limits, seconds=seconds)
    ran = Ran(end=Faulted(kind="crash", error=None))  # type: ignore[arg-type]
    waiting: dict[int, Request] = {}
    while True:
        ran.steps += 1
        ran.output.extend(step.output)
        if not isinstance(step, Suspended):
            ran.end = step
            return ran
        ran.requests.extend(step.requests)
        ran.withdrawn.extend(step.withdrawn)
        waiting |= {request.id: request for request in step.requests}
        for number in step.withdrawn:
            waiting.pop(number, None)
        settled = [settle(request, host) for request in waiting.values()]
        waiting.clear()
        if park:
            size = await step.continuation.park()
            assert isinstance(size, int), size
        step = await step.continuation.resume(settled, seconds)
