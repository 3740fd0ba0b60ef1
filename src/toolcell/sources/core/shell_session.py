"""Owns running shell commands: each a session with a bounded life, seen only by who started it.

Above: `sources.core.shell`. Below: `process_tree`, `guarding`, `output`. Refuses to know: tools.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.identifiers import fresh
from toolcell.base.jsontext import JsonObject
from toolcell.base.spawner import Spawner
from toolcell.sources.core.child import Child, start_child
from toolcell.sources.core.guarding import Guard
from toolcell.sources.core.output import OutputBuffer
from toolcell.sources.core.process_guard import MARK, signal_group
from toolcell.sources.core.process_tree import end_tree
from toolcell.sources.core.work import failed, refused
from toolcell.tools.threads import run_sync

Status = Literal["completed", "running", "timed_out", "killed"]

_DRAIN_SECONDS: Final = 1.0
UPDATE_BYTES: Final = 8_192
"""Output in one progress report."""
"""How long output is still read after the shell has ended: a process that got away may hold the
pipes open for ever, and what they still hold is read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run.

    Attributes:
        argv: The shell and the command text.
        cwd: Where.
        env: The whole environment.
        stdin: Text to feed; None for no input.
        timeout_seconds: When to end it.
        output_bytes: What is kept of each stream.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdin: str | None
    timeout_seconds: float
    output_bytes: int


class ShellSession:
    """One command on its way. `run` is its life; the rest may be called at any time."""

    def __init__(self, command: Command, owner: str, clock: Clock, guard: Guard) -> None:
        self.id = fresh("sh")
        self.owner = owner
        self.done = anyio.Event()
        self.listener: Callable[[Any], None] | None = None
        self._command = command
        self._clock = clock
        self._guard = guard
        self._started = clock.monotonic()
        self._ended: float | None = None
        self._stop = anyio.Event()
        self._stdout = OutputBuffer(command.output_bytes)
        self._stderr = OutputBuffer(command.output_bytes)
        self._status: Status = "running"
        self._exit_code: int | None = None
        self._failure: str | None = None

    def kill(self) -> None:
        """Ask for the end of the whole process tree; `done` tells when it has come."""
        self._stop.set()

    def result(self) -> JsonObject:
        """Return the state as the tools' output contract has it.

        Raises:
            CallError: the command could not be started.
        """
        if self._failure is not None:
            raise failed(self._failure)
        ended = self._clock.monotonic() if self._ended is None else self._ended
        return {
            "status": self._status,
            "exitCode": self._exit_code,
            "sessionId": self.id if self._status == "running" else None,
            "stdout": self._stdout.text(),
            "stderr": self._stderr.text(),
            "truncated": self._stdout.truncated or self._stderr.truncated,
            "durationMs": round((ended - self._started) * 1000),
        }

    async def run(self) -> None:
        """Start the command and see it to its end, whatever that is."""
        try:
            await self._run()
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(lambda: self._guard.forget(self.id))
            self._guard.over()

    async def _run(self) -> None:
        command = self._command
        try:
            child = await start_child(
                command.argv,
                cwd=command.cwd,
                env={**command.env, MARK: self.id},
                with_input=command.stdin is not None,
                watch=partial(self._guard.watch, self.id),
            )
        except (OSError, ValueError) as error:
            self._failure = f"The shell {command.argv[0]!r} cannot be started: {error}."
            self._finish("killed", None)
            return
        try:
            await self._attend(child)
        finally:
            if self._status == "running":
                # Cancelled: the runtime closes. The tree must be gone before it does.
                with anyio.CancelScope(shield=True):
                    await end_tree(child, self.id)
                self._finish("killed", None)
            child.close()

    async def _attend(self, child: Child) -> None:
        read = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, child, read)
            if self._command.stdin is not None:
                group.start_soon(child.feed, self._command.stdin.encode("utf-8", "surrogatepass"))
            status = await self._until_over(child)
            if status == "completed":
                # What it left running in its group ends with it; `background` is for the rest.
                signal_group(child.pid, signal.SIGKILL)
            else:
                with anyio.CancelScope(shield=True):
                    await end_tree(child, self.id)
            with anyio.move_on_after(_DRAIN_SECONDS):
                await read.wait()
            group.cancel_scope.cancel()
        code = child.returncode
        if code is not None and code < 0:
            code = 128 - code  # as a shell tells the signal that ended a command
        self._finish(status, code if status == "completed" else None)

    async def _until_over(self, child: Child) -> Status:
        """Wait for the exit, the time limit or a kill, whichever is first."""
        with anyio.move_on_after(self._command.timeout_seconds) as limit:
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_on_kill, group.cancel_scope)
                await child.wait()
                group.cancel_scope.cancel()
        if child.returncode is not None:
            return "completed"
        return "timed_out" if limit.cancelled_caught else "killed"

    async def _cancel_on_kill(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()

    async def _read(self, child: Child, read: anyio.Event) -> None:
        """Read both streams to their ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._pump, child.read_stdout, self._stdout, "stdout")
            group.start_soon(self._pump, child.read_stderr, self._stderr, "stderr")
        read.set()

    async def _pump(
        self, receive: Callable[[], Awaitable[bytes]], buffer: OutputBuffer, name: str
    ) -> None:
        while data := await receive():
            buffer.add(data)
            if self.listener is not None:
                for start in range(0, len(data), UPDATE_BYTES):
                    piece = data[start : start + UPDATE_BYTES].decode("utf-8", "replace")
                    self.listener({"stream": name, "text": piece})
            await anyio.lowlevel.checkpoint()  # a flood of output must not hold the loop

    def _finish(self, status: Status, exit_code: int | None) -> None:
        self._status = status
        self._exit_code = exit_code
        self._ended = self._clock.monotonic()
        self.listener = None
        self.done.set()


class ShellSessions:
    """The sessions of a runtime. They are its children, so they end with it."""

    def __init__(
        self,
        spawner: Spawner,
        *,
        max_running: int = 16,
        max_kept: int = 32,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._spawner = spawner
        self._max_running = max_running
        self._max_kept = max_kept
        self._clock = clock
        self._sessions: dict[str, ShellSession] = {}
        self._guard: Guard | None = None

    def start(self, command: Command, owner: str) -> ShellSession:
        """Start a command for an owner.

        Raises:
            CallError: too many are running.
        """
        running = sum(not each.done.is_set() for each in self._sessions.values())
        if running >= self._max_running:
            message = (
                f"{running} shell commands are running, at most {self._max_running} may. "
                "Poll or kill some with the process tool."
            )
            raise failed(message)
        if self._guard is None:
            self._guard = Guard()
            self._spawner.start_soon(self._guard.life, name="shell guard")
        session = ShellSession(command, owner, self._clock, self._guard)
        self._sessions[session.id] = session
        self._spawner.start_soon(session.run, name=f"shell {session.id}")
        return session

    def get(self, session_id: str, owner: str) -> ShellSession:
        """Return a session; raises `CallError` when its owner has none of that id."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != owner:
            mine = [each.id for each in self._sessions.values() if each.owner == owner]
            known = f"Known: {', '.join(mine)}." if mine else "None is known."
            msg = f"There is no shell session {session_id[:80]!r}. {known}"
            raise refused(msg)
        return session

    def forget(self, session: ShellSession) -> None:
        """Drop a session whose end its owner has been told."""
        self._sessions.pop(session.id, None)

    def keep_few(self) -> None:
        """Drop the oldest ended sessions nobody asked about."""
        ended = [each for each in self._sessions.values() if each.done.is_set()]
        for session in ended[: max(0, len(ended) - self._max_kept)]:
            self.forget(session)

    def statistics(self) -> dict[str, int]:
        """Return `{running, ended}`."""
        ended = sum(each.done.is_set() for each in self._sessions.values())
        return {"running": len(self._sessions) - ended, "ended": ended}
