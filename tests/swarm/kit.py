"""A runtime whose models are functions, and a swarm whose children end by hand."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from toolcell.app.conversation import Turn, converse, with_children
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.jsontext import loads
from toolcell.config.parse import parse_config
from toolcell.config.swarm import SwarmOptions
from toolcell.protocol.messages import Message, ModelReply, ToolCall
from toolcell.protocol.scope import RunScope
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.swarm.ports import ChildOutcome, SpawnRules
from toolcell.swarm.swarm import Swarm
from toolcell.testing.clock import FakeClock

GO = "go"


class Recorded:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def reply(said):
    if isinstance(said, str):
        message = Message(role="assistant", text=said)
        return ModelReply(message=message, finish="stop", request_bytes=1)
    calls = (said,) if isinstance(said, ToolCall) else tuple(said)
    message = Message(role="assistant", tool_calls=calls)
    return ModelReply(message=message, finish="tool_calls", request_bytes=1)


async def echo(prompt, _request):
    for _ in range(20):  # as long as some others take to begin
        await checkpoint()
    return f"did {prompt}"


@dataclass
class Model:
    """Plays the parent's steps when it is told `go`; answers children by `child(prompt, request)`.

    Attributes:
        parent: What the parent's model says, in order; then its last tool result.
        child: An async function.
        running, most: Children whose model is at work, and the most there ever were.
    """

    parent: list
    child: object = echo
    running: int = 0
    most: int = 0
    asked: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    async def complete(self, request, **_options):
        prompts = [message.text for message in request.messages if message.role == "user"]
        self.requests.append(request)
        if prompts[0] == GO:
            return reply(self.parent.pop(0) if self.parent else request.messages[-1].text)
        self.asked.append(prompts[-1])
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return reply(await self.child(prompts[-1], request))
        finally:
            self.running -= 1

    async def aclose(self):
        pass

    def of_children(self):
        return [r for r in self.requests if all(m.text != GO for m in r.messages)]


@dataclass
class Opened:
    runtime: Runtime
    sessions: MemorySessions
    events: Recorded
    model: Model

    async def go(self, *, session="s1", seconds=30, agent="main"):
        scope = self.runtime.scope(session_id=session, agent_id=agent, channel="cli")
        with anyio.fail_after(seconds):
            return await converse(
                self.runtime, self.sessions, Turn(scope=scope, prompt=GO, model="s/m")
            )

    async def outcome(self, code, **more):
        """Run one cell in an agent run and return its result, waiting until it is over."""
        self.model.parent[:] = [tool_call("exec", {"code": code})]
        return loads((await self.go(**more)).text)

    async def value(self, code, **more):
        told = await self.outcome(code, **more)
        assert told["status"] == "completed", told
        return told["value"]


@asynccontextmanager
async def opened(
    child=echo, *, tools=(), sources=(), guest=("quickjs", "catalog"), host=None, **tree
):
    executor, api = guest
    swarm = tree.pop("swarm", {"enabled": True})
    more, kept = tree.pop("more_tools", {}), tree.pop("sessions", None)
    code = {"enabled": True, "executor": executor, "guestApi": api, **tree.pop("code", {})}
    config = parse_config({"tools": {"codeMode": code, "swarm": swarm, **more}, **tree})
    sessions, events, model = kept or MemorySessions(), Recorded(), Model([], child)
    parts = Parts(
        tools=list(tools),
        sources=sources,
        sinks=(sessions, events),
        sessions=sessions,
        load_plugins=False,
    )
    runtime = Runtime(config, parts, host or Host())
    runtime.providers.add("s", model)
    with_children(runtime)
    await runtime.start()
    try:
        yield Opened(runtime, sessions, events, model)
    finally:
        await runtime.aclose()


def scope(run="r1", session="s1", agent="main"):
    return RunScope(
        agent_id=agent, session_id=session, session_key=f"agent:{agent}:{session}", run_id=run
    )


class Runner:
    """Children that end when they are told to; `rules` is what everybody may."""

    def __init__(self, **options):
        given = {"enabled": True, **options}
        self.spawn_rules = SpawnRules(
            options=SwarmOptions(**given), allowed=("main", "worker"), default_agent="main"
        )
        self.begun = []
        self.cancelled = []
        self.gates = {}
        self.began = anyio.Event()

    def rules(self, _agent_id):
        return self.spawn_rules

    def model_problem(self, model):
        return None if model.startswith("s/") else "unknown provider"

    async def run(self, task):
        self.begun.append(task.prompt)
        self.began.set()
        gate = self.gates.setdefault(task.prompt, anyio.Event())
        try:
            await gate.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(task.prompt)
            raise
        return ChildOutcome(state="completed", text=f"did {task.prompt}")

    async def at_work(self, enough):
        while not enough():
            self.began = anyio.Event()
            await self.began.wait()

    async def finish(self, prompt):
        await self.at_work(lambda: prompt in self.begun)
        self.gates.setdefault(prompt, anyio.Event()).set()


class GroupSpawner:
    def __init__(self, group):
        self._group = group

    def start_soon(self, function, *args, **_name):
        self._group.start_soon(function, *args)


@asynccontextmanager
async def swarm_of(runner):
    events = Recorded()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            yield Swarm(runner, spawner=GroupSpawner(group), sink=events, clock=FakeClock()), events
            group.cancel_scope.cancel()
