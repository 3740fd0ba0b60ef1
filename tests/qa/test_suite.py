"""The QA scenario of the Tool Search page, as an operator runs it."""

import json
from dataclasses import replace

import pytest

from toolcell.cli.main import run as toolcell
from toolcell.providers.scripted import tool_call
from toolcell.qa.lanes import DIRECT, LANES, TICKET
from toolcell.qa.tool_search_gateway import tool_search_gateway

pytestmark = pytest.mark.anyio
CODE, TOOLS = LANES[1], LANES[2]
REFERENCE_BYTES = {"tools": 36_349, "code": 34_505}
"""First request of the reference implementation with 43 tools."""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)


def test_the_scenario_holds_and_reports(tmp_path, capsys):
    """rule 10.8: the six checks over real HTTP, in every lane; exit code 0."""
    report = tmp_path / "report.json"
    words = ("qa", "suite", "--provider-mode", "mock-openai")
    words += ("--scenario", "tool-search-gateway-e2e", "--sizes", "43,120")
    code = toolcell((*words, "--report", str(report)))
    shown = capsys.readouterr().out
    assert code == 0, shown
    document = json.loads(report.read_text())
    assert document["ok"] is True
    assert {check["check"] for check in document["checks"]} == {1, 2, 3, 4, 5, 6}
    assert {row["lane"] for row in document["lanes"]} == {lane.name for lane in LANES}
    rows = {(row["lane"], row["tools"]): row for row in document["lanes"]}
    for lane, most in REFERENCE_BYTES.items():
        assert rows[lane, 43]["firstRequestBytes"] < most
        assert rows[lane, 43]["firstRequestBytes"] == rows[lane, 120]["firstRequestBytes"]
    assert "checks hold" in shown
    assert "first request, bytes" in shown


async def test_a_lane_that_does_something_else_fails_its_checks():
    """rule 10.8: the checks can fail, each for its own reason."""
    nothing = replace(CODE, name="nothing", steps=("I did nothing.",))
    leaking = replace(TOOLS, name="leaking", shown=("tool_search",))
    other = replace(
        TOOLS, name="other", steps=([tool_call("tool_call", {"id": "fake_nobody"})], "no")
    )
    same = replace(DIRECT, name="same", shown=("tool_search_code",))
    report = await tool_search_gateway((DIRECT, nothing, leaking, other, same), (5,))
    assert not report.ok
    failed = {(check.lane, check.number) for check in report.checks if not check.ok}
    assert failed == {
        ("nothing", 2),
        ("nothing", 6),
        ("leaking", 4),
        ("other", 2),
        ("other", 6),
        ("same", 4),
        ("same", 5),
    }


async def test_a_lane_that_cannot_run_is_a_failed_check():
    """rule 10.8: nothing that did not happen counts as passed."""
    broken = replace(CODE, name="broken", steps=())
    report = await tool_search_gateway((DIRECT, broken), (3,))
    (check,) = [check for check in report.checks if not check.ok]
    assert (check.lane, check.number) == ("broken", 2)
    assert check.seen


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--sizes", "many"), "positive numbers"),
        (("--sizes", "0"), "positive numbers"),
        (("--lanes", "fast"), "there is no lane 'fast'"),
    ],
)
def test_wrong_options_are_told(words, part, capsys):
    """Exit code 2 is for bad usage."""
    assert toolcell(("qa", "suite", *words)) == 2
    assert part in capsys.readouterr().err


def test_a_failed_check_is_exit_code_one(monkeypatch, capsys):
    """rule 10.8: non-zero exit when a check fails."""
    from toolcell.qa import checks  # noqa: PLC0415 - what is patched

    monkeypatch.setattr(checks, "WANTED_ID", "openclaw:fake:another")
    assert toolcell(("qa", "suite", "--sizes", "3", "--lanes", "tools", "--json")) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert TICKET["title"]
