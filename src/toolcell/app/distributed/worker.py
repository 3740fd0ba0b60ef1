"""Owns a worker: the actor that builds a runtime of its own and runs children in it.

A child here is what it would be at home: it can ask nobody, it is known as a child, and children of
its own stand under it. Everything that happens is sent home and stored there.

Above: the engine makes an actor of it. Below: `cargo`, `outbox`, `app.runtime`.
Refuses to know: Ray.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import anyio

from toolcell.app.distributed.cargo import Cargo
from toolcell.app.distributed.messages import Packed, Piece, Report
from toolcell.app.distributed.outbox import Box, Outbox
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.raised import text_of_error
from toolcell.base.version import VERSION
from toolcell.config.parse import parse_config
from toolcell.errors import ToolcellError
from toolcell.protocol.sink import NullSink
from toolcell.sessions.store import SessionStore
from toolcell.swarm.ports import ChildOutcome, ChildTask

CLOSING_SECONDS: Final = 5.0
"""How long a cancelled child may take to end."""


class ChildWorker:
    """One per worker process. Call `start` first.

    Args:
        version: The version of toolcell that packed the cargo.
        cargo: What `cargo.packed` returned.
    """

    def __init__(self, version: str, cargo: bytes) -> None:
        self._version = version
        self._cargo = cargo
        self._outbox = Outbox(self._parent_of)
        self._stack = AsyncExitStack()
        self._runtime: Runtime | None = None

    async def start(self) -> Report:
        """Build and start the runtime."""
        host, pid = socket.gethostname(), os.getpid()
        if self._version != VERSION:
            problem = f"it has toolcell {VERSION}, and {self._version} is needed"
            return Report(host=host, pid=pid, problem=problem)
        try:
            runtime = await self._started()
        except ToolcellError as error:
            return Report(host=host, pid=pid, problem=error.message)
        except Exception as error:  # noqa: BLE001 - code of others is imported here
            return Report(host=host, pid=pid, problem=text_of_error(error))
        self._runtime = runtime
        tools = frozenset(tool.id for tool in runtime.tools())
        return Report(host=host, pid=pid, tools=tools)

    async def run(self, task: ChildTask, known: frozenset[str]) -> AsyncIterator[Piece]:
        """Run a child; yield what happens and what it came to, until its own children are over.

        Args:
            task: The child; its model is named.
            known: Keys of contents whose text need not be sent.
        """
        runtime = self._runtime
        if runtime is None:
            msg = "the worker was not started"
            raise ToolcellError(msg)
        box = self._outbox.open(task.run_id, known)
        runtime.supervisor.start_soon(_child, runtime, task, box, name=f"child:{task.run_id}")
        ended = False
        try:
            while (piece := await box.next()) is not None:
                stray = self._outbox.strays()
                yield Piece(events=(*stray, *piece.events), outcome=piece.outcome)
            ended = True
        finally:
            if ended:
                self._outbox.close(task.run_id)
            else:
                box.scope.cancel()

    async def left(self, run_id: str) -> Packed:
        """End a child; return what it had still to say, as soon as it is over."""
        box = self._outbox.box(run_id)
        if box is not None:
            box.scope.cancel()
            with anyio.move_on_after(CLOSING_SECONDS):
                await box.closed.wait()
        return self._outbox.close(run_id)

    async def close(self) -> Packed:
        """End everything; return events that nobody took."""
        if self._runtime is not None:
            await self._runtime.aclose()
        await self._stack.aclose()
        return self._outbox.strays()

    async def _started(self) -> Runtime:
        cargo: Cargo = pickle.loads(self._cargo)  # noqa: S301 - Ray's own wire, guarded by Ray
        store = await _record(cargo)
        parts = Parts(
            tools=cargo.tools,
            plugins=cargo.plugins,
            mcp_servers=cargo.mcp_servers,
            mcp=cargo.mcp,
            sinks=(self._outbox,),
            workspace=cargo.workspace,
            sessions=store,
            load_plugins=cargo.load_plugins,
            secrets=cargo.secrets,
        )
        host = Host(hooks=cargo.hooks, reranker=cargo.reranker, sink=NullSink())
        runtime = Runtime(parse_config(cargo.config), parts, host)
        if store is not None:  # it is read only: what happens is written at home
            await self._stack.enter_async_context(store)
        cargo.lend(runtime)
        await runtime.start()
        return runtime

    def _parent_of(self, run_id: str) -> str | None:
        child = None if self._runtime is None else self._runtime.swarming.child_of(run_id)
        return None if child is None else child.task.parent.run_id


async def _record(cargo: Cargo) -> SessionStore | None:
    """Return the session database of the parent, where this is its machine."""
    if cargo.record is None or cargo.home != socket.gethostname():
        return None
    return SessionStore(cargo.record) if await anyio.Path(cargo.record).exists() else None


async def _child(runtime: Runtime, task: ChildTask, box: Box) -> None:
    """Run a child and let its own children end; a cancelled one's are cancelled with its run."""
    outcome = ChildOutcome(state="failed", error="the host could not run it")
    try:
        with box.scope:
            async with runtime.swarming.swarm.adopted(task):
                try:
                    outcome = await runtime.swarming.runner.run(task)
                except ToolcellError as error:
                    outcome = ChildOutcome(state="failed", error=error.message)
                finally:
                    box.finish(outcome)
    finally:
        box.close()
