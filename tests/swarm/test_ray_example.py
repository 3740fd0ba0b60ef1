"""`examples/swarm.py` on two Ray workers of its own, one of them killed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "swarm.py"
pytestmark = [pytest.mark.timeout(150), pytest.mark.slow]


MARK = "TOOLCELL_TEST_OF_THE_EXAMPLE"


def played(*arguments):
    """Everything it starts, and what that starts, has `MARK` in its environment."""
    run = subprocess.run(
        [sys.executable, EXAMPLE, *arguments],
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
        env={**psutil.Process().environ(), MARK: "1"},
    )
    assert run.returncode == 0, run.stderr
    lines, _, value = run.stdout.partition("\n{")
    return lines, json.loads("{" + value), run.stderr


def test_a_killed_worker_costs_its_running_children_and_the_program_goes_on():
    """The decision gate and the race come after; Ray writes nothing and leaves nothing."""
    lines, value, errors = played("--backend", "ray", "--kill")
    assert errors == ""
    assert "raylet" not in lines
    killed = re.search(r">> kill -9 (\d+)", lines).group(1)
    assert (len(value["good"]), len(value["failed"])) == (4, 2)
    assert sum(f"in process {killed}" in report for report in value["good"]) == 1
    assert all(f"(pid {killed} on " in text for text in value["failed"])
    assert value["verdict"] == {"enough": True}
    assert value["first"].startswith("Sum up the quick way")
    assert "slow: cancelled" in lines
    assert [each.name() for each in psutil.process_iter() if marked(each)] == []


def marked(process):
    try:
        return MARK in process.environ()
    except psutil.Error:
        return False


def test_it_runs_in_one_process_too():
    lines, value, errors = played()
    assert errors == ""
    assert (len(value["good"]), value["failed"]) == (6, [])
    assert "slow: cancelled" in lines
