"""Large arguments and results do not hold the event loop from one end of a call to the other."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.calls.kit import Counted, Recording, core, invocation
from toolcell.calls.gate import Gate
from toolcell.calls.redaction import Redactor
from toolcell.protocol.events import CallEnded, CallStarted

pytestmark = pytest.mark.anyio

LARGE = [{"a": index, "b": str(index)} for index in range(60_000)]


class Turns(Recording):
    """Counts turns of the loop, and notes the count at each event."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0
        self.at: dict[type, int] = {}

    def emit(self, event: object) -> None:
        super().emit(event)  # type: ignore[arg-type]
        self.at[type(event)] = self.turns

    async def count(self) -> None:
        while True:
            await checkpoint()
            self.turns += 1


async def test_others_run_between_the_copies_checks_and_records_of_a_call() -> None:
    """DESIGN: nothing blocks the event loop; what is large is worked on in parts."""
    seen = Turns()
    ran = [0]

    async def body(arguments: object, context: object) -> object:
        result = await Counted({"rows": LARGE})(arguments, context)  # type: ignore[arg-type]
        ran[0] = seen.turns
        return result

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seen.count)
        await anyio.sleep(0.01)
        begun = seen.turns
        gate = Gate(sink=seen, redactor=Redactor(["a secret"]))
        await gate.call(invocation(core("x", body), {"rows": LARGE}))
        tasks.cancel_scope.cancel()
    assert seen.at[CallStarted] > begun, "between the copy of the arguments and their record"
    assert ran[0] > seen.at[CallStarted], "between the record and the tool"
    assert seen.at[CallEnded] > ran[0], "between the copy of the result and its record"


async def test_a_cancelled_caller_waits_for_the_record_of_what_has_run() -> None:
    """rule 8.3: a tool that has run is not told as aborted because its result is large."""
    sink = Recording()
    scope = anyio.CancelScope()

    async def body(arguments: object, context: object) -> object:
        scope.cancel()
        return await Counted({"rows": LARGE})(arguments, context)  # type: ignore[arg-type]

    with scope:
        await Gate(sink=sink).call(invocation(core("x", body), {}))
    assert [event.status for event in sink.ended] == ["completed"]
