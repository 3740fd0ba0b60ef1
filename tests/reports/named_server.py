"""An MCP server whose tools are told on the command line; each answers with its raw name."""

import json
import sys

from toolcell.testing.mcp_stdio import ServedTool, StdioServer, structured


def answer(name):
    return lambda arguments, _call: structured({"name": name, "got": dict(arguments)})


entries = json.loads(sys.argv[1])
tools = [ServedTool(entry=entry, run=answer(entry["name"])) for entry in entries]
StdioServer("named", "1.0", tools).serve()
