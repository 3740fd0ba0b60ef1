"""Owns finding what children of earlier processes came to, in the record of their parent's session.

A child that ended is found with its last words, or the value it gave. One that has no end on record
was cut off with its process: that is told, not guessed at.

Above: `app.runtime`. Below: `sessions`, `swarm.ports`. Refuses to know: children that live.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.base.untrusted import OPENING
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import RunScope
from toolcell.sessions.contract import Sessions
from toolcell.sessions.records import Record, to_message
from toolcell.swarm.ports import ChildOutcome, EndState, Recalled
from toolcell.swarm.structured import NAME, given_value

CUT_OFF: Final = (
    "the process that ran it ended before it was over; start it again if it is still needed"
)
_ENDS: Final[Mapping[str, EndState]] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class ChildRecall:
    """Implements `Recall` over a session store."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def find(self, scope: RunScope, run_ids: Collection[str]) -> Sequence[Recalled]:
        """Return those of the ids that runs of `scope`'s session started.

        Raises:
            SessionError: the record cannot be read.
        """
        found: dict[str, Recalled] = {}
        for record in await self._sessions.events(scope.session_id, types=("child_changed",)):
            data = record.data()
            run_id = str(data.get("child_run_id"))
            if run_id in run_ids:
                found[run_id] = _moved(found.get(run_id), run_id, data, record)
        return [await self._with_result(each) for each in found.values()]

    async def _with_result(self, child: Recalled) -> Recalled:
        if child.outcome is None:
            return replace(child, outcome=ChildOutcome(state="failed", error=CUT_OFF))
        records = await self._sessions.events(child.session_id, types=("message",))
        messages = [to_message(each) for each in records if each.run_id == child.run_id]
        said = [each.text for each in messages if each.role == "assistant" and each.text]
        outcome = replace(
            child.outcome, text=said[-1] if said else "", untrusted=_read_outside(messages)
        )
        if child.gives != "text" and outcome.state == "completed":
            given = await self._given(child, messages)
            outcome = replace(outcome, value=given_value(given, child.gives))
        return replace(child, outcome=outcome)

    async def _given(self, child: Recalled, messages: Sequence[Message]) -> Any:
        """Return the arguments of the last `structured_output` call that was taken."""
        taken = [
            each
            for each in await self._sessions.tree(child.session_id)
            if each.run_id == child.run_id and each.tool_name == NAME and each.status == "completed"
        ]
        if not taken:
            return None
        last = taken[-1]
        if last.arguments != {**_as_mapping(last.arguments), "truncated": True}:
            return last.arguments
        # It was too long for the record of calls; messages are kept whole.
        calls = {c.id: c.arguments for message in messages for c in message.tool_calls}
        return _json(calls.get(last.call_id, "null"))


def _moved(known: Recalled | None, run_id: str, data: Mapping[str, Any], at: Record) -> Recalled:
    """Return a child after one more event of it."""
    child = known or Recalled(
        run_id=run_id,
        session_id=str(data.get("child_session_id")),
        agent_id=str(data.get("child_agent_id")),
        group_id=str(data.get("group_id")),
        label=data.get("label"),
        phase=data.get("phase"),
        gives=data.get("gives", "text"),
        queued_at=at.at,
    )
    state = data.get("state")
    if state == "running":
        return replace(child, started_at=at.at)
    end = _ENDS.get(str(state))
    if end is None:
        return child
    return replace(child, ended_at=at.at, outcome=ChildOutcome(state=end, error=data.get("error")))


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def _read_outside(messages: Sequence[Message]) -> bool:
    return any(OPENING in each.text for each in messages if each.role == "tool")
