"""Owns the six checks of the scenario (rule 10.8), each a sentence, a verdict and what was seen.

Above: the scenario. Below: `gateway_lane`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from toolcell.qa.fake_plugin import PLUGIN_ID, WANTED, other_names
from toolcell.qa.gateway_lane import LaneRun
from toolcell.qa.lanes import ANSWER

WANTED_ID: Final = f"openclaw:{PLUGIN_ID}:{WANTED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One verdict. `number` is its place in the list of the Tool Search page."""

    number: int
    sentence: str
    lane: str
    tools: int
    ok: bool
    seen: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "check": self.number,
            "sentence": self.sentence,
            "lane": self.lane,
            "tools": self.tools,
            "ok": self.ok,
            "seen": self.seen,
        }


def direct_checks(direct: LaneRun) -> Iterator[Check]:
    """Yield checks 1 and 3: what direct exposure does."""
    yield _check(1, "direct mode can call the fake plugin tool", direct, *_called(direct))
    wanted = {WANTED, *other_names(direct.tools)}
    missing = wanted - set(direct.shown)
    sentence = "direct mode gives the provider the fake plugin's schemas"
    yield _check(3, sentence, direct, not missing, f"{len(direct.shown)} schemas sent")


def lane_checks(run: LaneRun, direct: LaneRun) -> Iterator[Check]:
    """Yield checks 2, 4, 5 and 6 of one compact lane against direct exposure."""
    yield _check(2, "the same fake plugin tool can be called", run, *_called(run))
    expected = set(run.lane.shown or ())
    shown = _shown_beside_required(run)
    sentence = "only the controls and direct-only tools are shown"
    yield _check(4, sentence, run, shown == expected, ", ".join(sorted(run.shown)))
    yield _check(
        5,
        "the request is smaller",
        run,
        run.first_bytes < direct.first_bytes,
        f"{run.first_bytes} bytes instead of {direct.first_bytes}",
    )
    ok, seen = _recorded(run)
    yield _check(6, "the session's record shows the calls and the bridge's counts", run, ok, seen)


def _called(run: LaneRun) -> tuple[bool, str]:
    calls = run.use["calls"]
    wanted = {"tool": WANTED_ID, "source": "openclaw", "status": "completed"}
    if run.lane.through is not None:
        wanted["through"] = run.lane.through
    ok = calls == [wanted] and run.answer == ANSWER
    return ok, f"called {[call['tool'] for call in calls]}, answered {run.answer!r}"


def _shown_beside_required(run: LaneRun) -> set[str]:
    """Return what is shown; in directory mode without the bounded set of given schemas."""
    shown = set(run.shown)
    if run.use["mode"] != "directory":
        return shown
    given = shown - set(run.lane.shown or ())
    return shown if len(given) > MAX_GIVEN else shown - given


MAX_GIVEN: Final = 5 + 4
"""The core tools for files and the shell, and the likely ones (see `toolsearch.likely`)."""


def _recorded(run: LaneRun) -> tuple[bool, str]:
    use, lane = run.use, run.lane
    counts = {"searches": use["searches"], "describes": use["describes"]}
    expected = {"searches": lane.searches, "describes": lane.describes}
    ok = use["toolsUpFront"] == len(run.shown)
    if lane.searches is not None:
        ok = ok and counts == expected and use["catalogSize"] >= run.tools
    if lane.through is not None:
        nested = [each for each in run.nested if each.endswith(f":{WANTED}:1")]
        ok = ok and len(run.nested) == len(nested) == 1
    return ok, f"{use['toolsUpFront']} schemas up front, {counts}, nested {list(run.nested)}"


def _check(number: int, sentence: str, run: LaneRun, ok: bool, seen: str) -> Check:
    return Check(
        number=number,
        sentence=sentence,
        lane=run.lane.name,
        tools=run.tools,
        ok=ok,
        seen=seen[:400],
    )
