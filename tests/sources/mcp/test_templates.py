"""Templates of a server that lists very many, or very long ones."""

import threading
from typing import Any

import pytest

from tests.sources.mcp.running import SCOPE
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.sources.mcp import templates
from toolcell.sources.mcp.calls import Caller
from toolcell.sources.mcp.templates import (
    MAX_READ,
    MAX_READ_IN_ALL,
    TemplateError,
    UriTemplate,
    filled_in,
)
from toolcell.sources.mcp.tools import Operation
from toolcell.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

# As long as one that is read may be, and as slow to read as its length allows.
SLOW = ("x:" + "".join(f"{{{a}{b}}}/" for a in "abcdefghi" for b in "abcdefghijklmnopqrstuvwxyz"))[
    : MAX_READ - 4
]
SLOW = SLOW[: SLOW.rindex("/")]


class Served:
    """A session of a server that answers with these pages."""

    def __init__(self, key: str, *pages: list[Any]) -> None:
        self._key = key
        self._pages = pages

    async def request(self, request: Any, _progress: Any) -> dict[str, Any]:
        number = int(request.params.cursor or 0)
        more = {"nextCursor": str(number + 1)} if number + 1 < len(self._pages) else {}
        return {self._key: self._pages[number], **more}


async def listed(operation: Operation, served: Any) -> Any:
    caller = Caller(
        server="fx",
        timeout=30,
        clock=SYSTEM_CLOCK,
        surrogates=True,
        live=lambda: served,
        suspect=lambda: None,
    )
    context = ToolContext(
        scope=SCOPE, call_id="c1", parent_id=None, deadline=None, update=lambda _: None
    )
    return (await caller.operation(operation, {}, context)).details


def template(text: str) -> dict[str, str]:
    return {"uriTemplate": text, "name": "n"}


def read(details: Any) -> list[int]:
    """Return the lengths of those that came with their variables."""
    found = details["resourceTemplates"]
    return [len(each["uriTemplate"]) for each in found if "variables" in each]


async def test_what_is_read_of_the_templates_of_a_listing_is_bounded() -> None:
    """Rule 8.5, MC-13: over all its pages; every template is listed, and the next listing reads."""
    served = Served("resourceTemplates", *([template(SLOW)] * 200 for _ in range(4)))
    for _ in range(2):
        details = await listed("resources.templates", served)
        assert len(details["resourceTemplates"]) == 800
        assert MAX_READ_IN_ALL - len(SLOW) < sum(read(details)) <= MAX_READ_IN_ALL
    assert len(details["resourceTemplates"][0]["variables"]) > 150
    assert details["resourceTemplates"][-1] == template(SLOW)
    unread = 800 - len(read(details))
    assert f"'variables' not listed for {unread} template(s)" in details["warning"]


async def test_a_long_template_is_listed_without_its_variables() -> None:
    """MC-13: it may be filled in by hand, and takes nothing from those that are read."""
    long = "x:{a}" + "b" * MAX_READ
    pages = [template(long)] * 400 + [template("x:{a}")]
    details = await listed("resources.templates", Served("resourceTemplates", pages))
    assert read(details) == [5]
    assert len(details["resourceTemplates"]) == 401
    assert "not listed for 400 template(s) of more than 1024" in details["warning"]


async def test_thousands_of_short_templates_all_have_their_variables() -> None:
    """BEHAVIOURS 225: the bound is for floods; a server that has many notes is no flood."""
    pages = [template(f"note://{number}/{{id}}") for number in range(9_000)]
    details = await listed("resources.templates", Served("resourceTemplates", pages))
    assert len(read(details)) == 9_000
    assert "warning" not in details


@pytest.mark.parametrize(
    ("operation", "key"),
    [
        ("resources.templates", "resourceTemplates"),
        ("resources.list", "resources"),
        ("prompts.list", "prompts"),
    ],
)
async def test_listings_are_read_off_the_event_loop(operation: Operation, key: str) -> None:
    """Rule 8.5: a page of thousands of items does not hold up what else goes on."""
    where: set[int] = set()

    class Spy(dict[str, Any]):
        def get(self, *given: Any) -> Any:
            where.add(threading.get_ident())
            return super().get(*given)

        def items(self) -> Any:
            where.add(threading.get_ident())
            return super().items()

    item = Spy(uriTemplate="x:{a}", uri="x:a", name="n")
    details = await listed(operation, Served(key, [item]))
    assert details[key][0]["name"] == "n"
    assert where
    assert threading.get_ident() not in where


@pytest.mark.parametrize("value", ["é" * 70_000, ["x"] * 70_000, ["x" * 40_000, "y" * 40_000]])
def test_values_too_long_for_a_uri_cost_no_work(value: Any, monkeypatch: Any) -> None:
    """rule 9.3: a program's megabytes are counted, not encoded, while others wait."""

    class Unexpanded(UriTemplate):
        def expand(self, *_: Any) -> str:
            pytest.fail("expanded")

    monkeypatch.setattr(templates, "UriTemplate", Unexpanded)
    with pytest.raises(TemplateError, match=r"hold \d+ characters; at most 65536 are sent"):
        filled_in("x://{a}", {"a": value})
