"""Owns what a person or a script sees: data to stdout, progress and errors to stderr.

Above: every command. Below: `rich`. Progress shows on a terminal only; a pipe stays silent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcell.base.jsontext import dumps

PIPE_WIDTH = 200
DONE, FAILED, MISUSED = 0, 1, 2
"""Exit codes: the work is done; it failed; bad usage or config."""


def print_json(value: Any) -> None:
    """Write one compact JSON document and a newline to stdout; lone surrogates are escaped."""
    sys.stdout.write(dumps(value).encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Write plain text and a newline to stdout."""
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table to stdout; cells are plain text, never markup."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def print_error(message: str) -> None:
    """Write `toolcell: <message>` to stderr."""
    sys.stderr.write(f"toolcell: {message}\n".encode("utf-8", "backslashreplace").decode())


def printable(text: str) -> str:
    """Return text without control characters: names and descriptions may be hostile."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


class Progress:
    """Shows what is going on while somebody waits; silent unless stderr is a terminal."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Any = None

    @property
    def shown(self) -> bool:
        """Whether anybody sees it."""
        return self._console.is_terminal

    def say(self, text: str) -> None:
        """Show `text` as what goes on now."""
        if self._status is not None:
            self._status.update(escape(printable(text)))

    def show(self, tree: Any) -> None:
        """Show something that `rich` can draw, drawn anew as long as it is shown."""
        if self._status is not None:
            self._status.update(tree)

    def line(self, text: str) -> None:
        """Write a line to stderr, above what is shown; a reader that left is no failure."""
        with self.paused(), suppress(OSError, ValueError):
            sys.stderr.write(printable(text).encode("utf-8", "backslashreplace").decode() + "\n")

    def warn(self, text: str) -> None:
        """Write a warning to stderr, on a terminal or not: it must not get lost."""
        with self.paused():
            print_error(f"warning: {printable(text)}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the spinner away for the body of the `with` statement, so that one can type."""
        if self._status is None:
            yield
            return
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    @contextmanager
    def running(self, text: str) -> Iterator[Progress]:
        """Show a spinner with `text` for the body of the `with` statement."""
        if not self.shown:
            yield self
            return
        with self._console.status(escape(text)) as status:
            self._status = status
            try:
                yield self
            finally:
                self._status = None
