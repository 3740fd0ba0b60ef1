"""Owns what the gateway counts, and its text for Prometheus.

Labels have few values: no names of tools, sessions or models, which others may choose.

Above: `service`, the routes. Below: `protocol.events`, `base.clock`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import anyio

from toolcell.base.clock import Clock
from toolcell.protocol.events import (
    ApprovalAnswered,
    CallEnded,
    CellEnded,
    CellParked,
    CellStarted,
    Compacted,
    Diagnostic,
    Event,
    ModelCalled,
    RunEnded,
)

LAG_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Upper bounds of the event loop's lag, in seconds."""
MODEL_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
LAG_EVERY: Final = 0.05

Labels = tuple[tuple[str, str], ...]

HELP: Final[Mapping[str, str]] = {
    "toolcell_http_requests_total": "HTTP requests by route, method and status.",
    "toolcell_runs_ended_total": "Agent runs that ended, by how.",
    "toolcell_model_calls_total": "Model calls.",
    "toolcell_model_tokens_total": "Tokens, as the providers counted them.",
    "toolcell_model_request_bytes_total": "Bytes of model requests.",
    "toolcell_model_cost_dollars_total": "Cost of model calls, where it is known.",
    "toolcell_compactions_total": "Times a conversation was compacted, by why.",
    "toolcell_calls_total": "Tool calls that ended, nested and direct, by how.",
    "toolcell_cells_started_total": "Code cells started.",
    "toolcell_cells_parked_total": "Times a code cell was parked, by why.",
    "toolcell_cells_ended_total": "Code cells that ended, by how.",
    "toolcell_approvals_total": "Approvals answered, by the answer.",
    "toolcell_diagnostics_total": "Diagnostics by level.",
}


class Histogram:
    """Counts values into buckets."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield its lines."""
        total = 0
        for bound, count in zip(self._bounds, self._counts, strict=False):
            total += count
            yield f'{name}_bucket{{le="{bound:g}"}} {total}'
        total += self._counts[-1]
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


class Metrics:
    """A sink that counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: defaultdict[tuple[str, Labels], float] = defaultdict(int)
        self._lag = Histogram(LAG_BUCKETS)
        self._model = Histogram(MODEL_BUCKETS)

    def emit(self, event: Event) -> None:
        """Count an event."""
        match event:
            case CallEnded():
                nested = "nested" if event.parent_id is not None else "direct"
                self._add("toolcell_calls_total", status=event.status, made=nested)
            case ModelCalled():
                self._model_called(event)
            case Compacted():
                self._add("toolcell_compactions_total", trigger=event.trigger)
            case RunEnded():
                self._add("toolcell_runs_ended_total", status=event.status)
            case CellStarted():
                self._add("toolcell_cells_started_total")
            case CellParked():
                self._add("toolcell_cells_parked_total", reason=event.reason)
            case CellEnded():
                self._add("toolcell_cells_ended_total", code=event.code or "completed")
            case ApprovalAnswered():
                answer = "yes" if event.approved else "no"
                self._add("toolcell_approvals_total", answer=answer)
            case Diagnostic():
                self._add("toolcell_diagnostics_total", level=event.level)
            case _:
                pass

    def request(self, route: str, method: str, status: int) -> None:
        """Count an HTTP request."""
        known = method if method in {"GET", "POST"} else "other"
        self._add("toolcell_http_requests_total", route=route, method=known, status=str(status))

    async def watch_lag(self) -> None:
        """Measure the event loop's lag until cancelled."""
        while True:
            before = self._clock.monotonic()
            await anyio.sleep(LAG_EVERY)
            self._lag.add(max(self._clock.monotonic() - before - LAG_EVERY, 0.0))

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return everything in Prometheus' text format.

        Args:
            gauges: Further values, of this moment, by name.
        """
        return "\n".join([*self._lines(gauges), ""])

    def _lines(self, gauges: Mapping[str, float]) -> Iterator[str]:
        for name, about in HELP.items():
            yield f"# HELP {name} {about}"
            yield f"# TYPE {name} counter"
            for (counted, labels), value in sorted(self._counts.items()):
                if counted == name:
                    yield f"{name}{_labelled(labels)} {value}"
        for name, histogram in (
            ("toolcell_event_loop_lag_seconds", self._lag),
            ("toolcell_model_call_seconds", self._model),
        ):
            yield f"# TYPE {name} histogram"
            yield from histogram.lines(name)
        for name, gauge in gauges.items():
            yield f"# TYPE {name} gauge"
            yield f"{name} {gauge:g}"

    def _model_called(self, event: ModelCalled) -> None:
        self._add("toolcell_model_calls_total")
        self._model.add(event.duration_ms / 1000)
        bytes_name = "toolcell_model_request_bytes_total"
        self._counts[bytes_name, ()] += event.request_bytes
        tokens = "toolcell_model_tokens_total"
        self._counts[tokens, (("kind", "input"),)] += event.usage.input_tokens
        self._counts[tokens, (("kind", "output"),)] += event.usage.output_tokens
        if event.usage.cost is not None:
            self._counts["toolcell_model_cost_dollars_total", ()] += event.usage.cost

    def _add(self, name: str, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += 1


def _labelled(labels: Labels) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
