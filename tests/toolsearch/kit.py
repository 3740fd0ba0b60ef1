"""A run with Tool Search over tools of every source."""

import json
from contextlib import asynccontextmanager

from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.sessions.memory import MemorySessions
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool, core_tool

ANY = {"type": "object"}


class Told:
    """What tools were called with, by tool id."""

    def __init__(self):
        self.calls = []

    def of(self, name):
        return [given for called, given in self.calls if called == name]


def schema(**properties):
    """A closed object of strings and other simple types: `schema(q="integer")`."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "additionalProperties": False,
    }


def make(told, name, description="", parameters=None, *, result=None, **options):
    """A tool that takes down its arguments and gives them back, or `result`."""

    async def execute(arguments, context):
        told.calls.append((name, arguments))
        if callable(result):
            return await result(arguments, context)
        if result is not None:
            return result
        text = TextContent(json.dumps(arguments, separators=(",", ":")))
        return ToolResult(content=(text,), details=arguments)

    return Tool(
        name=name,
        description=description,
        parameters=ANY if parameters is None else parameters,
        execute=execute,
        **options,
    )


def core(told, name, description="", parameters=None, **options):
    return core_tool(make(told, name, description, parameters, **options))


def plugin(told, name, description="", parameters=None, *, owner="p", **options):
    tool = make(told, name, description, parameters, **options)
    return SourcedTool(tool=tool, source="openclaw", owner=owner, group=Group.EXTERNAL)


def mcp(told, name, description="", parameters=None, *, server="fx", **options):
    tool = make(told, name, description, parameters, **options)
    origin = McpOrigin(server=server, tool=name)
    return SourcedTool(tool=tool, source="mcp", owner=server, group=Group.MCP, mcp=origin)


def client(told, name, description="", parameters=None, *, app="app", **options):
    tool = make(told, name, description, parameters, **options)
    return SourcedTool(tool=tool, source="client", owner=app, group=Group.CLIENT)


class Fixed:
    """A source whose tools a test may change."""

    def __init__(self, tools):
        self.now = tuple(tools)
        self.version = 1

    def tools(self):
        return self.now

    def unavailable(self):
        return ()

    def become(self, tools):
        self.now = tuple(tools)
        self.version += 1

    async def start(self):
        pass

    async def aclose(self):
        pass


class Ground:
    """A run, and what it is made of."""

    def __init__(self, runtime, run, sessions, source):
        self.runtime = runtime
        self.run = run
        self.sessions = sessions
        self.source = source

    @property
    def plan(self):
        return self.run.surface().plan

    @property
    def shown(self):
        return [tool.name for tool in self.plan.visible]

    async def ask(self, name, call_id=None, /, **arguments):
        """Call a tool by the name a model uses, with these arguments."""
        return await self.run.call(name, arguments, call_id=call_id)

    async def say(self, name, arguments, call_id=None):
        return await self.run.call(name, arguments, call_id=call_id)

    async def code(self, code, call_id=None):
        return await self.run.call("tool_search_code", {"code": code}, call_id=call_id)

    async def nested(self):
        """Ids of nested calls in the record, in order."""
        await self.sessions.flush()
        records = await self.sessions.events(self.run.scope.session_id)
        return [r.call_id for r in records if r.type == "call_started" and r.parent_id]


@asynccontextmanager
async def ground(tools, mode="tools", *, prompt="", host=None, **config):
    """A started runtime with one run over `tools`."""
    tree = {"tools": {"toolSearch": {"mode": mode, **config.pop("search", {})}, **config}}
    sessions = MemorySessions()
    source = Fixed(tools)
    parts = Parts(sources=(source,), sinks=(sessions,), load_plugins=False)
    runtime = Runtime(parse_config(tree), parts, host or Host())
    await runtime.start()
    try:
        run = runtime.run(runtime.scope(session_id="s1"), prompt=prompt)
        yield Ground(runtime, run, sessions, source)
    finally:
        await runtime.aclose()


def text_of(result):
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def error_of(result):
    assert result.is_error, result
    return text_of(result)
