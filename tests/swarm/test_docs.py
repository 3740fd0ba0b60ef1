"""Every program of docs/swarm.md runs."""

import re
from pathlib import Path

import pytest

from tests.swarm.kit import opened
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs" / "swarm.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```javascript\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


async def child(prompt, request):
    owes = any(tool.name == "structured_output" for tool in request.tools)
    if owes and request.messages[-1].role == "user":
        return tool_call("structured_output", {"ok": False})
    return f"did {prompt}"


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
async def test_a_program_of_the_page_completes(number):
    """rule 11.1: fan-out, decision gate, first to finish, failures."""
    async with opened(child) as open_:
        assert await open_.value(PROGRAMS[number])


def test_the_page_has_its_programs():
    assert len(PROGRAMS) == 4
