"""Owns the port through which lower rooms start background work in the runtime's task group.

Above: the gate, cells, MCP connections. Below: nothing; `app` supplies the implementation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol


class Spawner(Protocol):
    """Starts a coroutine function as a child of the runtime's one task group."""

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], *args: Any, name: str = ""
    ) -> None:
        """Start `function(*args)`; an error it raises is contained and reported, never lost."""
        ...
