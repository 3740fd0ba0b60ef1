"""Owns runs that one session begins in another, looked after like every run of the gateway.

Above: `service`. Below: `runs`, `app.sending`. Refuses to know: HTTP.
"""

from __future__ import annotations

from toolcell.app.conversation import Turn
from toolcell.app.runtime import Runtime
from toolcell.app.sending import not_begun, sent_scope, settle
from toolcell.errors import ToolcellError
from toolcell.gateway.faults import ApiError
from toolcell.gateway.live import LiveRun
from toolcell.gateway.runs import RunDesk
from toolcell.protocol.scope import RunScope
from toolcell.sources.core.ports import SentTurn


class DeskSender:
    """Begins runs at the desk, so that its limits hold and no session has two at once."""

    def __init__(self, runtime: Runtime, runs: RunDesk) -> None:
        self._runtime = runtime
        self._runs = runs

    async def start(self, sender: RunScope, session_id: str, message: str) -> SentTurn:
        """Begin a run; see `SessionSender`."""
        scope = sent_scope(self._runtime, sender, session_id)
        try:
            live = await self._runs.start(Turn(scope=scope, prompt=message), listening=False)
        except ApiError as error:
            told = f"{error.message[:1].upper()}{error.message[1:]}."
            raise not_begun(told) from None
        turn = SentTurn(run_id=live.run_id)
        self._runtime.supervisor.start_soon(self._follow, live, turn, name="sent run")
        return turn

    async def _follow(self, live: LiveRun, turn: SentTurn) -> None:
        try:
            await live.ended()
        finally:
            if live.result is not None:
                settle(turn, live.result)
            elif isinstance(live.error, ToolcellError):
                turn.error = live.error.message
            else:
                turn.error = f"The run {live.status}."
            turn.done.set()
