"""Owns the scenario `tool-search-gateway-e2e` (rule 10.8): the same tools, offered in several ways.

Above: `toolcell qa suite`. Below: the lanes, the gateway lane, the checks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolcell.errors import ConfigError, ToolcellError
from toolcell.protocol.sink import Sink
from toolcell.qa.checks import Check, direct_checks, lane_checks
from toolcell.qa.gateway_lane import LaneRun, run_lane
from toolcell.qa.lanes import DIRECT, LANES, Lane
from toolcell.qa.tokens import estimator

NAME: Final = "tool-search-gateway-e2e"
SIZES: Final = (40, 300, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a scenario found: one row for each lane and size, and every check.

    Attributes:
        estimate: How tokens were estimated.
        rows: `{tools, lane, firstRequestBytes, firstRequestTokens, allRequestBytes, turns, calls}`.
        checks: Every check; lanes that could not run have a failed one.
    """

    estimate: str
    rows: tuple[dict[str, Any], ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "scenario": NAME,
            "providerMode": "mock-openai",
            "ok": self.ok,
            "tokenEstimate": self.estimate,
            "lanes": list(self.rows),
            "checks": [check.to_dict() for check in self.checks],
        }


def chosen_lanes(names: Sequence[str]) -> tuple[Lane, ...]:
    """Return the lanes of these names, direct exposure always among them; all without a name.

    Raises:
        ConfigError: there is no such lane.
    """
    known = {lane.name: lane for lane in LANES}
    for name in names:
        if name not in known:
            msg = f"there is no lane {name!r}; the lanes are {', '.join(known)}"
            raise ConfigError(msg)
    return tuple(lane for lane in LANES if not names or lane.name in names or lane is DIRECT)


async def tool_search_gateway(
    lanes: Sequence[Lane],
    sizes: Sequence[int] = SIZES,
    *,
    say: Callable[[str], None] = lambda _: None,
    sinks: tuple[Sink, ...] = (),
) -> Report:
    """Run every lane at every size.

    Args:
        lanes: `DIRECT` first.
        sizes: How many tools the fake plugin has.
        say: Told what is being run.
        sinks: Who gets events too.
    """
    name, estimate = estimator()
    rows: list[dict[str, Any]] = []
    checks: list[Check] = []
    for size in sizes:
        direct: LaneRun | None = None
        for lane in lanes:
            say(f"{lane.name} with {size} tools")
            try:
                with tempfile.TemporaryDirectory(prefix="toolcell-qa-") as folder:
                    run = await run_lane(lane, size, Path(folder), sinks)
            except (ToolcellError, TimeoutError) as error:
                checks.append(_broken(lane, size, error))
                continue
            if lane is DIRECT:
                direct = run
                checks += direct_checks(run)
            elif direct is not None:
                checks += lane_checks(run, direct)
            rows.append(_row(run, estimate))
    return Report(estimate=name, rows=tuple(rows), checks=tuple(checks))


def _row(run: LaneRun, estimate: Callable[[bytes], int]) -> dict[str, Any]:
    return {
        "tools": run.tools,
        "lane": run.lane.name,
        "firstRequestBytes": run.first_bytes,
        "firstRequestTokens": estimate(run.bodies[0]),
        "allRequestBytes": sum(map(len, run.bodies)),
        "turns": len(run.bodies),
        "calls": len(run.use["calls"]),
    }


def _broken(lane: Lane, size: int, error: BaseException) -> Check:
    return Check(
        number=1 if lane is DIRECT else 2,
        sentence="the lane runs to its end",
        lane=lane.name,
        tools=size,
        ok=False,
        seen=str(error) or type(error).__name__,
    )
