"""Owns runs that one session begins in another, where no gateway looks after runs.

Above: `app.conversation`, which lends it the turns. Below: `sources.core.ports`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from toolcell.agent.contract import RunResult
from toolcell.app.runtime import Runtime
from toolcell.errors import CallError, ToolcellError
from toolcell.protocol.scope import RunScope
from toolcell.sources.core.ports import SENT_CHANNEL, SentTurn

MAX_RUNNING: Final = 16
"""Runs begun by `sessions_send` at one time."""


class DirectSender:
    """Begins runs as children of the runtime; one at a time in each session.

    Args:
        runtime: What runs them.
        turns: Runs a turn of a session to its end.
    """

    def __init__(
        self, runtime: Runtime, turns: Callable[[RunScope, str], Awaitable[RunResult]]
    ) -> None:
        self._runtime = runtime
        self._turns = turns
        self._busy: set[str] = set()

    async def start(self, sender: RunScope, session_id: str, message: str) -> SentTurn:
        """Begin a run; see `SessionSender`."""
        if session_id in self._busy:
            message = f"Session {session_id!r} is answering another message; try again later."
            raise not_begun(message)
        if len(self._busy) >= MAX_RUNNING:
            message = f"{MAX_RUNNING} runs in other sessions go on; wait for some to end."
            raise not_begun(message)
        scope = sent_scope(self._runtime, sender, session_id)
        turn = SentTurn(run_id=scope.run_id)
        self._busy.add(session_id)
        self._runtime.supervisor.start_soon(
            self._run, scope, message, turn, name=f"run for session {session_id}"
        )
        return turn

    async def _run(self, scope: RunScope, message: str, turn: SentTurn) -> None:
        turn.error = "The run broke off."  # until it came to something else
        try:
            settle(turn, await self._turns(scope, message))
        except ToolcellError as error:
            turn.error = error.message
        except anyio.get_cancelled_exc_class():
            turn.error = "The run was cancelled."
            raise
        finally:
            self._busy.discard(scope.session_id)
            turn.done.set()


def sent_scope(runtime: Runtime, sender: RunScope, session_id: str) -> RunScope:
    """Return the scope of a run that answers `sender`: it acts for the same person, no more."""
    return runtime.scope(
        session_id=session_id,
        agent_id=sender.agent_id,
        channel=SENT_CHANNEL,
        sender=sender.sender,
    )


def settle(turn: SentTurn, result: RunResult) -> None:
    """Take over what a run came to."""
    turn.reply, turn.error = result.text, None
    if result.status != "completed":
        turn.error = "The run failed." if result.error is None else result.error.message


def not_begun(message: str) -> CallError:
    """Return the error for a run that was not begun."""
    return CallError(message, code="tool_error", effect="none")
