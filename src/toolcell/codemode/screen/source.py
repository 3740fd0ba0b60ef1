"""Owns what happens to a cell's source before anything starts: cleaned, or refused with advice.

Fast on purpose: a pattern over the text decides whether a tree is needed, so an ordinary cell is
never parsed here. Whether a program is well formed is the engine's word (`screen.diagnosis`
explains it afterwards).

Above: `codemode.runtime`. Below: the other files of this package, `tools.threads`, `errors`.
Refuses to know: executors, tools.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from toolcell.base.jsontext import utf8_length
from toolcell.codemode.screen.modules import module_access
from toolcell.codemode.screen.shape import LONE_FUNCTION, lone_function, without_fences
from toolcell.codemode.screen.shell import shell_text
from toolcell.errors import CellError
from toolcell.tools.threads import run_sync

MAX_SOURCE_BYTES: Final = 256 * 1024
"""No model writes more in one call, and reading more would take time no limit counts (EX-18)."""

QUICK_CHARACTERS: Final = 8192
"""Shorter sources are read at once, in a few milliseconds whatever they hold."""

TOO_LONG: Final = (
    "the cell has {size} bytes of source; at most {limit} are taken. Fetch data with a tool inside "
    "the cell instead of writing it into the program."
)


def screen(
    source: str, *, shell_call: str | None = None, search_call: str = "catalog.search"
) -> str:
    """Return the source to run.

    Args:
        source: What the model sent.
        shell_call: How a guest program calls the shell tool, where there is one.
        search_call: How a guest program finds a tool.

    Raises:
        CellError: `invalid_input`, phase `input`: too long, shell text, module access, or a lone
            function. Nothing was started.
    """
    program = cleaned(source)
    problem = shell_text(program, shell_call, search_call) or module_access(program, search_call)
    if problem is None and lone_function(program):
        problem = LONE_FUNCTION
    if problem is not None:
        raise _refused(problem)
    return program


def cleaned(source: str) -> str:
    """Return the source without Markdown fences.

    Raises:
        CellError: `invalid_input`, phase `input`: it is too long.
    """
    size = utf8_length(source)
    if size > MAX_SOURCE_BYTES:
        raise _refused(TOO_LONG.format(size=size, limit=MAX_SOURCE_BYTES))
    return without_fences(source)


async def screened(
    source: str, *, shell_call: str | None = None, search_call: str = "catalog.search"
) -> str:
    """Do what `screen` does, a long source in a thread: a hostile one takes a second to read.

    Raises:
        CellError: as `screen`.
    """
    work = partial(screen, source, shell_call=shell_call, search_call=search_call)
    return work() if len(source) <= QUICK_CHARACTERS else await run_sync(work)


def _refused(message: str) -> CellError:
    return CellError(message, code="invalid_input", phase="input")
