"""Owns the hard end of a step: one thread that stops guests their own deadline did not stop.

The interpreter polls a flag and the clock; a long native loop (a sort, a search, the parser) does
not. For those the watchdog interrupts the worker's engine, which traps within milliseconds.

Above: cells. Below: `engine`, `base.clock`. Refuses to know: why somebody wants a step to end.
"""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType

from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.execution.quickjs.control import Flag
from toolcell.execution.quickjs.engine import Instance

# The guest's own deadline gets this long to be noticed by the interpreter before the hard end.
SOFT_GRACE_SECONDS = 0.03
CANCEL_GRACE_SECONDS = 0.01


class Watch:
    """One step under watch: a context manager around the call into the guest."""

    __slots__ = ("_dog", "_instance", "_lock", "cancelled", "flag_address", "killed")

    def __init__(self, dog: Watchdog, instance: Instance, control: int) -> None:
        self._dog = dog
        self._instance: Instance | None = instance
        self._lock = threading.Lock()
        self.flag_address = instance.base + control
        self.cancelled = False
        self.killed = False

    def __enter__(self) -> Watch:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the watch: from here on nothing touches the instance any more."""
        with self._lock:
            self._instance = None
        self._dog.forget(self)

    def cancel(self) -> None:
        """Ask the guest to stop at its next poll, and make it stop soon after."""
        with self._lock:
            if self._instance is None:
                return
            self.cancelled = True
            ctypes.c_int32.from_address(self.flag_address).value = Flag.CANCELLED
        self._dog.at(self, CANCEL_GRACE_SECONDS)

    def kill(self) -> bool:
        """Interrupt the engine if the step still runs; says whether it did."""
        with self._lock:
            if self._instance is None or self.killed:
                return False
            self.killed = True
            self._instance.engine.interrupt()
            return True


class Watchdog:
    """The thread. Started with the first watch; asleep until the earliest end of a running step."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._due: dict[Watch, float] = {}
        self._sleeps_until = 0.0
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.kills = 0

    def watch(self, instance: Instance, control: int, seconds: float) -> Watch:
        """Return a watch that kills the step `seconds` (and a grace) from now."""
        watch = Watch(self, instance, control)
        self.at(watch, seconds + SOFT_GRACE_SECONDS)
        return watch

    def at(self, watch: Watch, seconds: float) -> None:
        """Kill `watch` in `seconds` at the latest, if its step still runs then."""
        due = self._clock.monotonic() + seconds
        with self._wake:
            if self._closed:
                return
            self._due[watch] = min(due, self._due.get(watch, due))
            if self._thread is None:
                self._sleeps_until = due
                self._thread = threading.Thread(
                    target=self._run, name="toolcell-quickjs-watchdog", daemon=True
                )
                self._thread.start()
            elif due < self._sleeps_until:
                self._sleeps_until = due
                self._wake.notify()

    def forget(self, watch: Watch) -> None:
        """The step has ended."""
        with self._wake:
            self._due.pop(watch, None)

    def close(self) -> None:
        """Stop the thread and wait for it."""
        with self._wake:
            self._closed = True
            self._wake.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._closed:
                    return
                now = self._clock.monotonic()
                late = [watch for watch, due in self._due.items() if due <= now]
                for watch in late:
                    del self._due[watch]
                if not late:
                    self._sleeps_until = min(self._due.values(), default=float("inf"))
                    endless = self._sleeps_until == float("inf")
                    self._wake.wait(None if endless else self._sleeps_until - now)
                    continue
            self.kills += sum(watch.kill() for watch in late)
