"""Owns `toolcell exec`: one cell against the configured tools, waiting until it is done.

Above: `cli.main`. Below: `cli.opening`, `app`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import anyio
from cyclopts import Parameter

from toolcell.app.run import Run
from toolcell.base.jsontext import dumps
from toolcell.cli.console import (
    DONE,
    FAILED,
    MISUSED,
    Progress,
    print_error,
    print_json,
    print_text,
)
from toolcell.cli.input import read_text
from toolcell.cli.opening import Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.codemode.results import Failed, Outcome, Waiting
from toolcell.config.overlay import with_code_mode
from toolcell.errors import ConfigError


def exec_(
    file: Annotated[
        str,
        Parameter(help="A JavaScript file, or - for standard input.", allow_leading_hyphen=True),
    ] = "-",
    *,
    code: Annotated[
        str | None,
        Parameter(name=["--code", "-c"], help="The program itself.", allow_leading_hyphen=True),
    ] = None,
    executor: Literal["quickjs", "node"] | None = None,
    guest_api: Literal["catalog", "tools"] | None = None,
    shared: Shared = SHARED,
) -> int:
    """Run one cell against the configured tools and wait until it is done.

    Prints the output and the value; with --json the contract's result as one document.
    """
    config = with_code_mode(shared.load(), executor=executor, guest_api=guest_api)
    source = _program(file, code)
    progress = Progress()

    async def run() -> Outcome:
        async with opened(config, Opening(), progress) as open_:
            scope = open_.runtime.scope(channel="cli")
            return await until_done(open_.runtime.run(scope), {"code": source})

    with progress.running("starting"):
        outcome = anyio.run(run)
    return _show(outcome, as_json=shared.json)


def _program(file: str, code: str | None) -> str:
    if code is None:
        return read_text(file, aside="a program can be given itself with --code")
    if file != "-":
        msg = f"there are two programs: the file {file!r} and --code; give one of them"
        raise ConfigError(msg)
    return code


async def until_done(run: Run, arguments: dict[str, Any]) -> Outcome:
    """Run a cell and resume it until it is no longer waiting; its output is put together."""
    outcome = await run.exec(arguments)
    pieces = list(outcome.output)
    while isinstance(outcome, Waiting):
        outcome = await run.wait({"runId": outcome.cell_id})
        pieces.extend(outcome.output)
    return replace(outcome, output=tuple(pieces))


def _show(outcome: Outcome, *, as_json: bool) -> int:
    failed = isinstance(outcome, Failed)
    code = FAILED if failed else DONE
    if isinstance(outcome, Failed) and outcome.phase == "input":
        code = MISUSED
    if as_json:
        print_json(outcome.to_dict())
        return code
    for entry in outcome.output:
        print_text(entry["text"] if entry["type"] == "text" else dumps(entry["value"]))
    if isinstance(outcome, Failed):
        print_error(outcome.error)
    elif outcome.status == "completed" and outcome.value is not None:
        value = outcome.value
        print_text(value if isinstance(value, str) else dumps(value))
    return code
