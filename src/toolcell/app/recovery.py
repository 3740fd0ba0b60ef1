"""Owns restart recovery: a turn that a restart cut off during `wait` is rebuilt (rule 3.13).

Nothing of a parked cell survives a restart. When the cell was restart-safe, the turn can go on all
the same: the model is shown the transcript as it stands, the call without an answer marked as
interrupted, and only audited read-only tools. Other turns are left alone: what they did is not
known to be safe to do again.

Above: `toolcell agent --recover`. Below: `app.conversation`, `sessions`.
"""

from __future__ import annotations

from typing import Any, Final

from toolcell.agent.contract import RunResult
from toolcell.app.conversation import Turn, converse
from toolcell.app.routes import RunExtras
from toolcell.app.runtime import Runtime
from toolcell.base.jsontext import loads
from toolcell.errors import SessionError
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions

_TURN: Final = ("run_started", "run_ended")


async def can_be_rebuilt(sessions: Sessions, session_id: str, *, run_id: str | None = None) -> bool:
    """Return whether the session's last run was cut off while a restart-safe cell was parked.

    Args:
        sessions: The record.
        session_id: The session.
        run_id: The run it must be, when not any.
    """
    records = await sessions.events(session_id, types=_TURN)
    started = [record for record in records if record.type == "run_started"]
    if not started:
        return False
    if run_id not in (None, started[-1].run_id):
        return False
    run_id = started[-1].run_id
    if any(r.type == "run_ended" and r.run_id == run_id for r in records):
        return False
    return _parked_safely(await sessions.history(session_id))


async def rebuild(
    runtime: Runtime, sessions: Sessions, scope: RunScope, *, model: str | None = None
) -> RunResult:
    """Run the cut-off turn of `scope`'s session again, from its transcript.

    Raises:
        SessionError: there is nothing to rebuild.
        ConfigError: no model is named.
    """
    if not await can_be_rebuilt(sessions, scope.session_id):
        msg = (
            f"session {scope.session_id!r} has no turn to rebuild: its last run ended, or was not "
            "waiting for a restart-safe cell"
        )
        raise SessionError(msg)
    turn = Turn(scope=scope, prompt=None, model=model, extras=RunExtras(replay_safe_only=True))
    return await converse(runtime, sessions, turn)


def _parked_safely(messages: tuple[Message, ...]) -> bool:
    """Whether the last answer of a tool is a waiting result that may be replayed."""
    for message in reversed(messages):
        if message.role == "tool":
            result = _first_json(message.text)
            return result.get("status") == "waiting" and result.get("replaySafe") is True
        if message.role == "user":
            return False
    return False


def _first_json(text: str) -> dict[str, Any]:
    """Return the envelope of a control's answer; wrapped text may follow it."""
    try:
        value = loads(text.split("\n", 1)[0])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
