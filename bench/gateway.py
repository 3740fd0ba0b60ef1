"""The gateway under load from a second process, as ratios against what is measured beside it.

Run: python bench/gateway.py [--quick]
Prints one JSON line per figure: what, value, the target, and whether it holds; the machine's load first.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import anyio
import httpx
import psutil

TOKEN = "bench-token-0123456789"
CALLS = 10


def show(what, value, target=None, unit="ms", **more):
    holds = None if target is None else value <= target
    line = {"what": what, "value": round(value, 3), "unit": unit, "target": target, "holds": holds}
    print(json.dumps({**line, **more}), flush=True)


# The server's side.


class Model:
    """Decides by what the user said last, without any latency of its own."""

    def __init__(self, released):
        self.released = released

    async def complete(self, request, *, check_payload=None, on_text=None):
        from toolcell.protocol.messages import Message, ModelReply
        from toolcell.providers.body import encode
        from toolcell.providers.openai_body import chat_body

        body = chat_body(request)
        if check_payload is not None:
            check_payload(body)
        said = self.say(request)
        text, calls = (said, ()) if isinstance(said, str) else ("", tuple(said))
        if on_text is not None and text:
            on_text(text)
        message = Message(role="assistant", text=text, tool_calls=calls)
        finish = "tool_calls" if calls else "stop"
        return ModelReply(message=message, finish=finish, request_bytes=len(encode(body)))

    def say(self, request):
        from toolcell.providers.scripted import tool_call

        last = request.messages[-1]
        prompt = next(m.text for m in reversed(request.messages) if m.role == "user")
        code = any(tool.name == "wait" for tool in request.tools)
        if prompt == "calls":
            if last.role != "user":
                return "done"
            if not code:
                return [tool_call("noop", {"i": i}) for i in range(CALLS)]
            each = f"Array.from({{length: {CALLS}}}, (_, i) => noop({{i}}))"
            return [tool_call("exec", {"code": f"return (await Promise.all({each})).length"})]
        if prompt == "cell":
            return "done" if last.role != "user" else [tool_call("exec", {"code": "return 1 + 1"})]
        if prompt == "park":
            return self.park(request, last, tool_call)
        if prompt == "release":
            self.released.set()
        return "hello"

    def park(self, request, last, tool_call):
        if last.role == "user":
            return [tool_call("exec", {"code": "await yield_control('hold'); return 'kept'"})]
        if "too many suspended" in last.text:
            return "refused"
        if '"status":"waiting"' in last.text:
            return [tool_call("hold", {})]
        if '"status":"completed"' in last.text:
            return "kept" if '"value":"kept"' in last.text else "odd: " + last.text
        if last.text == "released":
            parked = next(m.text for m in request.messages if '"status":"waiting"' in m.text)
            return [tool_call("wait", {"runId": json.loads(parked)["runId"]})]
        return "odd: " + last.text

    async def aclose(self):
        pass


async def serve(mode):
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from toolcell.config.parse import parse_config
    from toolcell.gateway import server as gateway_server
    from toolcell.gateway.server import serving, settle_memory, told_to_stop
    from toolcell.gateway.service import ServiceParts, opened_service
    from toolcell.tools.content import TextContent, ToolResult
    from toolcell.tools.tool import Tool

    released = asyncio.Event()

    async def noop(arguments, context):
        return ToolResult(content=(TextContent("ok"),), details={"ok": True})

    async def hold(arguments, context):
        await released.wait()
        return ToolResult(content=(TextContent("released"),))

    schema = {"type": "object", "properties": {"i": {"type": "integer"}}}
    tools = [
        Tool(name="noop", description="Do nothing.", parameters=schema, execute=noop),
        Tool(
            name="hold",
            description="Wait.",
            parameters=schema,
            execute=hold,
            catalog_mode="direct-only",
        ),
    ]
    limits = {"requestsPerMinute": 10_000_000, "maxRuns": 1000, "drainSeconds": 5}
    with tempfile.TemporaryDirectory() as folder:
        tree = {
            "agents": {"defaults": {"model": "bench/m"}},
            "tools": {
                "codeMode": {"enabled": mode != "direct", "executor": "quickjs", "timeoutMs": 60000}
            },
            "sessions": {"path": f"{folder}/sessions.db"},
            "gateway": {"port": 0, "token": TOKEN, "limits": limits},
            "plugins": {"entryPoints": False},
        }
        if mode == "bare":

            async def hello(request):
                body = await request.json()
                return JSONResponse({"model": body["model"], "choices": [{"text": "hello"}]})

            bare = Starlette(routes=[Route("/v1/chat/completions", hello, methods=["POST"])])
            gateway_server.gateway_app = lambda _service: bare
        parts = ServiceParts(tools=tools, core=False)
        with told_to_stop() as told:
            async with opened_service(parse_config(tree), parts) as service:
                service.runtime.providers.add("bench", Model(released))
                async with serving(service) as url:
                    settle_memory()
                    print(json.dumps({"url": url}), flush=True)
                    await told()


# The client's side.


class Server:
    def __init__(self, mode):
        self.child = subprocess.Popen(
            [sys.executable, __file__, "serve", mode], stdout=subprocess.PIPE, text=True
        )
        self.url = json.loads(self.child.stdout.readline())["url"]
        self.process = psutil.Process(self.child.pid)
        limits = httpx.Limits(max_connections=400, max_keepalive_connections=400)
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=300,
            limits=limits,
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()
        self.child.terminate()
        self.child.wait(timeout=60)

    async def ask(self, prompt):
        body = {"model": "main", "messages": [{"role": "user", "content": prompt}]}
        got = await self.http.post("/v1/chat/completions", json=body)
        if got.status_code != 200:
            raise SystemExit(f"{prompt}: {got.status_code} {got.text}")
        return got.json()

    async def said(self, prompt):
        return (await self.ask(prompt))["choices"][0]["message"]["content"]

    async def median(self, prompt, runs, warm=20):
        for _ in range(warm):
            await self.ask(prompt)
        took = []
        for _ in range(runs):
            start = time.perf_counter()
            await self.ask(prompt)
            took.append((time.perf_counter() - start) * 1000)
        return statistics.median(took)

    async def many(self, prompt, count, at_once):
        left = iter(range(count))

        async def worker():
            for _ in left:
                await self.ask(prompt)

        start = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(worker)
        return count / (time.perf_counter() - start)

    def cpu(self):
        """Return the seconds of processor time used so far."""
        times = self.process.cpu_times()
        return times.user + times.system

    async def lag(self):
        """Return the cumulative lag buckets, by upper bound in seconds."""
        text = (await self.http.get("/metrics")).text
        name = "toolcell_event_loop_lag_seconds_bucket"
        rows = [line.split('"') for line in text.splitlines() if line.startswith(name)]
        return {float(row[1].replace("+Inf", "inf")): int(row[2].split()[1]) for row in rows}


def p99(before, after):
    """Return the bucket (ms) that 99 % of the lags between two readings are in."""
    counts = {bound: after[bound] - before[bound] for bound in after}
    total = counts[float("inf")]
    return next(bound for bound in sorted(counts) if counts[bound] >= 0.99 * total) * 1000


async def latencies(quick):
    """Medians, measured in turn, so that a busy machine slows all of them alike."""
    runs = 80 if quick else 400
    async with Server("bare") as bare, Server("direct") as direct, Server("code") as code:
        servers = {"bare": bare, "direct": direct, "code": code}
        asked = [("bare", "hello"), ("code", "hello"), ("direct", "calls"), ("code", "calls")]
        times = {each: [] for each in asked}
        for number in range(runs + 30):
            for mode, prompt in asked:
                start = time.perf_counter()
                await servers[mode].ask(prompt)
                if number >= 30:
                    times[mode, prompt].append((time.perf_counter() - start) * 1000)
        took = {each: statistics.median(found) for each, found in times.items()}
    show("bare Starlette, one request", took["bare", "hello"])
    show("gateway, a turn without tools", took["code", "hello"])
    show(
        "gateway against bare Starlette",
        took["code", "hello"] / took["bare", "hello"],
        unit="ratio",
    )
    show(f"direct turn, {CALLS} calls in one batch", took["direct", "calls"])
    show(f"code mode turn, one cell of {CALLS} calls", took["code", "calls"])
    show("code mode against direct", took["code", "calls"] / took["direct", "calls"], 2, "ratio")


async def crowd(quick):
    """200 sessions, each with a turn every 2 seconds; 64 of them keep a suspended cell meanwhile.

    An idle gateway beside it shows what lag the machine gives to a process that does nothing.
    """
    sessions, turns = 200, 3 if quick else 12
    async with Server("code") as server, Server("code") as idle:
        await server.median("cell", 10)
        before, idle_before = await server.lag(), await idle.lag()
        cpu = server.cpu()
        answers, done = [], 0

        async def one(number):
            nonlocal done
            await anyio.sleep(number / sessions * 2)
            said = await server.said("park")
            if said == "refused":
                for _ in range(turns):
                    await anyio.sleep(2)
                    if await server.said("calls") != "done":
                        raise SystemExit("a turn of a crowd failed")
                done += 1
                if done == sessions - 64:
                    await server.said("release")
            answers.append(said)

        start = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(sessions):
                tasks.start_soon(one, number)
        took = time.perf_counter() - start
        used = server.cpu() - cpu
        after, idle_after = await server.lag(), await idle.lag()
    kept, refused = answers.count("kept"), answers.count("refused")
    made = sessions + refused * turns
    show(f"{sessions} sessions, {made} turns", took, unit="s", cpu_seconds=round(used, 2))
    show("sessions with a suspended cell that was resumed", kept, unit="count")
    show("sessions refused cleanly", refused, unit="count")
    show("sessions with another outcome", sessions - kept - refused, 0, "count")
    show("suspended cells short of 64", 64 - kept, 0, "count")
    show("event loop lag, p99 (upper bound of its bucket)", p99(before, after), 50)
    show("the same of an idle gateway beside it", p99(idle_before, idle_after))


async def memory(quick):
    turns, at_once = (1500 if quick else 10_000), 32
    async with Server("code") as server:
        cpu = server.cpu()
        rate = await server.many("cell", turns // 2, at_once)
        each = (server.cpu() - cpu) / (turns // 2) * 1000
        middle = server.process.memory_info().rss
        await server.many("cell", turns // 2, at_once)
        end = server.process.memory_info().rss
    show(f"turns a second, {at_once} at once", rate, unit="1/s", cpu_ms=round(each, 2))
    grown = (end - middle) / middle * 100
    show(f"memory grown over the second half of {turns} turns", grown, 5, "%", rss_mb=end >> 20)


async def main(quick):
    load = os.getloadavg()[0]
    print(json.dumps({"machine": {"cpus": os.cpu_count(), "load": load}}), flush=True)
    await latencies(quick)
    await crowd(quick)
    await memory(quick)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if sys.argv[1:2] == ["serve"]:
        anyio.run(serve, sys.argv[2])  # as `toolcell gateway` does
    else:
        asyncio.run(main("--quick" in sys.argv))
