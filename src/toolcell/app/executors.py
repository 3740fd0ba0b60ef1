"""Owns the executors of a process: made once each, when a cell first needs one.

Above: `app.runtime`. Below: `execution`. An executor that cannot be had is an error that says so,
never another executor (rule 1.6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from toolcell.config.code_mode import ExecutorName
from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import Executor

if TYPE_CHECKING:  # an engine is imported by programs that use it
    from toolcell.execution.node.executor import NodeExecutor
    from toolcell.execution.node.typescript import TransformOutcome

QUICKJS_PLUGIN = "code-mode-quickjs"
"""The bundled plugin that stands for the QuickJS executor in `plugins.deny` (rule 9.3)."""

Say = Callable[[str], None]


def _quiet(_: str) -> None:
    """Show nothing."""


class Executors:
    """Hands out executors by name and closes them all."""

    def __init__(
        self,
        *,
        denied: Collection[str] = (),
        node: Path | None = None,
        on_progress: Say = _quiet,
    ) -> None:
        self._node_path = node
        self._denied = frozenset(denied)
        self._on_progress = on_progress
        self._made: dict[str, Executor] = {}
        self._node_made: NodeExecutor | None = None
        self._closed = False

    async def ready(self, name: ExecutorName) -> Executor:
        """Return the executor called `name`; what it needs is imported in a thread, the first time.

        The import takes 60 to 90 ms, which would be the event loop's.

        Raises:
            RuntimeUnavailableError: as `get`; also when all were closed meanwhile.
        """
        if name not in self._made and not self._blocked(name):
            module = f"toolcell.execution.{name}.executor"
            await anyio.to_thread.run_sync(import_module, module)
            if self._closed:
                msg = f"executor {name!r} is closed: its runtime has ended"
                raise RuntimeUnavailableError(msg)
        return self.get(name)

    def get(self, name: ExecutorName) -> Executor:
        """Return the executor called `name`.

        Raises:
            RuntimeUnavailableError: it is blocked, or this version does not have it.
        """
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name)
        return made

    async def transform(self, source: str, filename: str) -> TransformOutcome:
        """Turn TypeScript into JavaScript, on Node for both executors (rule 9.5).

        Raises:
            RuntimeUnavailableError: Node cannot be started, or its transformer does not work.
        """
        return await self._node().strip_types(source, filename)

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counts of each executor in use."""
        return {name: executor.statistics() for name, executor in self._made.items()}

    async def aclose(self) -> None:
        """Close every executor that was made."""
        self._closed = True
        while self._made:
            _, executor = self._made.popitem()
            await executor.aclose()
        self._node_made = None

    def _blocked(self, name: ExecutorName) -> bool:
        return name == "quickjs" and QUICKJS_PLUGIN in self._denied

    def _make(self, name: ExecutorName) -> Executor:
        if name == "node":
            return self._node()
        if self._blocked(name):
            msg = f"executor 'quickjs' is blocked: {QUICKJS_PLUGIN!r} is in plugins.deny"
            raise RuntimeUnavailableError(msg)
        from toolcell.execution.quickjs.executor import (  # noqa: PLC0415 - wasmtime, when needed
            QuickJSExecutor,
        )

        return QuickJSExecutor(on_progress=self._on_progress)

    def _node(self) -> NodeExecutor:
        if self._node_made is None:
            from toolcell.execution.node.executor import (  # noqa: PLC0415 - Node, when needed
                NodeExecutor,
                NodeOptions,
            )

            self._node_made = NodeExecutor(
                NodeOptions(binary=self._node_path), on_progress=self._on_progress
            )
            self._made["node"] = self._node_made
        return self._node_made
