"""A model behind HTTP, which workers reach by its address, and a runtime whose children ask it."""

import contextlib
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.swarm.kit import GO, Recorded
from toolcell.app.conversation import Turn, converse, with_children
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.jsontext import loads
from toolcell.config.parse import parse_config
from toolcell.protocol.messages import ToolCall
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.scripted_model import Answer, completion

KEY = "TOOLCELL_TEST_KEY"


async def echo(prompt, _body):
    return f"did {prompt}"


@dataclass
class HttpModel:
    """Plays the parent's steps when it is told `go`; answers children by `child(prompt, body)`.

    Attributes:
        running, most: Children whose model is at work, and the most there ever were.
        asked: What children were told, in order.
        gone: What those were told whose request was given up.
    """

    child: object = echo
    parent: list = field(default_factory=list)
    running: int = 0
    most: int = 0
    asked: list = field(default_factory=list)
    gone: list = field(default_factory=list)
    keys: set = field(default_factory=set)
    changed: anyio.Event = field(default_factory=anyio.Event)
    url: str = ""

    async def answer(self, request):
        body = await request.json()
        self.keys.add(request.headers.get("authorization"))
        prompts = [m["content"] for m in body["messages"] if m["role"] == "user"]
        if prompts[0] == GO:
            said = self.parent.pop(0) if self.parent else body["messages"][-1]["content"]
            return _reply(said)
        return await self._child(request, body, prompts[-1])

    async def _child(self, request, body, prompt):
        self.asked.append(prompt)
        self.running += 1
        self.most = max(self.most, self.running)
        self._tell()
        said = []

        async def work(group):
            said.append(await self.child(prompt, body))
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(work, group)
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                self.gone.append(prompt)
                group.cancel_scope.cancel()
        finally:
            self.running -= 1
            self._tell()
        return _reply(said[0] if said else "nobody listens")

    async def until(self, enough, seconds=30):
        """Wait until it is so; looked at again with every change, and now and then."""
        with anyio.fail_after(seconds):
            while not enough():
                with anyio.move_on_after(0.05):
                    await self.changed.wait()

    def _tell(self):
        self.changed.set()
        self.changed = anyio.Event()


def _reply(said):
    if isinstance(said, str):
        answer = Answer(text=said)
    else:
        answer = Answer(calls=(said,) if isinstance(said, ToolCall) else tuple(said))
    return JSONResponse(completion(answer, "m"))


@asynccontextmanager
async def served(model):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    model.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    app = Starlette(routes=[Route("/v1/chat/completions", model.answer, methods=["POST"])])
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none"
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext
    with contextlib.closing(listener):
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            try:
                yield model
            finally:
                server.should_exit = True


@dataclass
class OnRay:
    runtime: Runtime
    sessions: MemorySessions
    events: Recorded
    model: HttpModel

    @property
    def workers(self):
        return self.runtime.swarming.runner.elsewhere.workers

    async def go(self, *, session="s1", seconds=50, agent="main"):
        scope = self.runtime.scope(session_id=session, agent_id=agent, channel="cli")
        with anyio.fail_after(seconds):
            return await converse(
                self.runtime, self.sessions, Turn(scope=scope, prompt=GO, model="s/m")
            )

    async def outcome(self, code, **more):
        self.model.parent[:] = [tool_call("exec", {"code": code})]
        return loads((await self.go(**more)).text)

    async def value(self, code, **more):
        told = await self.outcome(code, **more)
        assert told["status"] == "completed", told
        return told["value"]

    def ends(self):
        """The last state of each child, and how often it was told that it runs."""
        last = {}
        for event in self.events.events:
            if type(event).__name__ == "ChildChanged":
                last[event.child_run_id] = event.state
        return list(last.values())


def tree_of(model, *, swarm=None, ray=None, backend="ray", **more):
    tools = more.pop("more_tools", {})
    given = {"enabled": True, "backend": backend, "ray": ray or {}, **(swarm or {})}
    code = {"enabled": True, "executor": "quickjs", "timeoutMs": 60_000}
    key = "${" + KEY + "}"
    return {
        "tools": {"codeMode": code, "swarm": given, **tools},
        "models": {"providers": {"s": {"baseUrl": model.url, "apiKey": key}}},
        **more,
    }


@asynccontextmanager
async def on_ray(child=echo, *, tools=(), host=None, parts=None, **more):
    model = HttpModel(child)
    async with served(model):
        sessions, events = MemorySessions(), Recorded()
        config = parse_config(tree_of(model, **more))
        given = Parts(
            tools=list(tools), sinks=(sessions, events), load_plugins=False, **(parts or {})
        )
        runtime = Runtime(config, given, host or Host())
        with_children(runtime)
        await runtime.start()
        try:
            yield OnRay(runtime, sessions, events, model)
        finally:
            await runtime.aclose()
