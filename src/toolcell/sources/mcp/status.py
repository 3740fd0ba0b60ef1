"""Owns what an operator may ask of a server: `ServerStatus`, and the bounded log tail behind it.

Above: `toolcell doctor`, `McpSource.status`. Below: `sources.mcp.text`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolcell.sources.mcp.settings import Transport
from toolcell.sources.mcp.text import one_line

ServerState: TypeAlias = Literal["disabled", "starting", "ready", "retrying", "stopped"]
"""`retrying`: it failed or died, and is tried again with a growing pause."""

_LINES = 100
_LINE_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """One thing of a server that is not as it should be, and what was done about it.

    `outcome` is `rejected` (not published), `kept` (published without its bad schema) or
    `filtered` (left out by `include`, `exclude` or `max_tools`).
    """

    tool: str
    outcome: Literal["rejected", "kept", "filtered"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """One server at one moment.

    Attributes:
        name: Its raw configured name.
        transport: `stdio`, `streamable-http` or `sse`.
        state: Where it stands.
        server: Name and version it gives itself, such as `files 1.2`; empty before a handshake.
        protocol: The protocol revision agreed on; empty before a handshake.
        tool_count: Tools published.
        oddities: Rejected, repaired and filtered tools, with reasons.
        last_error: The latest failure; empty when there was none.
        log_tail: Its last log and stderr lines, oldest first.
        listings: How often its tools were listed since the program started.
        connects: How often it was connected to.
    """

    name: str
    transport: Transport
    state: ServerState
    server: str = ""
    protocol: str = ""
    tool_count: int = 0
    oddities: tuple[Oddity, ...] = ()
    last_error: str = ""
    log_tail: tuple[str, ...] = ()
    listings: int = 0
    connects: int = 0


class LogTail:
    """The last lines a server wrote: at most 100, of at most 500 characters."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES)

    def add(self, text: str) -> None:
        """Take one line; empty ones are left out."""
        line = one_line(text, _LINE_CHARACTERS)
        if line:
            self._lines.append(line)

    def lines(self, last: int = _LINES) -> tuple[str, ...]:
        """Return the newest `last` lines, oldest first."""
        return tuple(self._lines)[-last:] if last > 0 else ()
