"""Owns what guest programs see of swarm: `agents.run`, `phase`, `log`, and their declarations.

A call waits in its group's own queue, never in a slot of its cell. A cell that is given up gives up
its children; a restart-safe one finds them again when it is run anew (BEHAVIOURS 373).

Above: `app.run`. Below: `codemode.extensions.contract`, `swarm`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from toolcell.base.jsontext import Json, dumps
from toolcell.codemode.extensions.contract import (
    Answering,
    CellContext,
    GiveUp,
    GuestExtension,
    Queueing,
    Settle,
)
from toolcell.codemode.view import GuestView
from toolcell.errors import CallError
from toolcell.execution.contract import GuestScript
from toolcell.swarm.child import Child
from toolcell.swarm.request import read_request
from toolcell.swarm.swarm import Refusal, Swarm
from toolcell.tools.content import MISSING

DECLARATIONS: Final = "agents.d.ts"
_PRELUDE: Final = Path(__file__).parent / "prelude"
PROMPT: Final = (
    "Child agents: `await agents.run(prompt, {label, schema, agentId, model, thinking, phase})` "
    "starts an agent with a session of its own and gives its text, or with a JSON Schema the "
    "validated value; Promise.all fans out, more than may run at once wait in a queue. A failed "
    "child rejects with a SwarmAgentError {runId, status, message}. phase(title) and log(message) "
    "tell people how it goes. Use children for work that is worth an agent of its own; do one "
    "small task yourself. Agents: {agents}."
)


def swarm_extension(swarm: Swarm, agent_id: str) -> GuestExtension:
    """Return the extension for runs of `agent_id`."""

    def enter(arguments: list[Any], cell: CellContext, request_id: str, settle: Settle) -> GiveUp:
        asked = read_request("agents.run", *(arguments[:2] if len(arguments) > 1 else ("", {})))
        if isinstance(asked, str):
            raise CallError(asked, code="invalid_input", effect="none")
        key = None if cell.replay_id is None else f"{cell.replay_id}:{request_id}"
        child = swarm.spawn(cell.scope, asked, key=key)
        if isinstance(child, Refusal):
            code: Any = "blocked" if child.status == "forbidden" else "invalid_input"
            raise CallError(child.message, code=code, effect="none")
        return _followed(swarm, cell, child, settle, again=key is not None)

    def note(arguments: list[Any], cell: CellContext) -> Json:
        kind, text = (*arguments, None, None)[:2]
        if kind not in ("phase", "log") or not isinstance(text, str):
            msg = "a malformed bridge request was refused."
            raise CallError(msg, code="invalid_input", effect="none")
        swarm.note(cell.scope, cast("Any", kind), text)
        return None

    def prompt(_view: GuestView) -> str:
        return PROMPT.replace("{agents}", ", ".join(swarm.rules(agent_id).allowed))

    return GuestExtension(
        name="agents",
        script=_script(),
        handlers={"agentSpawn": Queueing(enter), "agentNote": Answering(note)},
        prompt=prompt,
        declarations=_declared,
    )


def _followed(
    swarm: Swarm, cell: CellContext, child: Child, settle: Settle, *, again: bool
) -> GiveUp:
    """Answer when `child` is over; given up, it ends, unless the cell may be run `again`."""

    def answer() -> str:
        cell.untrusted = cell.untrusted or child.untrusted
        return dumps(_answer(child))

    forget = child.when_over(lambda: settle(answer))

    def give_up() -> None:
        forget()
        if not again:
            swarm.cancel(child)

    return give_up


def _answer(child: Child) -> dict[str, Json]:
    outcome, failure = child.outcome, child.failure()
    if outcome is None or failure is not None:
        return {"ok": False, "runId": child.run_id, "status": child.state, "message": failure}
    value = outcome.text if outcome.value is MISSING else outcome.value
    return {"ok": True, "value": value}


@cache
def _script() -> GuestScript:
    return GuestScript("agents", (_PRELUDE / "agents.mjs").read_text(encoding="utf-8"))


@cache
def _text() -> str:
    return (_PRELUDE / DECLARATIONS).read_text(encoding="utf-8")


def _declared(_view: GuestView) -> Mapping[str, str]:
    return {DECLARATIONS: _text()}
