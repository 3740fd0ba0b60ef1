"""Owns asking a person on the terminal before a call runs.

Above: `cli.opening`. Below: `protocol.approvals`, `cli.console`. Anything but a clear yes is a no.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import anyio.to_thread

from toolcell.base.jsontext import dumps
from toolcell.cli.console import Progress, printable
from toolcell.protocol.approvals import ApprovalAnswer, ApprovalRequest

MAX_SHOWN = 2000
TERMINAL = Path("/dev/tty")


class TerminalApprover:
    """Asks one question at a time on stderr and reads the answer from stdin."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._turn = anyio.Lock()

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer."""
        async with self._turn:
            with self._progress.paused():
                answer = await anyio.to_thread.run_sync(_ask, request, abandon_on_cancel=True)
        approved = answer.strip().lower() in {"y", "yes"}
        return ApprovalAnswer(approved=approved, reason="" if approved else "refused by the user")


def _ask(request: ApprovalRequest) -> str:
    shown = printable(dumps(dict(request.arguments)))[:MAX_SHOWN]
    sys.stderr.write(
        f"\n{request.tool_id} wants to run ({request.reason})\n  {shown}\nAllow? [y/N] "
    )
    sys.stderr.flush()
    if sys.stdin.isatty():
        return sys.stdin.readline()
    with TERMINAL.open(encoding="utf-8") as terminal:  # the program came in on standard input
        return terminal.readline()


def somebody_there(progress: Progress) -> bool:
    """Whether a person can be asked: stderr is a terminal, and so is stdin or there is a tty."""
    return progress.shown and (sys.stdin.isatty() or os.access(TERMINAL, os.R_OK))
