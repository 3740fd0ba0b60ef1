"""Swarm: a fan-out, a decision gate and a race, in this process or on Ray workers.

    python examples/swarm.py
    python examples/swarm.py --backend ray                 # on two worker processes
    python examples/swarm.py --backend ray --kill          # one of them is killed in the fan-out
    python examples/swarm.py --backend ray --kill --retries 1

The model is a small HTTP server in this file, so that nothing is needed but toolcell with its
extra `openai`, and `ray` for the workers. Each child says in which process it ran.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys

from toolcell import CodeMode, Host, ToolcellError, tool
from toolcell.protocol.events import ChildChanged, Diagnostic, SwarmNote

PROGRAM = """
phase("Fan out");
const topics = ["tides", "moons", "winds", "rivers", "storms", "deserts"];
const reports = await Promise.allSettled(
  topics.map((topic) => agents.run("Report on " + topic, {label: topic})));
const good = reports.filter((one) => one.status === "fulfilled").map((one) => one.value);
const failed = reports.filter((one) => one.status === "rejected").map((one) => String(one.reason));

phase("Decide");
const schema = {type: "object", properties: {enough: {type: "boolean"}}, required: ["enough"]};
const verdict = await agents.run(
  `Are ${good.length} of ${topics.length} reports enough?`, {label: "judge", schema});

phase("Race");
const first = verdict.enough
  ? await Promise.race(["slow", "quick"].map((way) =>
      agents.run("Sum up the " + way + " way", {label: way})))
  : null;
return {good, failed, verdict, first};
"""


@tool
def where() -> int:
    """Tell the process."""
    return os.getpid()


class Model:
    """Answers Chat Completions: children look where they are, and then say what they were told."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.all_told = asyncio.Event()

    async def reply(self, body: dict) -> dict:
        asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
        last = body["messages"][-1]
        if asked.startswith("Are "):
            good, of = int(asked.split()[1]), int(asked.split()[3])
            owed = last["role"] == "user"
            return call("structured_output", {"enough": good * 2 >= of}) if owed else say("done")
        if last["role"] == "user":
            return call("exec", {"code": "return where({})"})
        pid = json.loads(last["content"])["value"]
        self.places[asked] = pid
        if len(self.places) == 6:
            self.all_told.set()
        await asyncio.sleep(self.seconds(asked))
        return say(f"{asked}: done in process {pid}")

    def seconds(self, asked: str) -> float:
        if "slow" in asked:
            return 30
        return 0 if asked.endswith(("tides", "moons", "quick way")) else 2

    async def killing(self) -> None:
        """Kill a worker when six children have told where they are and two of them are done."""
        await self.all_told.wait()
        await asyncio.sleep(0.5)
        pid = max(self.places.values())
        print(f"  >> kill -9 {pid}", flush=True)
        os.kill(pid, signal.SIGKILL)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*gone), contextlib.closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                )
                reply = json.dumps(await self.reply(json.loads(await reader.readexactly(size))))
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    + f"Content-Length: {len(reply)}\r\n\r\n{reply}".encode()
                )
                await writer.drain()


def say(text: str) -> dict:
    return completion({"role": "assistant", "content": text}, "stop")


def call(name: str, arguments: dict) -> dict:
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return completion({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")


def completion(message: dict, finish: str) -> dict:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


class Print:
    """Prints how children get on."""

    def emit(self, event: object) -> None:
        match event:
            case SwarmNote(kind="phase", text=title):
                print(title, flush=True)
            case ChildChanged(state=state, label=label, error=error) if state != "queued":
                print(f"  {label}: {state}{f' ({error})' if error else ''}", flush=True)
            case Diagnostic(message=message):
                print(f"  -- {message}", flush=True)


async def main(backend: str, *, kill: bool, retries: int) -> None:
    model = Model()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = {
        "tools": {
            "codeMode": {"timeoutMs": 60_000},
            "swarm": {
                "enabled": True,
                "backend": backend,
                "ray": {"workers": 2, "retries": retries},
            },
        },
        "agents": {"defaults": {"model": "mock/m"}},
        "models": {
            "providers": {"mock": {"baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "-"}}
        },
    }
    host = Host(sink=Print())
    async with CodeMode(tools=[where], config=config, executor="quickjs", host=host) as session:
        killing = asyncio.ensure_future(model.killing()) if kill else None
        outcome = await session.exec(PROGRAM)
        if killing is not None:
            killing.cancel()
    server.close()
    print(json.dumps(outcome.to_dict().get("value", outcome.to_dict()), indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=["local", "ray"], default="local")
    parser.add_argument("--kill", action="store_true", help="kill a worker in the fan-out")
    parser.add_argument("--retries", type=int, default=0)
    given = parser.parse_args()
    if given.kill and given.backend == "local":
        parser.error("--kill needs --backend ray: there is no worker to kill here")
    try:
        asyncio.run(main(given.backend, kill=given.kill, retries=given.retries))
    except ToolcellError as error:
        sys.exit(str(error))
