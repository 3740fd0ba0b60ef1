"""Owns telling diagnostics to Python's logging, for programs that hand in no sink of their own.

Above: `app.host`. Below: `protocol`. The logger is `toolcell`; a program that configures none sees
warnings and errors on stderr, as Python does by default.
"""

from __future__ import annotations

import logging
from typing import Final

from toolcell.protocol.events import Diagnostic, Event

_LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_log: Final = logging.getLogger("toolcell")


class LogSink:
    """Logs diagnostics: a tool that was renamed, a server that is down, a hook that failed."""

    def emit(self, event: Event) -> None:
        """Log a diagnostic; other events are the record's."""
        if isinstance(event, Diagnostic):
            _log.log(_LEVELS[event.level], "%s: %s", event.subject, event.message)
