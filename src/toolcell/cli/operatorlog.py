"""Owns what commands that serve others write to stderr for their operator.

In the place of Python's logging, so that nothing is told twice.

Above: `toolcell gateway`, `toolcell mcp serve`. Below: `app.logsink`, `cli.console`.
"""

from __future__ import annotations

from toolcell.app.logsink import LogSink
from toolcell.cli.console import print_error, printable
from toolcell.protocol.events import Diagnostic


class OperatorLog(LogSink):
    """Writes warnings and errors as `toolcell: <level>: <subject>: <message>`."""

    def tell(self, event: Diagnostic) -> None:
        """Write one down; never raises."""
        if event.level != "info":
            print_error(f"{event.level}: {printable(event.subject)}: {printable(event.message)}")
