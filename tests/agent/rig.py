"""An agent on a scripted model with real tools, a real gate and a real session store."""

from dataclasses import dataclass, field

import anyio

from toolcell.agent.contract import AgentPorts, RunLimits, RunRequest, no_fallback
from toolcell.agent.gate_calls import gate_calls
from toolcell.agent.loop import run_agent
from toolcell.calls.gate import Gate
from toolcell.protocol.scope import RunScope
from toolcell.providers.scripted import ScriptedProvider
from toolcell.sessions.memory import MemorySessions
from toolcell.surface.plan import plan_direct
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, core_tool

ANY = {"type": "object", "additionalProperties": True}


def tool(name, execute, **options):
    return core_tool(Tool(name=name, description=name, parameters=ANY, execute=execute, **options))


async def echo(arguments, _context):
    return ToolResult(details=dict(arguments))


async def boom(_arguments, _context):
    raise ValueError("boom: it broke")


async def say(arguments, _context):
    return ToolResult(content=(TextContent(arguments["text"]),))


ECHO, BOOM, SAY = tool("echo", echo), tool("boom", boom), tool("say", say)


def scope(run="r1", session="s1"):
    return RunScope(agent_id="main", session_id=session, session_key=f"agent:{session}", run_id=run)


@dataclass
class Rig:
    steps: list
    tools: list = field(default_factory=lambda: [ECHO, BOOM, SAY])
    plan: object = None
    limits: RunLimits = field(default_factory=RunLimits)
    sessions: object = field(default_factory=MemorySessions)
    hooks: object = None
    fallback: object = no_fallback

    def __post_init__(self):
        self.provider = ScriptedProvider(self.steps)
        extra = {} if self.hooks is None else {"hooks": self.hooks}
        self.gate = Gate(sink=self.sessions, **extra)

    async def planned(self):
        return self.plan if self.plan is not None else plan_direct(self.tools)

    async def run(self, prompt="go", *, where=None, history=(), provider=None, **more):
        where = where or scope()
        ports = AgentPorts(
            provider=provider or self.provider,
            plan=self.planned,
            call_tool=gate_calls(self.gate, where),
            fallback=self.fallback,
            sink=self.sessions,
        )
        request = RunRequest(scope=where, model="m", prompt=prompt, history=history, **more)
        with anyio.fail_after(20):
            return await run_agent(request, ports, limits=self.limits)

    def sent(self, index=-1):
        return self.provider.bodies[index]["messages"]

    async def types(self):
        return [record.type for record in await self.sessions.events("s1")]
