"""The Python examples of the tool and plugin pages run as written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(text, id=f"{page}-{number}")
    for page in ("tools.md", "plugins.md")
    for number, text in enumerate(FENCE.findall((DOCS / page).read_text("utf-8")))
]


@pytest.mark.parametrize("text", BLOCKS)
def test_the_examples_run(text, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(text, encoding="utf-8")
    runpy.run_path(str(script), run_name="docs_example")


def test_the_pages_have_examples():
    assert len(BLOCKS) >= 4
