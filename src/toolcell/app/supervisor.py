"""Owns the background tasks of a runtime: the named file that may start root tasks.

Cells, in-flight calls, the reaper and MCP connections are its children. Each has a cancel scope of
its own, so entering and leaving a runtime in different tasks is allowed, and a failing child never
cancels its siblings or the user's own code.

Above: `app.runtime`. Below: `base.spawner`, `protocol`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from toolcell.base.clock import Clock
from toolcell.base.raised import text_of_error
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.sink import Sink


class Supervisor:
    """Implements `Spawner`. `start` it once, `aclose` it once.

    Not a task group: starting a task in one costs several times as much as here, and every call of
    a guest program is a task (docs/decisions).
    """

    def __init__(self, *, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._children: dict[anyio.CancelScope, asyncio.Task[None]] = {}

    @property
    def live(self) -> int:
        """How many children are running."""
        return len(self._children)

    def start(self) -> None:
        """Allow children, on the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], *args: Any, name: str = ""
    ) -> None:
        """Start `function(*args)` as a child; its errors become diagnostics.

        Raises:
            RuntimeError: the supervisor is not running.
        """
        if self._loop is None:
            msg = "the toolcell runtime is not running; use it inside `async with`"
            raise RuntimeError(msg)
        scope = anyio.CancelScope()
        self._children[scope] = self._loop.create_task(
            self._child(scope, function, args, name), name=name or None
        )

    async def aclose(self) -> None:
        """Cancel every child and wait for all of them to end. Safe to call again.

        A child that calls it does not wait for itself.
        """
        self._loop = None
        caller = asyncio.current_task()
        for scope in tuple(self._children):
            scope.cancel()
        with anyio.CancelScope(shield=True):
            while left := [
                task for task in self._children.values() if not task.done() and task is not caller
            ]:
                await asyncio.wait(left)
        self._children.clear()

    async def _child(
        self,
        scope: anyio.CancelScope,
        function: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        name: str,
    ) -> None:
        try:
            with scope:
                await function(*args)
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the border of the task: told
            self._sink.emit(
                Diagnostic(
                    at=self._clock.wall(),
                    level="error",
                    subject=name or "background task",
                    message=text_of_error(error),
                )
            )
        finally:
            self._children.pop(scope, None)
