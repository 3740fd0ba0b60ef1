"""Owns the one task group of a runtime: the named file that may start a root task.

Cells, in-flight calls, the reaper and MCP connections are its children. Entering and leaving a
runtime only signal it: a task group entered in one task and left in another raises, and a failing
child must never cancel the user's own code.

Above: `app.runtime`. Below: `base.spawner`, `protocol`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolcell.base.clock import Clock
from toolcell.base.raised import text_of_error
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.sink import Sink


class Supervisor:
    """Implements `Spawner`. `start` it once, `aclose` it once."""

    def __init__(self, *, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self._group: TaskGroup | None = None
        self._root: asyncio.Task[None] | None = None
        self._stop = anyio.Event()
        self._live = 0

    @property
    def live(self) -> int:
        """How many children are running."""
        return self._live

    async def start(self) -> None:
        """Start the root task; returns when children may be started."""
        ready = anyio.Event()
        self._root = asyncio.get_running_loop().create_task(
            self._supervise(ready), name="toolcell-supervisor"
        )
        await ready.wait()

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], *args: Any, name: str = ""
    ) -> None:
        """Start `function(*args)` as a child; its errors become diagnostics.

        Raises:
            RuntimeError: the supervisor is not running.
        """
        if self._group is None:
            msg = "the toolcell runtime is not running; use it inside `async with`"
            raise RuntimeError(msg)
        self._live += 1
        self._group.start_soon(self._child, function, args, name, name=name or None)

    async def aclose(self) -> None:
        """Cancel every child and wait for all of them to end. Safe to call again."""
        self._stop.set()
        root, self._root = self._root, None
        if root is None:
            return
        with anyio.CancelScope(shield=True):
            await asyncio.wait([root])

    async def _supervise(self, ready: anyio.Event) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            ready.set()
            await self._stop.wait()
            self._group = None
            group.cancel_scope.cancel()

    async def _child(
        self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], name: str
    ) -> None:
        try:
            await function(*args)
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the border of the task group: told
            self._sink.emit(
                Diagnostic(
                    at=self._clock.wall(),
                    level="error",
                    subject=name or "background task",
                    message=text_of_error(error),
                )
            )
        finally:
            self._live -= 1
