"""Owns the misbehaving MCP server of the tests: `python -m toolcell.testing.mcp_fixture [flags]`.

Without flags it is a good server with tools that echo, sleep, fail, report, change their list,
crash and hang. Each flag of `main` adds one fault at start-up or in the listing.

Above: tests and benches, as a child process. Below: `mcp_stdio`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from toolcell.testing.mcp_stdio import (
    INVALID_PARAMS,
    Call,
    RpcError,
    ServedTool,
    StdioServer,
    served,
    structured,
    text,
)

_STRING = {"type": "string"}
_NUMBER = {"type": "number"}
_OBJECT: dict[str, Any] = {"type": "object"}
_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
CANARY = "CANARY-0001"


class Fixture:
    """The tools and what they count."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.counts = {"listings": 0, "calls": 0, "cancelled": 0, "loads": 0, "most_loads": 0}
        self.server = StdioServer("fixture", "1.0", [*self._good(), *self._faulty(), *self._more()])
        self._list = self.server.handlers["tools/list"]
        self.server.handlers["tools/list"] = self.listing
        if options.resources:
            self._offer_resources()

    def listing(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the tools, with the faults that were asked for."""
        self.counts["listings"] += 1
        number = self.counts["listings"]
        if number <= self.options.fail_lists:
            raise RpcError(-32000, "the store is not open yet")
        if number == 1 and self.options.stale_list:
            return self._stale()
        tools = [*self._list(params)["tools"], *self._odd_entries()]
        size = self.options.page
        if not size:
            return {"tools": tools}
        first = int(params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": tools[first : first + size]}
        if first + size < len(tools) or self.options.endless:
            page["nextCursor"] = str(first + size)
        return page

    def _stale(self) -> Mapping[str, Any]:
        old = served("old", "Was here.", {}, lambda *_: text("old"))
        self.server.notify("notifications/tools/list_changed")
        time.sleep(self.options.stale_list)
        return {"tools": [old.entry]}

    def _odd_entries(self) -> list[Any]:
        if not self.options.odd:
            return []
        deep: dict[str, Any] = {"type": "string"}
        for _ in range(300):
            deep = {"type": "object", "properties": {"p": deep}}
        return [
            {"name": "wrong_type", "inputSchema": {"type": "objekt"}},
            {"name": "no_schema"},
            {"name": "deep", "inputSchema": deep},
            {"name": "fetching", "inputSchema": {"type": "object", "$ref": "http://127.0.0.1:9/x"}},
            {
                "name": "cycle",
                "inputSchema": {
                    "type": "object",
                    "properties": {"root": {"$ref": "#/$defs/node"}},
                    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#"}}}},
                },
            },
            {"name": "booleans", "inputSchema": {**_OBJECT, "properties": {"a": True, "b": False}}},
            "not an object",
            {"description": "no name", "inputSchema": _OBJECT},
            {"name": " echo ", "inputSchema": {**_OBJECT, "properties": {"other": _STRING}}},
            {"name": "echo", "inputSchema": {**_OBJECT, "properties": {"third": _STRING}}},
            {"name": "orders.fetch-one", "description": "a\x00b\u202ec", "inputSchema": _OBJECT},
            {"name": "\u043f\u043e\u0438\u0441\u043a", "inputSchema": _OBJECT},
        ]

    def _good(self) -> list[ServedTool]:
        return [
            served("echo", "Return the value.", {"v": {}}, lambda a, _: structured({"v": a["v"]})),
            served("add", "Add two numbers.", {"a": _NUMBER, "b": _NUMBER}, _add),
            served("sleep", "Wait, then answer.", {"seconds": _NUMBER}, self._sleep, slow=True),
            served("count", "Count one up.", {}, self._count),
            served("stats", "Say what was counted.", {}, lambda *_: structured(self.counts)),
            served("environment", "Names of its variables.", {}, _environment),
            served("both", "Text and structure that differ.", {}, _both),
            served("picture", "A picture and a link.", {}, _picture),
            served("steps", "Report progress.", {"n": _NUMBER}, _steps, slow=True),
            served("add_tool", "Offer one more tool.", {"name": _STRING}, self._add_tool),
            served("drop_tool", "Offer one tool less.", {"name": _STRING}, self._drop_tool),
            served(
                "burst", "Say often that the list changed.", {"n": _NUMBER}, self._burst, slow=True
            ),
            served("say", "Write a line to the log.", {"line": _STRING}, self._say),
        ]

    def _faulty(self) -> list[ServedTool]:
        silent = served("move", "Declares an output and gives none.", {}, lambda *_: text("moved"))
        return [
            ServedTool(entry={**silent.entry, "outputSchema": _OBJECT}, run=silent.run),
            served("fail", "Fail as a value.", {}, lambda *_: text("nope", isError=True)),
            served("refuse", "Fail as a protocol error.", {}, _refuse),
            served("leak", "Private metadata and a broken block.", {}, _leak),
            served("big", "A long text.", {"bytes": _NUMBER}, lambda a, _: text("x" * a["bytes"])),
            served("garble", "Answer with a broken line.", {}, self._garble),
            served("flood", "Send many notices.", {"n": _NUMBER}, self._flood),
            served("ask", "Ask the client to sample.", {}, self._ask),
            served("crash", "End the process.", {}, lambda *_: os._exit(3)),
            served("hang", "Never answer anything again.", {}, _hang),
        ]

    def _more(self) -> list[ServedTool]:
        names = [f"extra_{number:04}" for number in range(self.options.extra)]
        return [served(name, f"Tool {name}.", {"q": _STRING}, _named(name)) for name in names]

    def _sleep(self, arguments: Mapping[str, Any], call: Call) -> Mapping[str, Any]:
        if call.cancelled.wait(arguments["seconds"]):
            self.counts["cancelled"] += 1
        return text("slept")

    def _count(self, _: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
        self.counts["calls"] += 1
        return structured({"n": self.counts["calls"]})

    def _add_tool(self, arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
        name = arguments["name"]
        self.server.tools[name] = served(name, "A late one.", {}, lambda *_: text(f"I am {name}"))
        self.server.notify("notifications/tools/list_changed")
        return text("added")

    def _drop_tool(self, arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
        self.server.tools.pop(arguments["name"], None)
        self.server.notify("notifications/tools/list_changed")
        return text("dropped")

    def _burst(self, arguments: Mapping[str, Any], call: Call) -> Mapping[str, Any]:
        for _ in range(int(arguments["n"])):
            self.server.notify("notifications/tools/list_changed")
            # Apart enough to be answered one by one by a client that does not hold back.
            call.cancelled.wait(0.005)
        return text("done")

    def _say(self, arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
        self.server.notify("notifications/message", {"level": "warning", "data": arguments["line"]})
        sys.stderr.write(f"stderr: {arguments['line']}\n")
        sys.stderr.flush()
        return text("said")

    def _garble(self, _: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
        # The highest id in flight is this call's own: the answer is cut in the middle.
        ident = max(self.server.running())
        self.server.write(f'{{"jsonrpc":"2.0","id":{ident},"result":{{"content":[')
        return text("too late")

    def _flood(self, arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
        for number in range(int(arguments["n"])):
            self.server.notify("notifications/message", {"level": "info", "data": f"line {number}"})
            self.server.write("not JSON at all")
        return text("flooded")

    def _ask(self, _: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
        request = {
            "jsonrpc": "2.0",
            "id": "s1",
            "method": "sampling/createMessage",
            "params": {"messages": [], "maxTokens": 1},
        }
        self.server.write(json.dumps(request))
        return structured(json.loads(sys.stdin.readline()))

    def _offer_resources(self) -> None:
        self.server.capabilities |= {"resources": {}, "prompts": {}}
        self.server.handlers |= {
            "resources/list": _resources,
            "resources/read": _read_resource,
            "prompts/list": lambda _: {"prompts": [{"name": "greet", "_meta": {"x": CANARY}}]},
            "prompts/get": _prompt,
        }
        if self.options.templates != "none":
            flood = self.options.templates == "flood"
            self.server.handlers["resources/templates/list"] = _flood if flood else _templates


def _named(name: str) -> Any:
    return lambda *_: text(name)


def _add(arguments: Mapping[str, Any], _: Call) -> Mapping[str, Any]:
    return structured({"sum": arguments["a"] + arguments["b"]})


def _environment(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    return structured({"names": sorted(os.environ)})  # noqa: TID251  the test asks what leaked


def _hang(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    threading.Event().wait()
    return {}


def _both(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    return text("saved", structuredContent={"ticket": "T-9"})


def _picture(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    return {
        "content": [
            {"type": "image", "data": _PIXEL, "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "_meta": {"x": CANARY}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": _PIXEL}},
        ]
    }


def _steps(arguments: Mapping[str, Any], call: Call) -> Mapping[str, Any]:
    total = int(arguments["n"])
    for number in range(1, total + 1):
        call.progress(number, total, f"step {number}")
        call.cancelled.wait(0.06)
    return text("done")


def _refuse(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    raise RpcError(INVALID_PARAMS, "that is \x1b[31mnot allowed")


def _leak(_: Mapping[str, Any], __: Call) -> Mapping[str, Any]:
    return {
        "_meta": {"secret": CANARY},
        "content": [
            {"type": "text", "text": "fine", "_meta": {"secret": CANARY}},
            {"type": "image", "secret": CANARY},
            {"type": "unheard-of", "secret": CANARY},
            CANARY,
        ],
    }


def _resources(params: Mapping[str, Any]) -> Mapping[str, Any]:
    page = int(params.get("cursor") or 0)
    item = {"uri": f"note://{page}", "name": f"note {page}", "_meta": {"x": CANARY}}
    return {"resources": [item], **({"nextCursor": str(page + 1)} if page < 2 else {})}


def _templates(params: Mapping[str, Any]) -> Mapping[str, Any]:
    if not params.get("cursor"):
        note = {"uriTemplate": "note://{id}", "name": "note", "_meta": {"x": CANARY}}
        return {"resourceTemplates": [note, {"name": "no uri"}, 7], "nextCursor": "2"}
    return {
        "resourceTemplates": [
            {
                "uriTemplate": "note://{+path}{?page,size}",
                "name": "a\x07 page\u202e of\na note",
                "description": "x" * 100_000,
                "mimeType": "text/plain",
                "icons": [{"src": CANARY}],
            },
            {"uriTemplate": "note://{id:3}", "name": "unreadable"},
            {"uriTemplate": "note://\u202e{id}", "name": "reordered"},
            {"uriTemplate": "note://" + "{x}" * 5_000, "name": "long"},
        ]
    }


def _flood(params: Mapping[str, Any]) -> Mapping[str, Any]:
    page = int(params.get("cursor") or 0)
    items = [{"uriTemplate": f"note://{page}/{n}/{{id}}", "name": "n"} for n in range(4_000)]
    return {"resourceTemplates": items, "nextCursor": str(page + 1)}


def _read_resource(params: Mapping[str, Any]) -> Mapping[str, Any]:
    uri = params["uri"]
    body = {"blob": _PIXEL} if uri.endswith("2") else {"text": f"text of {uri}"}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", **body}, {"uri": 7}]}


def _prompt(params: Mapping[str, Any]) -> Mapping[str, Any]:
    who = (params.get("arguments") or {}).get("who", "nobody")
    content = {"type": "text", "text": f"Hello {who}"}
    return {"description": "A greeting", "messages": [{"role": "user", "content": content}]}


def _misbehave(options: argparse.Namespace) -> None:
    """Commit the faults of start-up."""
    if options.die:
        sys.stderr.write("no licence found\n")
        sys.exit(options.die)
    if options.mute:
        threading.Event().wait()
    if options.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    for number in range(options.garbage):
        sys.stdout.write(f"Welcome! line {number}\n")
    sys.stdout.flush()


def main() -> None:
    """Parse the flags and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", type=int, default=0, help="so many more tools")
    parser.add_argument("--page", type=int, default=0, help="tools per page")
    parser.add_argument("--endless", action="store_true", help="pages never end")
    parser.add_argument("--odd", action="store_true", help="list odd tools too")
    parser.add_argument("--resources", action="store_true", help="offer resources and prompts")
    parser.add_argument(
        "--templates",
        choices=("some", "none", "flood"),
        default="some",
        help="resource templates; none: their method is not known",
    )
    parser.add_argument("--fail-lists", type=int, default=0, help="refuse the first listings")
    parser.add_argument("--stale-list", type=float, default=0, help="first list old, this late")
    parser.add_argument("--garbage", type=int, default=0, help="so many lines of prose first")
    parser.add_argument("--die", type=int, default=0, help="end at once with this code")
    parser.add_argument("--mute", action="store_true", help="never answer")
    parser.add_argument("--deaf", action="store_true", help="ignore the end of stdin and SIGTERM")
    options = parser.parse_args()
    _misbehave(options)
    Fixture(options).server.serve()
    if options.deaf:
        threading.Event().wait()


if __name__ == "__main__":
    main()
