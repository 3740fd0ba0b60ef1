"""The example of the telemetry page runs."""

import re
import subprocess
import sys
from pathlib import Path

import toolcell

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = Path(toolcell.__file__).resolve().parents[1]


def test_the_example_of_the_telemetry_page_runs():
    page = (DOCS / "telemetry.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert run.stderr == ""
    assert run.stdout.split("\n")[:3] == ["execute_tool add", "toolcell.cell", "execute_tool exec"]
