"""A large catalog that is new is built once, off the event loop, for all who ask for it."""

import threading

import anyio
import anyio.lowlevel
import pytest

from toolcell.app.catalogs import BUILT_AT_ONCE, CatalogShelf
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.catalog.snapshot import CatalogSnapshot
from toolcell.config.parse import parse_config
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, core_tool

pytestmark = pytest.mark.anyio

LARGE = BUILT_AT_ONCE + 1


async def nothing(_arguments, _context):
    return ToolResult(content=(TextContent("ok"),))


def tools(count):
    return [
        Tool(name=f"t{each}", description="", parameters={"type": "object"}, execute=nothing)
        for each in range(count)
    ]


@pytest.fixture
def built(monkeypatch):
    """The threads that catalogs were built in, with how many tools."""
    seen, build = [], CatalogSnapshot.build

    def watched(given):
        given = tuple(given)
        seen.append((threading.get_ident(), len(given)))
        return build(given)

    monkeypatch.setattr(CatalogSnapshot, "build", watched)
    return seen


async def test_runs_that_ask_at_once_share_one_catalog_built_in_a_thread(built):
    config = parse_config({"tools": {"codeMode": {"enabled": True, "executor": "quickjs"}}})
    runtime = Runtime(config, Parts(tools=tools(LARGE), load_plugins=False), Host())
    await runtime.start()
    try:
        runs = [runtime.run(runtime.scope()) for _ in range(5)]
        async with anyio.create_task_group() as group:
            for run in runs:
                group.start_soon(run.plan)
        (one,) = built
        assert one[0] != threading.get_ident()
        assert one[1] > BUILT_AT_ONCE
        assert len({id(run.surface().catalog.snapshot) for run in runs}) == 1
        assert await runs[0].ready() is runs[0].surface()
    finally:
        await runtime.aclose()


async def test_a_small_catalog_is_built_where_it_is_asked_for(built):
    shelf, few = CatalogShelf(), tuple(map(core_tool, tools(3)))
    await shelf.ready(few)
    assert built == []
    assert shelf.snapshot(few) is shelf.snapshot(few)
    assert built == [(threading.get_ident(), 3)]


async def test_one_who_is_cancelled_leaves_the_building_to_the_next(built):
    shelf, many = CatalogShelf(), tuple(map(core_tool, tools(LARGE)))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as others, anyio.create_task_group() as first:
            first.start_soon(shelf.ready, many)
            await anyio.lowlevel.checkpoint()
            others.start_soon(shelf.ready, many)
            await anyio.lowlevel.checkpoint()
            first.cancel_scope.cancel()
    assert {count for _, count in built} == {LARGE}
    seen = len(built)
    shelf.snapshot(many)
    assert len(built) == seen


async def test_a_catalog_that_cannot_be_built_is_told_to_each_who_asks(monkeypatch):
    def broken(_tools):
        raise ValueError("broken")

    monkeypatch.setattr(CatalogSnapshot, "build", broken)
    shelf, many = CatalogShelf(), tuple(map(core_tool, tools(LARGE)))
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            await shelf.ready(many)
