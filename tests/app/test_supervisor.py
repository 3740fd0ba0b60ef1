"""Who owns all background work: its failures are told and stay where they are."""

import asyncio

import anyio
import anyio.lowlevel
import pytest

from toolcell.app.supervisor import Supervisor
from toolcell.base.clock import SYSTEM_CLOCK

pytestmark = pytest.mark.anyio


class Kept:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


async def started(sink):
    supervisor = Supervisor(sink=sink, clock=SYSTEM_CLOCK)
    supervisor.start()
    return supervisor


async def test_a_failing_child_becomes_a_diagnostic_and_takes_nobody_down():
    sink = Kept()
    supervisor = await started(sink)
    going_on = anyio.Event()

    async def fails():
        msg = "broken"
        raise ValueError(msg)

    async def works():
        going_on.set()

    supervisor.start_soon(fails, name="the failing one")
    await anyio.wait_all_tasks_blocked()
    supervisor.start_soon(works)
    with anyio.fail_after(2):
        await going_on.wait()
    await supervisor.aclose()
    (event,) = sink.events
    assert (event.subject, event.message) == ("the failing one", "ValueError: broken")
    assert supervisor.live == 0


async def test_closing_cancels_children_and_waits_for_their_clean_up():
    supervisor = await started(Kept())
    cleaned = []

    async def stays():
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            cleaned.append(True)

    supervisor.start_soon(stays)
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(2):
        await supervisor.aclose()
        await supervisor.aclose()
    assert cleaned == [True]
    with pytest.raises(RuntimeError, match="async with"):
        supervisor.start_soon(stays)


async def test_it_may_be_started_and_closed_in_different_tasks():
    """DESIGN: a runtime may be entered in one task and left in another."""
    made = []

    async def opens():
        made.append(await started(Kept()))

    async with anyio.create_task_group() as group:
        group.start_soon(opens)
    with anyio.fail_after(2):
        await made[0].aclose()


async def test_a_child_that_had_not_begun_is_cancelled_at_its_first_wait():
    supervisor = await started(Kept())
    seen = []

    async def late():
        seen.append("began")
        await anyio.sleep_forever()
        seen.append("went on")

    supervisor.start_soon(late)
    with anyio.fail_after(2):
        await supervisor.aclose()
    assert (seen, supervisor.live) == (["began"], 0)


async def test_what_is_shielded_is_finished_and_nothing_else_after_it():
    supervisor = await started(Kept())
    done = []

    async def works():
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
            done.append("shielded")
        try:
            await anyio.sleep_forever()
        finally:
            await anyio.lowlevel.checkpoint()  # cancelled again: only a shield may wait
            done.append("after")

    supervisor.start_soon(works)
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(2):
        await supervisor.aclose()
    assert done == ["shielded"]


async def test_a_child_whose_task_was_cancelled_from_outside_does_not_hold_up_closing():
    supervisor = await started(Kept())
    before = asyncio.all_tasks()
    supervisor.start_soon(anyio.sleep_forever)
    (task,) = asyncio.all_tasks() - before
    task.cancel()  # before its first step, as a loop that ends does
    with anyio.fail_after(2):
        await supervisor.aclose()
    assert supervisor.live == 0


async def test_a_child_may_close_what_it_runs_in():
    supervisor = await started(Kept())
    closed = anyio.Event()

    async def closes():
        await supervisor.aclose()
        closed.set()

    async def stays():
        await anyio.sleep_forever()

    supervisor.start_soon(stays)
    supervisor.start_soon(closes)
    with anyio.fail_after(2):
        await closed.wait()
    assert supervisor.live == 0
