"""The examples of the agent's and the sessions' pages run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import toolcell

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = Path(toolcell.__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("page", "prints"),
    [("agent.md", 'tool_calls {"code":"return 1"}'), ("sessions.md", "text='Hi'")],
)
def test_the_example_of_a_page_runs(page, prints):
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert run.stderr == ""
    assert prints in run.stdout
