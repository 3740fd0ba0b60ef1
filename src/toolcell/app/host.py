"""Owns `Host`: what the surrounding program lends a runtime.

Above: the library face, doors. Below: `protocol`, `base.clock`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcell.app.logsink import LogSink
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.catalog.search.searcher import Reranker
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
