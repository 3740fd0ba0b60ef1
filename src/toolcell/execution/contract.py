"""Owns the execution contract: evaluate, continue, dispose (rule 9.1).

The guest asks, the host answers: a step runs guest code until it finishes, fails or has nothing
more to do without an answer. An executor never calls a tool and never knows what a request means.

Above: code mode, which drives cells. Below: `base`, `errors`. Refuses to know: tools, policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class GuestScript:
    """One prelude file: `source` is a JavaScript expression that evaluates to a function."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestImage:
    """What every cell of one catalog starts with: the same for all of them, so it is made once.

    Attributes:
        controller: Evaluates to `(engine, extensions, data) => dispatch`; see
            `codemode/prelude/controller.mjs` for the protocol.
        extensions: Each evaluates to `(kit, data) => void`.
        data: One JSON object literal, a member per extension name.
        key: Content hash of all of it.
    """

    controller: GuestScript
    extensions: tuple[GuestScript, ...]
    data: str
    key: str = field(init=False)

    def __post_init__(self) -> None:
        """Hash the contents."""
        hashed = hashlib.sha256()
        for script in (self.controller, *self.extensions):
            for text in (script.name, script.source):
                encoded = text.encode("utf-8", "surrogatepass")
                hashed.update(len(encoded).to_bytes(8, "little") + encoded)
        hashed.update(self.data.encode("utf-8", "surrogatepass"))
        object.__setattr__(self, "key", hashed.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One cell.

    Attributes:
        image: What it starts with.
        source: The body of an async function: top-level `await` and `return` are legal.
        filename: The name in stack traces and syntax errors.
        start: JSON object text of values of this run, a member per extension name.
    """

    image: GuestImage
    source: str
    filename: str = "openclaw-code-mode:user.js"
    start: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one cell, in bytes.

    Attributes:
        memory_bytes: What the cell may add to its image.
        snapshot_bytes: The largest state that may be parked, before compression.
        frame_bytes: All that one step may hand to the host.
        stack_bytes: The JavaScript stack.
    """

    memory_bytes: int = 64 << 20
    snapshot_bytes: int = 10 << 20
    frame_bytes: int = 32 << 20
    stack_bytes: int = 512 << 10


@dataclass(frozen=True, slots=True)
class Request:
    """Something the guest asks for.

    Attributes:
        id: Counts from 1 within the cell.
        method: Names what is asked; the caller's business.
        args: JSON array text, exactly as the guest made it. Hostile.
    """

    id: int
    method: str
    args: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A request that succeeded; `value` is JSON text."""

    id: int
    value: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that failed; `error` is JSON object text with at least `message`.

    The guest gets it as a plain Error with those own fields (rule 3.10).
    """

    id: int
    error: str


Settled: TypeAlias = Answer | Refusal
"""An answer that does not fit in what is left of the program's memory reaches it as an error with
the code `invalid_input` and the text of `oversize`; the program goes on."""

LARGE_MESSAGE = 64 << 10
"""From this length the answers of a step are put into the guest one by one."""


def oversize(size: int, memory_bytes: int) -> str:
    """Return what a program is told in place of an answer of `size` bytes that does not fit."""
    return (
        f"the reply has {size} bytes and does not fit in what is left of the {memory_bytes} bytes "
        "of memory of this program. The call was made. Ask for less at once (a page, fewer "
        "fields), and let go of data you no longer need before the next call."
    )


def settled_text(one: Settled) -> str:
    """Return one member of the list that operation 2 takes; JSON text goes in as it is."""
    if isinstance(one, Answer):
        return f'{{"id":{one.id},"value":{one.value}}}'
    return f'{{"id":{one.id},"error":{one.error}}}'


@dataclass(frozen=True, slots=True)
class OutputFrame:
    """One piece of output in call order: `text` is the text itself, or JSON text for `json`."""

    type: Literal["text", "json"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestError:
    """An error as the guest left it; every field is hostile text.

    Attributes:
        name: Such as `TypeError`.
        message: Its message.
        stack: Frames with lines and columns of the user's own source, or empty.
        request_id: The request whose refusal this is, when it is one, unchanged and uncaught.
        line: 1-based line in the user's source where known; of a program that ends too early one
            behind its last.
        column: 1-based column where known.
    """

    name: str
    message: str
    stack: str = ""
    request_id: int | None = None
    line: int | None = None
    column: int | None = None


FaultKind = Literal[
    "syntax",
    "error",
    "timeout",
    "memory",
    "frames",
    "snapshot_limit",
    "restore",
    "crash",
]
"""`syntax`: the source does not parse. `error`: an uncaught exception or rejection. `frames`: the
guest handed over more than `frame_bytes`. `restore`: a parked state could not be brought back.
`crash`: the engine trapped or its worker died other than by a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The program returned; `value` is JSON text, `null` for undefined."""

    value: str
    output: tuple[OutputFrame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """The program waits for answers.

    Attributes:
        requests: Requests made in this step, in order.
        withdrawn: Ids of earlier requests it no longer wants (a cleared timer).
        continuation: How to go on. Exactly one of `resume` and `dispose` must follow.
    """

    requests: tuple[Request, ...]
    continuation: Continuation
    withdrawn: tuple[int, ...] = ()
    output: tuple[OutputFrame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulted:
    """The program is over and did not return. Output made before the fault is kept (rule 3.11)."""

    kind: FaultKind
    error: GuestError
    output: tuple[OutputFrame, ...] = ()


Step: TypeAlias = Finished | Suspended | Faulted


class Continuation(Protocol):
    """A program that waits. Used by one task at a time."""

    async def resume(self, settled: Sequence[Settled], seconds: float) -> Step:
        """Deliver answers in this order and run on for at most `seconds` of wall clock.

        Cancelling it interrupts the guest and disposes of it.
        """
        ...

    async def park(self) -> int | Faulted:
        """Make it cheap to keep: called once before a long wait; `resume` works as before.

        Returns:
            The bytes it takes at rest (0 where the executor keeps it alive as it is), or the fault
            when its state exceeds `snapshot_bytes`; it is disposed of then.
        """
        ...

    async def dispose(self) -> None:
        """Drop it. Safe to call again."""
        ...


class Executor(Protocol):
    """Runs programs. One per process and configuration; safe to use from many tasks."""

    @property
    def name(self) -> str:
        """`quickjs` or `node`."""
        ...

    async def identify(self) -> str:
        """Return for people what runs programs, in which version and where it came from.

        Raises:
            RuntimeUnavailableError: the engine cannot be found or started.
        """
        ...

    async def prepare(self, image: GuestImage) -> None:
        """Load the engine and make the image ready, so that the first cell need not.

        Raises:
            RuntimeUnavailableError: the engine cannot be loaded or started.
        """
        ...

    async def start(self, program: Program, limits: Limits, seconds: float) -> Step:
        """Run a new program for at most `seconds` of wall clock, counted from when it starts.

        Cancelling it interrupts the guest and disposes of it.

        Raises:
            RuntimeUnavailableError: the engine cannot be loaded or started, or its queue is full.
        """
        ...

    async def aclose(self) -> None:
        """Stop everything and free it. Live continuations are gone."""
        ...

    def statistics(self) -> Mapping[str, int]:
        """Return counts: modules compiled, programs started, live and parked continuations."""
        ...
