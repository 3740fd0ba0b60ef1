"""Owns the words for why a server failed: one line, for an operator, without its secrets.

Above: the connection. Below: the standard library.
"""

from __future__ import annotations

import re

from toolcell.sources.mcp.stdio import Exit
from toolcell.sources.mcp.text import one_line

# User information and query strings of an address may hold a token.
_SECRETS = re.compile(r"(?<=://)[^/@\s'\"]+@|\?[^\s'\"]*")


def reason_of(error: BaseException, ended: Exit | None = None) -> str:
    """Return why it failed; the first cause of a group, and how the process ended."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = _SECRETS.sub("", one_line(str(error), 300)) or type(error).__name__
    if ended is None or ended.code is None:
        return text
    if ended.code < 0:
        return f"{text}; the process was ended by signal {-ended.code}"
    return f"{text}; the process ended with code {ended.code}"
