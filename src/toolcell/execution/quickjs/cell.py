"""Owns one cell: its live guest or its parked state, and how a step of it ends.

Above: the executor, on whose worker threads everything here runs, one thread at a time.
Below: `engine`, `image`, `snapshot`, `watchdog`. Refuses to know: event loops, queues.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import dumps, utf8, utf8_length
from toolcell.execution.contract import (
    LARGE_MESSAGE,
    Answer,
    Faulted,
    FaultKind,
    GuestError,
    Limits,
    OutputFrame,
    Settled,
    oversize,
    settled_text,
)
from toolcell.execution.frames import FrameError, Handed, read_frames
from toolcell.execution.quickjs import control as block
from toolcell.execution.quickjs.control import Control, Flag
from toolcell.execution.quickjs.engine import (
    GuestAddressError,
    GuestTrapError,
    Instance,
)
from toolcell.execution.quickjs.image import Image
from toolcell.execution.quickjs.snapshot import Pages, difference, freeze, runs, thaw
from toolcell.execution.quickjs.watchdog import Watch, Watchdog

_START, _SETTLE = 1, 2
_OK, _STOPPED = 0, 2
_OUT_OF_MEMORY = "out of memory"
# What linear memory may take beyond the counted heap: fragments, the allocator's own records.
_SLACK = 2 << 20
_MOST_MEMORY = 4 << 30
# Below this the memory that a cell let go of is not worth clearing before it is parked.
_TIDY_FROM = 1 << 20
_TIDY_SECONDS = 1.0


class CellCancelledError(Exception):
    """The step was cancelled; the guest is gone."""


class Host(Protocol):
    """What a worker lends to a cell: guests on its own engine."""

    def instantiate(self, image: Image, memory_cap: int, size: int = 0) -> Instance:
        """Make a fresh guest from an image, its memory grown to `size` bytes."""
        ...


class Cell:
    """One program, from its first step to its end."""

    __slots__ = (
        "_doomed",
        "_held",
        "_instance",
        "_lock",
        "_parked",
        "_watch",
        "cancelled",
        "filename",
        "image",
        "limits",
    )

    def __init__(self, image: Image, limits: Limits, filename: str) -> None:
        self.image = image
        self.limits = limits
        self.filename = filename
        self.cancelled = False
        self._instance: Instance | None = None
        self._parked: bytes | None = None
        self._watch: Watch | None = None
        self._held = self._doomed = False
        self._lock = threading.Lock()

    @property
    def alive(self) -> bool:
        """Whether it holds a live guest."""
        return self._instance is not None

    def __enter__(self) -> Cell:
        """Hold it for work on this thread: a `close` from elsewhere waits for the end of it."""
        with self._lock:
            self._held = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go; free it when that was asked for meanwhile."""
        with self._lock:
            self._held = False
            doomed = self._doomed
        if doomed:
            self._free()

    @property
    def closed(self) -> bool:
        """Whether there is nothing left to resume."""
        return self._instance is None and self._parked is None

    def begin(self, host: Host) -> None:
        """Make the guest; memory counts from here on."""
        self._instance = host.instantiate(self.image, self._memory_cap())
        limits = self.limits
        seed = secrets.randbits(63) | 1
        memory = min(limits.memory_bytes, _MOST_MEMORY - 1)
        stack = min(limits.stack_bytes, 900 << 10)
        frames = min(limits.frame_bytes, 1 << 30)
        now = _nanoseconds(SYSTEM_CLOCK)
        self._instance.call("cm_begin", seed, memory, stack, frames, now)

    def start(self, message: str, seconds: float, dog: Watchdog) -> Handed | Faulted:
        """Run the program until nothing is left to run, for at most `seconds`.

        After a fault the guest is gone.

        Raises:
            CellCancelledError: `cancel` was called.
        """
        return self._step(lambda guest: self._run(guest, _START, message, seconds), seconds, dog)

    def settle(self, settled: Sequence[Settled], seconds: float, dog: Watchdog) -> Handed | Faulted:
        """Deliver answers and run on; as `start`.

        Large ones go in one by one, so that their texts never lie in the guest together, and one
        that does not fit is told to the program, which goes on.
        """
        texts = list(map(settled_text, settled))
        if sum(map(len, texts)) < LARGE_MESSAGE:
            message = f"[{','.join(texts)}]"
            return self._step(
                lambda guest: self._run(guest, _SETTLE, message, seconds), seconds, dog
            )
        return self._step(lambda guest: self._run_large(guest, settled, seconds), seconds, dog)

    def _step(
        self, run: Callable[[Instance], Handed | Faulted], seconds: float, dog: Watchdog
    ) -> Handed | Faulted:
        instance = self._instance
        if instance is None:
            return _fault("crash", "the program is not live")
        with dog.watch(instance, self.image.control, seconds) as watch:
            with self._lock:
                self._watch = watch
                stop = self.cancelled
            if stop:
                watch.cancel()
            ended = self._guarded(instance, run)
        with self._lock:
            self._watch = None
        if watch.cancelled or self.cancelled:
            self._free()
            raise CellCancelledError
        if isinstance(ended, Faulted) or ended.error is not None or ended.value is not None:
            self._free()
        return ended

    def cancel(self) -> None:
        """Stop the running step, or the next one at once. From any thread."""
        with self._lock:
            self.cancelled = True
            watch = self._watch
        if watch is not None:
            watch.cancel()

    def pages(self, dog: Watchdog, most: int | None = None) -> Pages:
        """Return the live guest's memory as a difference from the image; see `difference`."""
        instance = self._require()
        if instance.size - self.image.size > _TIDY_FROM:
            self._tidy(instance, dog)
        return difference(instance.read, instance.size, self.image.blocks, most)

    def _tidy(self, instance: Instance, dog: Watchdog) -> None:
        """Clear what was let go of: a large value leaves its bytes behind, and they are no state.

        It walks a list in memory that the guest could write; so it is watched like a step, and the
        state is taken as it is where that does not end well.
        """
        with dog.watch(instance, self.image.control, _TIDY_SECONDS):
            instance.arm()
            with suppress(GuestTrapError):
                instance.call("cm_rest")

    def park(self, dog: Watchdog) -> int:
        """Replace the live guest by its compressed state and return the bytes that takes.

        Raises:
            SnapshotTooLargeError: it exceeds `snapshot_bytes`.
        """
        if self._parked is None:
            limit = self.limits.snapshot_bytes
            self._parked = freeze(self.pages(dog, limit), self.image.digest, limit)
            self._drop_instance()
        return len(self._parked)

    def restore(self, host: Host) -> None:
        """Bring the parked state back to life on this worker.

        Raises:
            SnapshotError: the parked state is damaged.
        """
        if self._parked is not None:
            pages = thaw(self._parked, self.image.digest)
            self._revive(host, pages)
            self._parked = None

    def move(self, host: Host, dog: Watchdog) -> None:
        """Give up the live guest for one with the same memory on another worker."""
        pages = self.pages(dog)
        self._drop_instance()
        self._revive(host, pages)

    def close(self) -> None:
        """Free everything, at once or when the thread that holds it lets go. Safe to call again."""
        with self._lock:
            self._doomed = self.cancelled = True
            watch, held = self._watch, self._held
        if watch is not None:
            watch.cancel()
        if not held:
            self._free()

    def _free(self) -> None:
        self._drop_instance()
        self._parked = None

    def _revive(self, host: Host, pages: Pages) -> None:
        instance = host.instantiate(self.image, self._memory_cap(), pages.size)
        for offset, contents in runs(pages):
            instance.write(offset, contents)
        self._instance = instance

    def _memory_cap(self) -> int:
        extra = self.limits.memory_bytes
        cap = self.image.size + extra + extra // 8 + _SLACK
        return min(cap, _MOST_MEMORY)

    def _require(self) -> Instance:
        if self._instance is None:
            msg = "the program is not live"
            raise RuntimeError(msg)
        return self._instance

    def _drop_instance(self) -> None:
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()

    def _guarded(
        self, instance: Instance, run: Callable[[Instance], Handed | Faulted]
    ) -> Handed | Faulted:
        try:
            instance.arm()
            return run(instance)
        except GuestTrapError as trap:
            return self._after_trap(instance, trap)
        except GuestAddressError as error:
            return _fault("crash", str(error))

    def _run(
        self, instance: Instance, operation: int, message: str, seconds: float
    ) -> Handed | Faulted:
        placed = _place(instance, message)
        if placed is None:
            return self._memory_fault(())
        budget = max(int(seconds * 1e9), 1)
        rc = instance.call("cm_step", operation, *placed, budget, _nanoseconds(SYSTEM_CLOCK))
        return self._collect(instance, rc)

    def _run_large(
        self, instance: Instance, settled: Sequence[Settled], seconds: float
    ) -> Handed | Faulted:
        """Put answers in one by one, then run with what is left of the time."""
        ends_at = SYSTEM_CLOCK.monotonic() + seconds
        for one in settled:
            if self._take(instance, settled_text(one)):
                continue
            given = one.value if isinstance(one, Answer) else one.error
            reason = oversize(utf8_length(given), self.limits.memory_bytes)
            if not self._take(instance, dumps({"id": one.id, "oversize": reason})):
                return self._memory_fault(())
        return self._run(instance, _SETTLE, "", ends_at - SYSTEM_CLOCK.monotonic())

    def _take(self, instance: Instance, text: str) -> bool:
        """Put one answer in; False when there is no room for it."""
        placed = _place(instance, text)
        return placed is not None and instance.call("cm_take", *placed) == _OK

    def _collect(self, instance: Instance, rc: int) -> Handed | Faulted:
        try:
            state = block.read_control(instance, self.image.control)
            frames = block.read_frames(instance, state, self.limits.frame_bytes)
            if rc not in {_OK, _STOPPED}:
                said = [text for kind, text in frames if kind > 99]
                return _fault("crash", "the controller broke: " + "; ".join(said))
            handed = read_frames(frames, self.filename)
        except (GuestAddressError, FrameError) as error:
            return _fault("crash", str(error))
        if rc == _STOPPED:
            return self._stopped(state.flag, tuple(handed.output))
        return self._judge(handed, state)

    def _judge(self, handed: Handed, state: Control) -> Handed | Faulted:
        error = handed.error
        if error is None:
            return handed
        output = tuple(handed.output)
        if handed.syntax:
            return Faulted(kind="syntax", error=error, output=output)
        if state.refused_allocations and error.message == _OUT_OF_MEMORY:
            return self._memory_fault(output)
        if handed.over_budget:
            return Faulted(kind="frames", error=error, output=output)
        return Faulted(kind="error", error=error, output=output)

    def _stopped(self, flag: int, output: tuple[OutputFrame, ...]) -> Faulted:
        if flag == Flag.MEMORY:
            return self._memory_fault(output)
        return _fault("timeout", "the program ran longer than it may", output)

    def _after_trap(self, instance: Instance, trap: GuestTrapError) -> Faulted:
        try:
            state = block.read_control(instance, self.image.control)
            frames = block.read_frames(instance, state, self.limits.frame_bytes)
            output = tuple(read_frames(frames, self.filename).output)
        except (GuestAddressError, FrameError):
            output = ()
        if trap.kind == "interrupted":
            return _fault("timeout", "the program ran longer than it may", output)
        if trap.kind == "stack":
            error = GuestError(name="RangeError", message="Maximum call stack size exceeded")
            return Faulted(kind="error", error=error, output=output)
        return _fault("crash", f"the engine trapped: {trap}", output)

    def _memory_fault(self, output: tuple[OutputFrame, ...]) -> Faulted:
        limit = self.limits.memory_bytes
        message = f"out of memory: the program needed more than its {limit} bytes"
        return Faulted(
            kind="memory", error=GuestError(name="InternalError", message=message), output=output
        )


def _place(instance: Instance, text: str) -> tuple[int, int] | None:
    """Copy a text into the guest and return where it lies, or None without room for it."""
    data = utf8(text)
    address = instance.call("cm_message", len(data)) & 0xFFFFFFFF
    if not address:
        return None
    instance.write(address, data + b"\0")
    return address, len(data)


def _fault(kind: FaultKind, message: str, output: tuple[OutputFrame, ...] = ()) -> Faulted:
    return Faulted(kind=kind, error=GuestError(name="", message=message), output=output)


def _nanoseconds(clock: Clock) -> int:
    return int(clock.monotonic() * 1e9)
