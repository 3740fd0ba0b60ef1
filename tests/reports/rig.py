"""The fixture catalog of the public reports, and the two doors the tests go through.

`cells` opens `CodeMode`; `agent` opens a runtime whose agent plays a script. A cell is written
once, for the catalog API; with the tools API the same calls go through `tools.callValue`.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import anyio

from toolcell import CodeMode, Completed, Failed, Host, Waiting, tool
from toolcell.app.conversation import RunExtras, Turn, converse
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.store import SessionStore
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Tool

FIXTURE_SERVER = [sys.executable, "-m", "toolcell.testing.mcp_fixture"]
NAMED_SERVER = [sys.executable, str(Path(__file__).with_name("named_server.py"))]
NAMES = ("echo", "add", "slow", "boom", "count", "big", "write_note")


class Sum(TypedDict):
    sum: float


class Big(TypedDict):
    text: str


@dataclass
class World:
    """The fixture tools and what really ran."""

    ran: list[str] = field(default_factory=list)

    def count(self, name: str) -> int:
        return self.ran.count(name)

    def tools(self) -> list[Any]:
        ran = self.ran

        @tool(replay_safe=True)
        async def echo(v: Any = None) -> Any:
            """Give the value back."""
            ran.append("echo")
            return {"v": v}

        @tool
        async def add(a: float, b: float) -> Sum:
            """Add two numbers."""
            ran.append("add")
            return {"sum": a + b}

        @tool
        async def slow(ms: float, tag: str | None = None) -> Any:
            """Answer later."""
            ran.append("slow")
            await anyio.sleep(ms / 1000)
            return {"tag": tag}

        @tool
        async def boom(why: str) -> Any:
            """Always fail."""
            ran.append("boom")
            msg = f"boom: {why}"
            raise RuntimeError(msg)

        @tool
        async def count() -> Any:
            """Count up by one."""
            ran.append("count")
            return {"n": ran.count("count")}

        @tool
        async def big(n: int) -> Big:
            """Give a long text."""
            ran.append("big")
            return {"text": "x" * n}

        @tool
        async def write_note(path: str, body: str) -> Any:
            """Write a note."""
            ran.append("write_note")
            return {"path": path, "bytes": len(body)}

        return [echo, add, slow, boom, count, big, write_note]


def raw(name: str, parameters: Any = None, result: Any = None, **options: Any) -> Tool:
    """A tool with a schema of its own that answers `result`."""

    async def execute(_arguments, _context):
        return ToolResult(details=result)

    options.setdefault("description", f"The {name} tool.")
    return Tool(name=name, parameters=parameters or {"type": "object"}, execute=execute, **options)


def obj(**properties: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": properties}


def named_server(*tools: dict[str, Any]) -> dict[str, Any]:
    """An MCP server that lists exactly these entries and answers with the name that was called."""
    entries = [{"inputSchema": {"type": "object"}, **each} for each in tools]
    return {"command": NAMED_SERVER[0], "args": [*NAMED_SERVER[1:], json.dumps(entries)]}


def fixture_server(*flags: str) -> dict[str, Any]:
    return {"command": FIXTURE_SERVER[0], "args": [*FIXTURE_SERVER[1:], *flags]}


def shim(api: str, more: Sequence[str] = ()) -> str:
    """Let a cell of the tools API call tools as one of the catalog API does, on no extra line."""
    if api == "catalog":
        return ""
    calls = ", ".join(f"{n} = (x) => tools.callValue('openclaw:core:{n}', x)" for n in more)
    return f"const {calls}; " if more else ""


@dataclass
class Cells:
    """An open `CodeMode` with its fixture tools."""

    cm: Any
    world: World
    api: str

    async def exec(self, code: str, *names: str, **more: Any) -> Any:
        """Run a cell; `names` are the tools it calls by bare name."""
        return await self.cm.exec(shim(self.api, names) + code, **more)

    async def value(self, code: str, *names: str) -> Any:
        outcome = await self.exec(code, *names)
        assert isinstance(outcome, Completed), outcome
        return outcome.value

    async def failed(self, code: str, *names: str) -> Failed:
        outcome = await self.exec(code, *names)
        assert isinstance(outcome, Failed), outcome
        return outcome

    async def finish(self, outcome: Any, most: int = 20) -> Any:
        for _ in range(most):
            if not isinstance(outcome, Waiting):
                break
            outcome = await self.cm.wait(outcome.cell_id)
        return outcome


@asynccontextmanager
async def cells(
    guest=("quickjs", "catalog"), tools=None, *, mcp=None, host=None, config=None, **limits
):
    """Open `CodeMode` over the fixture tools, or over `tools`."""
    executor, api = guest
    world = World()
    tree = dict(config or {})
    tree["tools"] = {**tree.get("tools", {}), "codeMode": limits}
    code_mode = CodeMode(
        tools=world.tools() if tools is None else tools,
        mcp_servers=mcp,
        config=tree,
        executor=executor,
        guest_api=api,
        host=host,
    )
    async with code_mode as cm:
        yield Cells(cm, world, api)


@dataclass
class Agent:
    """A runtime whose agent plays scripts, and its record on disk."""

    runtime: Runtime
    sessions: SessionStore
    world: World
    store_path: Path
    session_id: str
    provider: ScriptedProvider | None = None

    async def turn(self, *steps: Any, agent_id="main", session=None, model="fixed/m", **more):
        """Play one turn; the last step is the answer; `more` are extras of the run."""
        self.provider = ScriptedProvider(steps)
        self.runtime.providers.add(model.partition("/")[0], self.provider)
        scope = self.runtime.scope(session_id=session or self.session_id, agent_id=agent_id)
        ask = Turn(scope=scope, prompt="go", model=model, extras=RunExtras(**more))
        with anyio.fail_after(30):
            return await converse(self.runtime, self.sessions, ask)

    def shown(self, request: int = 0) -> list[str]:
        """Names of the tools a request showed."""
        tools = self.provider.bodies[request].get("tools", ())
        return [each["function"]["name"] for each in tools]

    def definition(self, name: str) -> dict[str, Any]:
        (found,) = [
            each["function"]
            for each in self.provider.bodies[0]["tools"]
            if each["function"]["name"] == name
        ]
        return found

    def results(self) -> list[str]:
        """Texts of the tool results of the last request."""
        return [m["content"] for m in self.provider.bodies[-1]["messages"] if m["role"] == "tool"]

    async def reloaded_tree(self):
        """The calls as another process reads them from disk."""
        await self.sessions.flush()
        async with SessionStore(self.store_path) as again:
            return await again.tree(self.session_id)


@asynccontextmanager
async def agent(path, *, tools=None, mcp=None, sources=(), host=None, config=None, **code_mode):
    """Open a runtime with an agent; `code_mode` are keys of `tools.codeMode`."""
    world = World()
    tree = dict(config or {})
    if code_mode:
        code_mode.setdefault("executor", "quickjs")
        tree["tools"] = {**tree.get("tools", {}), "codeMode": code_mode}
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(SessionStore(path / "s.db"))
        parts = Parts(
            tools=world.tools() if tools is None else tools,
            mcp_servers=mcp or {},
            sources=sources,
            sinks=(sessions,),
            load_plugins=False,
        )
        runtime = Runtime(parse_config(tree), parts, host or Host())
        stack.push_async_callback(runtime.aclose)
        await runtime.start()
        yield Agent(runtime, sessions, world, path / "s.db", "s-1")


def cell(code: str, call_id: str = "c1") -> Any:
    """A scripted model's call of `exec`."""
    return tool_call("exec", {"code": code}, id=call_id)
