"""What is made once for each catalog is not made again for each run (a turn is a run)."""

import logging

import pytest

from toolcell.app.host import Host
from toolcell.app.logsink import LogSink
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.protocol.events import Diagnostic
from toolcell.surface import plan as surface_plan
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Tool, core_tool

pytestmark = pytest.mark.anyio

DIRECT = {"codeMode": {"enabled": False}}


async def nothing(_arguments, _context):
    return ToolResult(details={})


def tool(name):
    return Tool(name=name, description=name, parameters={"type": "object"}, execute=nothing)


class Changing:
    """A source whose tools are named from outside."""

    def __init__(self, *names):
        self.version = 0
        self.name(*names)

    def name(self, *names):
        self.version += 1
        self._tools = tuple(core_tool(tool(name)) for name in names)

    def tools(self):
        return self._tools

    def unavailable(self):
        return ()

    async def start(self):
        pass

    async def aclose(self):
        pass


async def shown(runtime, agent="main"):
    run = runtime.run(runtime.scope(agent_id=agent))
    names = [visible.name for visible in run.surface().plan.visible]
    await runtime.end(run)
    return names


def made(source, tools=DIRECT, **more):
    return Runtime(
        parse_config({"tools": tools, **more}), Parts(sources=(source,), load_plugins=False), Host()
    )


async def test_a_second_run_goes_through_no_schema_and_no_policy_again(monkeypatch):
    schemas, asked = [], []
    prepared, allows = surface_plan.provider_schema, "toolcell.app.effective.allows"
    monkeypatch.setattr(
        surface_plan, "provider_schema", lambda given: schemas.append(given) or prepared(given)
    )
    monkeypatch.setattr(allows, lambda _policy, sourced: asked.append(sourced) or True)
    runtime = made(Changing("a", "b"))
    await runtime.start()
    assert await shown(runtime) == ["a", "b"]
    counted = len(schemas), len(asked)
    assert counted[0] == 2
    assert counted[1] >= 2
    assert await shown(runtime) == ["a", "b"]
    assert (len(schemas), len(asked)) == counted
    await runtime.aclose()


async def test_a_changed_source_is_seen_by_the_next_run():
    source = Changing("a")
    runtime = made(source)
    await runtime.start()
    assert await shown(runtime) == ["a"]
    source.name("a", "b")
    assert await shown(runtime) == ["a", "b"]
    source.name("b")
    assert await shown(runtime) == ["b"]
    await runtime.aclose()


async def test_each_agent_keeps_its_own_policy():
    agents = {"entries": {"main": {}, "narrow": {"tools": {"deny": ["a"]}}}}
    runtime = made(Changing("a", "b"), agents=agents)
    await runtime.start()
    for _ in range(2):
        assert await shown(runtime) == ["a", "b"]
        assert await shown(runtime, "narrow") == ["b"]
    await runtime.aclose()


def told(subject, message):
    return Diagnostic(at=0.0, level="warning", subject=subject, message=message)


def test_words_about_a_catalog_are_logged_once_and_others_each_time(caplog):
    sink = LogSink()
    with caplog.at_level(logging.WARNING, logger="toolcell"):
        for _ in range(3):
            sink.emit(told("catalog", "tool 'x' was renamed"))
            sink.emit(told("model", "another answers"))
        sink.emit(told("catalog", "tool 'y' was renamed"))
    assert caplog.messages.count("catalog: tool 'x' was renamed") == 1
    assert caplog.messages.count("catalog: tool 'y' was renamed") == 1
    assert caplog.messages.count("model: another answers") == 3


@pytest.mark.parametrize("mode", [DIRECT, {"codeMode": {"enabled": True, "executor": "quickjs"}}])
async def test_runs_share_what_they_are_shown(mode):
    runtime = made(Changing("a", "b"), mode)
    await runtime.start()
    first, second = (runtime.run(runtime.scope()) for _ in range(2))
    assert first.surface().catalog.snapshot is second.surface().catalog.snapshot
    if mode is DIRECT:
        assert first.surface().plan is second.surface().plan
    await runtime.aclose()


async def test_the_schemas_of_the_controls_are_made_once(monkeypatch):
    schemas = []
    prepared = surface_plan.provider_schema
    monkeypatch.setattr(
        surface_plan, "provider_schema", lambda given: schemas.append(given) or prepared(given)
    )
    surface_plan._control_schema.cache_clear()
    runtime = made(Changing("a"), {"codeMode": {"enabled": True, "executor": "quickjs"}})
    await runtime.start()
    assert await shown(runtime) == ["exec", "wait"]
    assert len(schemas) == 2
    assert await shown(runtime) == ["exec", "wait"]
    assert len(schemas) == 2
    await runtime.aclose()
