"""Owns one body in one child: its requests are answered, its log kept, its end understood.

The child may say what it likes: what is no well-formed message of the protocol is ignored, and a
forged request reaches nothing that the body could not ask for itself. The process is gone when
`run` returns, however it returns.

Above: `code`. Below: `launch`, `calls.failures`. Refuses to know: catalogs, tools.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import anyio

from toolcell.base.deadline import Deadline
from toolcell.base.jsontext import dumps, loads
from toolcell.calls.failures import guest_text
from toolcell.errors import CallError
from toolcell.toolsearch.child.launch import Launcher

METHODS: Final = frozenset({"search", "describe", "call"})
LIMITS: Final = {
    "request": 1 << 20,
    "value": 1 << 20,
    "logs": 1 << 16,
    "pending": 128,
    "error": 4096,
}
"""Characters of one request, of the value, of all logs and of an error; requests open at once."""
LOG_ENTRY: Final = 16
"""Characters that an entry of the log counts for beside its text: many empty ones are not free."""
MAX_REPLY_CHARS: Final = 4 << 20
TOO_LARGE: Final = "the reply takes"
NARROW: Final = "Ask for less at a time; a call that ran has had its effects."
TOO_DEEP: Final = "what was returned is nested too deeply"
STDERR_TAIL: Final = 64 << 10
MAX_CALLS_AT_ONCE: Final = 16
_MAX_LINE: Final = 8 << 20
_MAX_FRAMES: Final = 100_000
_STDERR_SHOWN: Final = 512
_STDERR_LOOKED_AT: Final = 4096
"""A path is known by where it begins, so that more is looked at than is shown."""
_FRAME: Final = re.compile(r"\s*(?:\d+: 0x[0-9a-f]+ |-{5} \w+ stack trace -{5})")
_FATAL: Final = ("FATAL ERROR", "# Fatal JavaScript")
_READ: Final = 1 << 16
_NEARLY_NOTHING: Final = 0.05

Answer = Callable[[str, list[Any]], Awaitable[Any]]
"""Answers one request: the method and its arguments; raises CallError."""


@dataclass(slots=True, kw_only=True)
class BodyEnd:
    """How a body ended.

    Attributes:
        kind: `stuck`: it waits for something that nothing will settle.
        value: What it returned.
        error: What it threw, or how the child died.
        logs: `{level, text}` in order.
    """

    kind: Literal["done", "failed", "stuck", "timeout", "crashed"] = "crashed"
    value: Any = None
    error: str = ""
    logs: list[dict[str, str]] = field(default_factory=list)


class Body:
    """One run of one body. Use it once."""

    def __init__(self, process: subprocess.Popen[bytes], answer: Answer, budget: Deadline) -> None:
        self._process = process
        self._answer = answer
        self._budget = budget
        self._end = BodyEnd()
        self._spoke = False
        self._stderr = b""
        self._omitted = 0
        self._last_id = 0
        self._frames = 0
        self._logged = 0
        self._writing = anyio.Lock()
        self._turns = anyio.Semaphore(MAX_CALLS_AT_ONCE)

    async def run(self, code: str) -> BodyEnd:
        """Run it to its end. Cancelling it ends the child and the calls under way."""
        for pipe in self._pipes():
            os.set_blocking(pipe, False)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_time, tasks.cancel_scope)
                tasks.start_soon(self._keep_stderr)
                await self._send(dumps({"code": code, "limits": {**LIMITS, "entry": LOG_ENTRY}}))
                await self._hear(tasks)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                status = await self._ended()
        if not self._spoke and self._end.kind != "timeout":
            self._end.kind = "crashed"
            self._end.error = self._last_words(status)
        return self._end

    async def _hear(self, tasks: anyio.abc.TaskGroup) -> None:
        rest = b""
        while True:
            data = await self._read(self._process.stdout)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _MAX_LINE:
                return
            for line in lines:
                self._frames += 1
                if self._frames <= _MAX_FRAMES and len(line) <= _MAX_LINE:
                    self._take(line, tasks)

    def _take(self, line: bytes, tasks: anyio.abc.TaskGroup) -> None:
        try:
            message = loads(line)
        except RecursionError:
            message = {"type": "failed", "error": TOO_DEEP}
        except ValueError:
            return
        match message:
            case {"type": "log", "level": "log" | "warn" | "error" as level, "text": str(text)}:
                # Counted as it grows: to add it all up for each entry would hold the loop.
                if self._logged + len(text) <= LIMITS["logs"]:
                    self._logged += len(text) + LOG_ENTRY
                    self._end.logs.append({"level": level, "text": text})
            case {"type": "request", "id": int(number), "method": str(method), "args": list(args)}:
                if method in METHODS and number == self._last_id + 1 and not self._spoke:
                    self._last_id = number
                    tasks.start_soon(self._reply, number, method, args)
            case {"type": "done", "value": value} if not self._spoke:
                self._spoke, self._end.kind, self._end.value = True, "done", value
            case {"type": "failed", "error": str(error)} if not self._spoke:
                self._spoke, self._end.kind, self._end.error = True, "failed", error
            case {"type": "stuck"} if not self._spoke:
                self._spoke, self._end.kind = True, "stuck"
            case _:
                return

    async def _reply(self, number: int, method: str, args: list[Any]) -> None:
        try:
            async with self._turns:
                value = await self._answer(method, args)
        except CallError as error:
            told = {"message": error.message, "code": error.code}
            await self._send(dumps({"id": number, "error": told}))
            return
        text = dumps({"id": number, "value": value})
        if len(text) > MAX_REPLY_CHARS:
            said = f"{TOO_LARGE} {len(text)} characters; at most {MAX_REPLY_CHARS} fit. {NARROW}"
            text = dumps({"id": number, "error": {"message": said, "code": "output_contract"}})
        await self._send(text)

    async def _send(self, text: str) -> None:
        """Write a line; a child that does not listen any more will be found out by its silence."""
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101 - started with pipes
        async with self._writing:
            while data:
                try:
                    data = data[os.write(pipe.fileno(), data) :]
                except BlockingIOError:
                    await anyio.wait_writable(pipe.fileno())
                except OSError:
                    return

    async def _watch_time(self, scope: anyio.CancelScope) -> None:
        while not self._budget.expired:  # noqa: ASYNC110 - a budget may be paused meanwhile
            await anyio.sleep(max(self._budget.remaining, _NEARLY_NOTHING))
        self._spoke = False
        self._end.kind, self._end.value, self._end.error = "timeout", None, ""
        scope.cancel()

    async def _keep_stderr(self) -> None:
        while data := await self._read(self._process.stderr):
            kept = self._stderr + data
            self._stderr = kept[-STDERR_TAIL:]
            self._omitted += len(kept) - len(self._stderr)

    async def _read(self, pipe: Any) -> bytes:
        while True:
            try:
                return os.read(pipe.fileno(), _READ)
            except BlockingIOError:
                await anyio.wait_readable(pipe.fileno())
            except OSError:
                return b""

    async def _ended(self) -> int:
        """Make sure that the process is gone; return how it ended by itself, if it did."""
        process = self._process
        if process.poll() is None and self._end.kind == "crashed" and not self._spoke:
            # Its pipes are closed: it is ending, or will not say anything more.
            with anyio.move_on_after(1):
                while process.poll() is None:  # noqa: ASYNC110 - no event tells of a process's end
                    await anyio.sleep(0.005)
        process.kill()
        status = await anyio.to_thread.run_sync(process.wait)
        self._stderr += _left_in(process.stderr)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        return status

    def _pipes(self) -> list[int]:
        process = self._process
        return [pipe.fileno() for pipe in (process.stdin, process.stdout, process.stderr) if pipe]

    def _last_words(self, status: int) -> str:
        how = str(status) if status >= 0 else _signal_name(-status)
        words = self._stderr.decode("utf-8", "replace").strip()
        shown = _shown(words)
        hidden = self._omitted + len(words) - len(shown)
        note = f" [{hidden} bytes of diagnostics omitted]" if hidden else ""
        return f"tool_search_code child exited with {how}: {shown or 'it said nothing'}{note}"


async def run_body(launcher: Launcher, code: str, answer: Answer, budget: Deadline) -> BodyEnd:
    """Run `code` in a child of its own.

    Raises:
        RuntimeUnavailableError: no child can be started.
    """
    process = await launcher.start()
    return await Body(process, answer, budget).run(code)


def _shown(words: str) -> str:
    """Return the end of what a child said, without places of the host.

    Node names its own file in every frame of its stack; the line above says what happened.
    """
    lines = [line for line in words.splitlines() if not _FRAME.match(line)]
    fatal = next((line for line in lines if line.startswith(_FATAL)), None)
    if fatal is not None:
        return guest_text(fatal)[:_STDERR_SHOWN]
    return guest_text("\n".join(lines)[-_STDERR_LOOKED_AT:])[-_STDERR_SHOWN:]


def _left_in(pipe: Any) -> bytes:
    try:
        return os.read(pipe.fileno(), STDERR_TAIL)
    except OSError:
        return b""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
