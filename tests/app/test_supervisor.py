"""One task group owns all background work; its failures are told and stay where they are."""

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
    await supervisor.start()
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
    """DESIGN: entering and leaving only signal the root task."""
    made = []

    async def opens():
        made.append(await started(Kept()))

    async with anyio.create_task_group() as group:
        group.start_soon(opens)
    with anyio.fail_after(2):
        await made[0].aclose()
