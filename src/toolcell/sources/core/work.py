"""Owns blocking work of core tools: off the loop, with a time limit, told to stop when cancelled.

Above: the file tools. Below: `tools.threads`. Refuses to know: files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias, TypeVar

import anyio
from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.errors import CallError
from toolcell.tools.threads import run_sync

T = TypeVar("T")

SECONDS: Final = 20.0
"""How long one call may search; what was found until then is returned, marked as truncated."""


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004 - pydantic turns ValueError into its own
    return value


Text: TypeAlias = Annotated[str, PlainValidator(_as_text, json_schema_input_type=str)]
"""A string as it is. Pydantic's own `str` refuses lone surrogates, which names of files may hold
(bytes that are no UTF-8) and strings of JavaScript as well."""


Absent: TypeAlias = SkipJsonSchema[None]
"""For an argument that may be left out: None inside, and no `null` in the schema."""


Positive: TypeAlias = Annotated[int, Field(ge=1)]
Natural: TypeAlias = Annotated[int, Field(ge=0)]


class Arguments(BaseModel):
    """Base of the arguments of a core tool: camelCase outside, closed."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class StoppedError(Exception):
    """Nobody waits for the work any more."""


class Stop:
    """Says to a thread when to end: `check` in every loop of unknown length."""

    __slots__ = ("_cancelled", "_clock", "_ends_at")

    def __init__(self, seconds: float = SECONDS, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds
        self._cancelled = False

    def cancel(self) -> None:
        """Have the next `check` raise."""
        self._cancelled = True

    def check(self) -> bool:
        """Return whether time is up; raises `StoppedError` when the call was cancelled."""
        if self._cancelled:
            raise StoppedError
        return self._clock.monotonic() >= self._ends_at


async def in_thread(work: Callable[[Stop], T], stop: Stop | None = None) -> T:
    """Run `work(stop)` in a thread; a cancelled call also ends the work."""
    stop = stop or Stop()
    try:
        return await run_sync(lambda: work(stop))
    except anyio.get_cancelled_exc_class():
        stop.cancel()
        raise


def refused(message: str) -> CallError:
    """Return the error for arguments a tool cannot act on; nothing has happened."""
    return CallError(message, code="invalid_input", effect="none")


def failed(message: str) -> CallError:
    """Return the error for work that could not be done; nothing was changed."""
    return CallError(message, code="tool_error", effect="none")
