"""Owns telling diagnostics to Python's logging, for programs that hand in no sink of their own.

Above: `app.host`. Below: `protocol`. The logger is `toolcell`; a program that configures none sees
warnings and errors on stderr, as Python does by default.
"""

from __future__ import annotations

import logging
from typing import Final

from toolcell.protocol.events import Diagnostic, Event

CATALOG: Final = "catalog"
"""The subject of diagnostics about the tools a run has."""

MAX_LOGGED: Final = 1024

_LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_log: Final = logging.getLogger("toolcell")


class LogSink:
    """Logs diagnostics: a tool that was renamed, a server that is down, a hook that failed.

    What is to be said about a catalog is true of every run that has it, and is logged once.
    """

    diagnostics_only = True

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def emit(self, event: Event) -> None:
        """Log a diagnostic; other events are the record's."""
        if isinstance(event, Diagnostic) and not self._known(event):
            self.tell(event)

    def tell(self, event: Diagnostic) -> None:
        """Write one down."""
        _log.log(_LEVELS[event.level], "%s: %s", event.subject, event.message)

    def _known(self, event: Diagnostic) -> bool:
        if event.subject != CATALOG:
            return False
        if event.message in self._logged:
            return True
        if len(self._logged) >= MAX_LOGGED:
            self._logged.clear()
        self._logged.add(event.message)
        return False
