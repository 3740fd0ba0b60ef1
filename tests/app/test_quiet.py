"""Facts that nobody takes are not made; one listener is enough to have them all."""

import pytest

from toolcell import CodeMode, Host
from toolcell.app import runtime
from toolcell.app.logsink import LogSink
from toolcell.app.masking import Masking
from toolcell.calls.redaction import NO_SECRETS
from toolcell.protocol.events import CallEnded, CallStarted, CellEnded, CellStepped
from toolcell.protocol.sink import FanOut, Guarded, NullSink, diagnostics_only


class Listening:
    """A sink of the surrounding program: it says nothing of what it takes, so it gets all."""

    def __init__(self):
        self.kinds = []

    def emit(self, event):
        self.kinds.append(type(event))


def test_several_sinks_are_as_quiet_as_the_most_curious_of_them():
    quiet = Masking(FanOut((NullSink(), Guarded(LogSink()))), NO_SECRETS)
    curious = Masking(FanOut((NullSink(), Guarded(Listening()))), NO_SECRETS)
    assert (diagnostics_only(quiet), diagnostics_only(curious)) == (True, False)


@pytest.mark.anyio
async def test_a_program_that_listens_gets_every_step_and_call():
    """rule 8.3: the record of a cell does not depend on who else listens."""

    async def one() -> int:
        return 1

    sink = Listening()
    async with CodeMode(tools=[one], executor="quickjs", host=Host(sink=sink)) as cm:
        assert (await cm.exec("return await one({})")).status == "completed"
    counts = {kind: sink.kinds.count(kind) for kind in (CallStarted, CallEnded, CellStepped)}
    assert counts == {CallStarted: 2, CallEnded: 2, CellStepped: 2}
    assert sink.kinds.count(CellEnded) == 1


@pytest.mark.anyio
async def test_a_program_that_does_not_listen_pays_for_no_record(monkeypatch):
    """The sink of a program that hands in none takes diagnostics; nothing else is made for it."""
    seen = []
    monkeypatch.setattr(LogSink, "emit", lambda _self, event: seen.append(type(event)))
    # A test before this one may have named a tracer, and a process cannot take that back.
    monkeypatch.setattr(runtime, "tracing", lambda _secrets: ())

    async def one() -> int:
        return 1

    async with CodeMode(tools=[one], executor="quickjs") as cm:
        assert (await cm.exec("return await one({})")).status == "completed"
    assert not {CallStarted, CallEnded, CellStepped} & set(seen)
