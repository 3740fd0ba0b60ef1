"""Every example of the documentation runs: programs, cells and configs; and what the docs must say
stands in them (rule 14 of the contract)."""

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

import pytest

from toolcell import CodeMode, Completed, tool
from toolcell.config.load import parse_json5
from toolcell.config.parse import parse_config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {
    ("docs/gateway.md", "python"): "tests/gateway/test_docs.py",
    ("docs/mcp.md", "js"): "tests/sources/mcp/test_docs.py",
    ("docs/tool-search.md", "python"): "tests/toolsearch/test_docs.py",
    ("docs/tool-search.md", "js"): "tests/toolsearch/test_docs.py",
    ("docs/adapters.md", "python"): "tests/toolsearch/test_docs.py",
}
"""Pages whose examples need a gateway, a network lock or a server: the test that runs them."""

INSIDE = "cm."
"""How a fragment begins that stands inside `async with CodeMode(...) as cm:`."""


@dataclass(frozen=True)
class Example:
    page: str
    line: int
    text: str


def examples(language: str) -> list[Example]:
    found = []
    for page in PAGES:
        if (str(page.relative_to(ROOT)), language) in ELSEWHERE:
            continue
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match.group(1) == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Example(str(page.relative_to(ROOT)), line, match.group(2)))
    return found


def each(language: str):
    return pytest.mark.parametrize(
        "example", examples(language), ids=lambda e: f"{Path(e.page).name}:{e.line}"
    )


def test_pages_tested_elsewhere_are_named_there():
    for (page, _), test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize("page", sorted({e.page for e in examples("python")}))
def test_the_programs_of_a_page_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    """In a folder of their own; a fragment stands in a prepared block."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("example_program")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for example in examples("python"):
        if example.page == page:
            where = f"{example.page}:{example.line}"
            program = compile(prepared(example.text), where, "exec")
            exec(program, module.__dict__)  # noqa: S102 - it is what is tested


def prepared(text: str) -> str:
    if not text.startswith(INSIDE):
        return text
    indented = "".join(f"        {line}\n" for line in text.splitlines())
    return (
        "import anyio\nfrom toolcell import CodeMode\n"
        "def length(text: str) -> int: return len(text)\n"
        "async def main():\n    async with CodeMode(tools=[length], executor='quickjs') as cm:\n"
        f"{indented}anyio.run(main)\n"
    )


class Shipment(TypedDict):
    id: str
    paid: bool
    tons: float


@tool
async def shipping_list(status: Literal["open", "sent"] = "open") -> list[Shipment]:
    """List shipments."""
    return [{"id": f"{status}-{n}", "paid": n % 2 == 0, "tons": n * 5.0} for n in range(1, 5)]


@tool
async def remind(text: str) -> str:
    """Send a reminder."""
    return f"sent: {text}"


@each("js")
@pytest.mark.anyio
async def test_a_cell_completes(example):
    """With tools `shipping_list` and `remind` and the demo MCP server; `wait` until it is done."""
    api = "tools" if 'guestApi: "tools"' in example.text.splitlines()[0] else "catalog"
    mcp = {"warehouse": {"command": sys.executable, "args": ["-m", "toolcell.testing.demo_mcp"]}}
    async with CodeMode(
        tools=[shipping_list, remind],
        mcp_servers=mcp if "MCP" in example.text or "API" in example.text else None,
        executor="quickjs",
        guest_api=api,
    ) as cm:
        outcome = await cm.exec(example.text)
        while outcome.status == "waiting":
            outcome = await cm.wait(outcome.cell_id)
    assert isinstance(outcome, Completed), outcome
    assert outcome.value is not None or outcome.output


@each("json5")
def test_a_config_is_valid(example):
    parse_config(parse_json5(example.text, origin=example.page))


SAID = {
    "docs/code-mode.md": (
        "experimental",
        "not Codex Code Mode",
        "handful of tools",
        "one layer",
        "no security boundary",
        'alsoAllow: ["bundle-mcp"]',
        "two turns",
        "Where toolcell differs",
        "Debug logs of payloads may still hold prompt text",
        "trusted execution",
    ),
    "SECURITY.md": ("not a sandbox", "one layer", "High-risk", "prompt text"),
    "docs/engine.md": ("one layer", "time zone is UTC"),
    "README.md": ("Experimental", "not\nCodex Code Mode", "better served directly"),
}


@pytest.mark.parametrize("page", SAID)
def test_the_docs_say_what_they_must(page):
    """Section 14 of the contract, rule 1.3."""
    text = (ROOT / page).read_text("utf-8")
    missing = [words for words in SAID[page] if words not in text]
    assert not missing
