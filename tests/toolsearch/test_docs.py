"""docs/tool-search.md and docs/adapters.md: their programs run, their settings load."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolcell import ToolSearch, tool
from toolcell.config.load import parse_json5
from toolcell.config.parse import parse_config
from toolcell.config.resolve import tool_search_options
from toolcell.config.tool_search import ToolSearchOptions

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tool-search.md").read_text(encoding="utf-8")
ADAPTERS = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize(("page", "printed"), [(PAGE, "Crash"), (ADAPTERS, "0.75")])
def test_the_programs_run(page, printed):
    """rule 10.5: as they stand."""
    (program,) = blocks(page, "python")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert printed in done.stdout, done.stderr


def test_the_settings_load_and_are_the_defaults():
    """rule 10.1."""
    (text,) = blocks(PAGE, "json5")
    found = tool_search_options(parse_config(parse_json5(text, origin="docs")), "main")
    assert found == ToolSearchOptions(enabled=True, mode="tools")


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="the network lock is Linux's")
async def test_the_body_runs():
    """rule 10.2."""

    @tool
    async def create_issue(title: str) -> str:
        """Create an issue."""
        return title

    (body,) = blocks(PAGE, "js")
    async with ToolSearch(tools=[create_issue], mode="code") as search:
        result = await search.call("tool_search_code", {"code": body})
        assert result.details["value"]["result"]["details"] == "Crash on start"


def test_every_adapter_is_on_the_page_and_has_an_example():
    """The table is complete."""
    modules = {path.stem for path in (ROOT / "src/toolcell/adapters").glob("*.py")}
    modules -= {"__init__", "session", "missing"}
    assert {name for name in modules if f"adapters.{name}." in ADAPTERS} == modules
    assert len(list((ROOT / "examples" / "adapters").glob("*.py"))) == len(modules)
