"""Owns `Host`: what the surrounding program lends a runtime.

Above: the library face, doors. Below: `protocol`, `base.clock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolcell.app.logsink import LogSink
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.catalog.search.searcher import Reranker
from toolcell.errors import ConfigError
from toolcell.protocol.approvals import Approver, NoApprover
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.sink import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Ports of the surrounding program.

    Attributes:
        hooks: Code that sees every call before and after it runs; None when it could not be had:
            every call is then refused (it fails closed).
        approver: Asks a person; without one, calls that need approval are refused.
        sink: Gets every event; without one, diagnostics go to Python's logger `toolcell`.
        clock: Tells the time.
        reranker: Puts search hits into an order of its own, with embeddings for example: gets the
            query and the hits, returns hits. None ships; one that raises fails that search only.
    """

    hooks: Hooks | None = field(default_factory=Hooks)
    approver: Approver = field(default_factory=NoApprover)
    sink: Sink = field(default_factory=LogSink)
    clock: Clock = SYSTEM_CLOCK
    reranker: Reranker | None = None

    def __post_init__(self) -> None:
        """Refuse what could only fail later, in the middle of a call.

        Raises:
            ConfigError: a port has not the shape it needs; the text names it.
        """
        if not isinstance(self.hooks, Hooks | None):
            _refuse("hooks", "must be Hooks(before=[...], after=[...])", self.hooks)
        for hooks in (self.hooks.before, self.hooks.after) if self.hooks else ():
            if not isinstance(hooks, Sequence):
                _refuse("hooks", "must hold lists of functions", hooks)
            for hook in hooks:
                if not callable(hook):
                    _refuse("hooks", "must hold functions", hook)
        if not _method(self.approver, "request"):
            _refuse("approver", "needs `async def request(self, request)`", self.approver)
        if not _method(self.sink, "emit"):
            _refuse("sink", "needs `def emit(self, event)`", self.sink)


def _method(port: object, name: str) -> bool:
    """Return whether an object, and not its class, has a method."""
    return not isinstance(port, type) and callable(getattr(port, name, None))


def _refuse(name: str, needs: str, given: object) -> None:
    what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    msg = f"Host({name}=...) {needs}, not {what}"
    raise ConfigError(msg)
