"""Programs that hand over many small things: the host stays responsive."""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import anyio.lowlevel
import pytest

from tests.codemode.support import GroupSpawner, quickjs, run, value_of
from toolcell.codemode.bridge import Bridge
from toolcell.codemode.extensions.contract import Answering, Sleeping
from toolcell.codemode.view import GuestView
from toolcell.execution.contract import Request
from toolcell.execution.frames import FrameKind, read_frames

pytestmark = pytest.mark.anyio


@dataclass
class Ticker:
    """Counts how often the event loop came round."""

    ticks: int = 0

    async def run(self):
        while True:
            await anyio.lowlevel.checkpoint()
            self.ticks += 1


def bridge_of(handlers, group, *, inbox_bytes=1 << 20):
    view = GuestView(entries=())
    return Bridge(
        handlers,
        SimpleNamespace(view=view),
        GroupSpawner(group),
        slots=16,
        inbox_bytes=inbox_bytes,
    )


async def test_a_flood_of_searches_does_not_hold_the_event_loop():
    """rule 9.4: what a program asks for at once is answered in slices."""

    def answer(_arguments, _cell):
        ends_at = time.perf_counter() + 0.002
        while time.perf_counter() < ends_at:
            pass

    ticker = Ticker()
    async with anyio.create_task_group() as group:
        bridge = bridge_of({"search": Answering(answer)}, group)
        group.start_soon(ticker.run)
        await bridge.submit([Request(number, "search", '["x"]') for number in range(1, 41)])
        assert ticker.ticks >= 5
        assert len(bridge.take()) == 40
        group.cancel_scope.cancel()


async def test_many_lines_of_output_are_noted_in_slices_and_all_arrive():
    """rule 3.11, rule 9.4."""
    async with quickjs() as bench:
        runtime = bench.runtime(max_output_bytes=1 << 20)
        outcome = await run(runtime, "for (let i = 0; i < 3000; i++) text(i); return 1")
        assert [entry["text"] for entry in outcome.output] == [str(i) for i in range(3000)]


async def test_more_pieces_of_output_than_the_host_takes_in_a_step_say_so():
    """rule 3.11, rule 8.5: an empty text costs the host something too."""
    async with quickjs() as bench:
        runtime = bench.runtime(timeout_ms=30_000)
        outcome = await run(runtime, "for (let i = 0; i < 100001; i++) text('')")
        assert outcome.code == "output_limit_exceeded"
        caught = "let n = 0; try { for (;;) { text(''); n++ } } catch (e) { return [n, e.name] }"
        assert await value_of(runtime, caught) == [100_000, "RangeError"]


async def test_a_program_cannot_forge_the_error_of_a_full_step():
    """rule 3.9: only the controller's own error means the output limit."""
    message = "one step handed over more than the host takes; emit or request less at once"
    async with quickjs() as bench:
        outcome = await run(bench.runtime(), f"throw new RangeError({message!r})")
        assert outcome.code == "internal_error"


def test_requests_taken_back_in_the_same_step_never_reach_the_host():
    """BEHAVIOURS 113, rule 8.5: in time linear in their number, whatever their order."""
    numbers = range(1, 60_001)
    frames = [(FrameKind.REQUEST, f"{n} sleep [1]") for n in numbers]
    frames += [(FrameKind.WITHDRAW, str(n)) for n in reversed(numbers) if n != 7]
    frames += [(FrameKind.WITHDRAW, "70000")]
    began = time.process_time()
    handed = read_frames(frames, "user.js")
    assert time.process_time() - began < 5
    assert [request.id for request in handed.requests] == [7]
    assert handed.withdrawn == [70_000]


async def test_open_requests_may_not_pile_up_arguments():
    """rule 8.5, BEHAVIOURS 192: the way out has the budget of the way in; excess is catchable."""
    async with anyio.create_task_group() as group:
        bridge = bridge_of({"sleep": Sleeping(lambda _arguments: 60.0)}, group, inbox_bytes=1000)
        text = '["' + "x" * 396 + '"]'
        await bridge.submit([Request(number, "sleep", text) for number in (1, 2, 3)])
        (refused,) = bridge.take()
        assert refused.id == 3
        assert "Await some of them before you send more" in refused.error
        bridge.withdraw([1])
        await bridge.submit([Request(4, "sleep", text)])
        assert not bridge.has_answers
        await bridge.aclose()


async def test_an_error_with_an_enormous_stack_line_still_says_what_it_is():
    """rule 3.10, EX-03: the frame that says why a cell failed is small."""
    code = (
        "const e = new Error('why'); "
        "e.stack = 'openclaw-code-mode:user.js:1:1 ' + 'y'.repeat(9e6); throw e"
    )
    async with quickjs() as bench:
        outcome = await run(bench.runtime(), code)
        assert outcome.error.startswith("Error: why")
        assert len(outcome.error) < 2000
