"""The pool sync tools run in: bounded, abandonable, gone with its event loop."""

from __future__ import annotations

import gc
import threading

import anyio
import pytest

from toolcell.tools.threads import MAX_THREADS, run_sync, running_threads

pytestmark = pytest.mark.anyio


async def until_running(count: int) -> None:
    with anyio.fail_after(10):
        while running_threads() != count:  # noqa: ASYNC110 - threads set no event
            await anyio.sleep(0.005)


async def test_a_cancelled_call_returns_at_once_and_keeps_its_slot_until_it_ends():
    """DESIGN, Concurrency: threads that hang cannot pile up without bound."""
    release = threading.Event()
    started = anyio.Event()
    loop_wake = anyio.lowlevel.current_token()

    def block() -> None:
        anyio.from_thread.run_sync(started.set, token=loop_wake)
        assert release.wait(10)

    async with anyio.create_task_group() as group:
        group.start_soon(run_sync, block)
        await started.wait()
        group.cancel_scope.cancel()
    assert running_threads() == 1
    release.set()
    await until_running(0)


async def test_calls_over_the_bound_wait_their_turn():
    release = threading.Event()
    done: list[int] = []

    async def one() -> None:
        await run_sync(lambda: release.wait(10))
        done.append(1)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(MAX_THREADS + 5):
                group.start_soon(one)
            await until_running(MAX_THREADS)
            release.set()
    assert len(done) == MAX_THREADS + 5


async def test_errors_cross_and_stop_iteration_does_not_break_the_caller():
    def fail() -> None:
        raise KeyError("x")

    def stop() -> None:
        raise StopIteration

    with pytest.raises(KeyError):
        await run_sync(fail)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_sync(stop)


def test_threads_go_when_their_event_loop_is_gone():
    async def some() -> None:
        await run_sync(int)

    before = set(threading.enumerate())
    for _ in range(3):
        anyio.run(some)
    deadline = threading.Event()
    for _ in range(200):
        gc.collect()
        left = set(threading.enumerate()) - before
        if not left:
            break
        deadline.wait(0.02)
    assert left == set()
