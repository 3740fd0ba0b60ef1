"""Owns `toolcell agent`: one message to an agent, and its answer.

Above: `cli.main`. Below: `app.conversation`, `cli.opening`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import anyio
from cyclopts import Parameter

from toolcell.agent.contract import RunResult
from toolcell.app.conversation import Turn, converse
from toolcell.app.recovery import rebuild
from toolcell.cli.calltree import tree_lines
from toolcell.cli.console import DONE, FAILED, Progress, print_error, print_json, print_text
from toolcell.cli.input import read_image, read_text
from toolcell.cli.opening import Opened, Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.errors import ConfigError
from toolcell.protocol.scope import DEFAULT_AGENT


@Parameter(name="*")
@dataclass(frozen=True)
class Said:
    """What you say.

    Attributes:
        message: The words; `-` reads them from standard input.
        image: A PNG, JPEG, GIF or WebP file to show with them; may be given again.
    """

    message: Annotated[
        str | None, Parameter(name=("--message", "-m"), allow_leading_hyphen=True)
    ] = None
    image: Annotated[list[str] | None, Parameter(negative="")] = field(default=None, kw_only=True)


NOTHING: Final = Said()


def agent(
    said: Said = NOTHING,
    *,
    recover: Annotated[bool, Parameter(negative="")] = False,
    session: str | None = None,
    agent_id: Annotated[str, Parameter(name="--agent")] = DEFAULT_AGENT,
    model: str | None = None,
    shared: Shared = SHARED,
) -> int:
    """Send one message to an agent and print its answer; the session is kept.

    Args:
        said: What you say.
        recover: Rebuild the turn of --session that a restart cut off while a restart-safe cell
            was parked; only audited read-only tools are offered.
        session: The session to continue; a new one when absent.
        agent_id: The agent.
        model: `provider/model`, instead of the agent's own.
        shared: Options of every command.
    """
    config = shared.load()
    progress = Progress()
    if recover:
        _check_recovered(said, session)
    prompt = None if recover else _prompt(said.message)
    images = tuple(read_image(file) for file in said.image or ())

    async def run() -> tuple[RunResult, dict[str, Any]]:
        opening = Opening(agent=agent_id, record=True)
        async with opened(config, opening, progress) as open_:
            scope = open_.runtime.scope(session_id=session, agent_id=agent_id, channel="cli")
            if recover:
                result = await rebuild(open_.runtime, open_.sessions, scope, model=model)
            else:
                turn = Turn(scope=scope, prompt=prompt, model=model, images=images)
                result = await converse(open_.runtime, open_.sessions, turn)
            return result, await _told(open_, scope.session_id)

    with progress.running("starting"):
        result, told = anyio.run(run)
    if shared.json:
        print_json({**_summary(result), **told})
    else:
        for line in tree_lines(told["calls"]):
            sys.stderr.write(line + "\n")
        if result.text or result.error is None:
            print_text(result.text)
    if result.error is not None and not shared.json:
        print_error(result.error.message)
    return DONE if result.status == "completed" else FAILED


def _check_recovered(said: Said, session: str | None) -> None:
    if session is None:
        raise ConfigError("--recover needs --session: which session to go on with")
    for name, given in (("--message", said.message is not None), ("--image", bool(said.image))):
        if given:
            msg = f"--recover goes on with what was said before; leave {name} out"
            raise ConfigError(msg)


def _prompt(message: str | None) -> str:
    if message and message.startswith("--") and not any(map(str.isspace, message)):
        msg = f"unknown option {message!r}; a message of that one word is read from '-m -'"
        raise ConfigError(msg)
    text = read_text(message) if message == "-" else message or ""
    if not text.strip():
        raise ConfigError('the message is empty; say something: toolcell agent "…"')
    return text


async def _told(open_: Opened, session_id: str) -> dict[str, Any]:
    await open_.sessions.flush()
    calls = [node.to_dict() for node in await open_.sessions.tree(session_id)]
    return {"session": session_id, "calls": calls}


def _summary(result: RunResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "text": result.text,
        "turns": result.turns,
        "usage": result.usage.to_dict(),
        "error": None if result.error is None else result.error.message,
    }
