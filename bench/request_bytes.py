"""The bytes of a first request with 300 MCP tools, direct and in Code Mode, and what they are.

Run: python bench/request_bytes.py [--data FILE]
FILE has one tool as JSON in each line: `{server, name, description, inputSchema}`; without it tools of
a middling size are made. Prints one JSON line per figure: what, value, the target, whether it holds.
"""

import argparse
import json
from pathlib import Path

import anyio

from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.protocol.messages import Message, ModelRequest
from toolcell.providers.body import encode
from toolcell.providers.openai_body import chat_body
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool

MCP_TOOLS = 300


def show(what, value, target=None, **more):
    holds = None if target is None else value <= target
    line = {"what": what, "value": value, "unit": "bytes", "target": target, "holds": holds}
    print(json.dumps({**line, **more}), flush=True)


async def noop(arguments, context):
    return ToolResult(details={})


def entries(file):
    if file is not None:
        with file.open() as lines:
            for _, line in zip(range(MCP_TOOLS), lines, strict=False):
                yield json.loads(line)
        return
    for number in range(MCP_TOOLS):
        properties = {f"field_{n}": {"type": "string", "description": "A field."} for n in range(6)}
        yield {
            "server": f"server{number % 10}",
            "name": f"tool_{number}",
            "description": f"Do thing {number} with the records of a remote service.",
            "inputSchema": {"type": "object", "properties": properties},
        }


class Source:
    version = 1

    def __init__(self, file):
        self._tools = tuple(self.made(file))

    def made(self, file):
        seen = set()
        for number, entry in enumerate(entries(file)):
            server = str(entry.get("server") or "remote")
            name = str(entry["name"])
            if (server, name) in seen:
                name = f"{name}_{number}"
            seen.add((server, name))
            tool = Tool(
                name=name,
                description=str(entry.get("description") or ""),
                parameters=entry.get("inputSchema") or {"type": "object"},
                execute=noop,
            )
            yield SourcedTool(
                tool=tool,
                source="mcp",
                owner=server,
                group=Group.MCP,
                mcp=McpOrigin(server=server, tool=name),
            )

    def tools(self):
        return self._tools

    def unavailable(self):
        return ()

    async def start(self):
        pass

    async def aclose(self):
        pass


async def main(file):
    sizes = {}
    for enabled in (False, True):
        tree = {"tools": {"codeMode": {"enabled": enabled, "executor": "quickjs"}}}
        parts = Parts(sources=(Source(file),), load_plugins=False)
        runtime = Runtime(parse_config(tree), parts, Host())
        await runtime.start()
        plan = runtime.run(runtime.scope()).surface().plan
        request = ModelRequest(
            model="m", messages=(Message(role="user", text="hello"),), tools=plan.definitions
        )
        sizes[enabled] = len(encode(chat_body(request)))
        if enabled:
            of = {
                tool.name: {
                    "description": len(tool.description.encode()),
                    "parameters": len(json.dumps(tool.parameters)),
                }
                for tool in plan.definitions
            }
        await runtime.aclose()
    show(f"request with {MCP_TOOLS} MCP tools, direct", sizes[False])
    show(f"request with {MCP_TOOLS} MCP tools, code mode", sizes[True], 14_000, of=of)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=None)
    anyio.run(main, parser.parse_args().data)
