"""Owns how a Python function runs as a tool's body: on the loop or in a thread, cleanly ended.

Above: `tools.decorator`, the plugin door. Below: `tools.threads`. Refuses to know: schemas.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from toolcell.errors import CallError
from toolcell.tools.threads import run_sync


def is_async(function: Any) -> bool:
    """Whether calling `function` gives a coroutine: also for partials and callable objects."""
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    return inspect.iscoroutinefunction(target)


async def run_function(
    name: str, function: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """Call `function` for the tool `name` and return what it gives; what it raises is passed on.

    Raises:
        CallError: it tried to end the process, or was cancelled by something it awaited itself: a
            cancellation nobody asked for would leave the caller waiting.
    """
    try:
        if is_async(function):
            return await function(*positional, **named)
        value = await run_sync(lambda: function(*positional, **named))
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:
        message = f"Tool {name!r} tried to end the process (exit code {error.code!r})."
        raise CallError(message) from error
    except anyio.get_cancelled_exc_class() as error:
        await checkpoint_if_cancelled()
        if _cancelled_from_outside():
            raise
        message = f"Tool {name!r} was cancelled by something it awaited."
        raise CallError(message) from error


def _cancelled_from_outside() -> bool:
    """Whether someone asked this task to stop."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is None or task.cancelling() > 0
