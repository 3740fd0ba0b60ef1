"""What a program that has tools and a cell does not pay for: imports and validators of the rest."""

import subprocess
import sys
from importlib.util import find_spec

import anyio
import pytest

from toolcell.app.executors import Executors
from toolcell.errors import RuntimeUnavailableError

START = """
import sys
from toolcell import CodeMode, Tool, ToolResult

async def add(arguments, context):
    return ToolResult(content=(), details=arguments["a"] + arguments["b"])

async def main():
    tools = [Tool(name="add", description="Add.", parameters={"type": "object"}, execute=add)]
    async with CodeMode(tools=tools, executor="quickjs") as cm:
        outcome = await cm.exec("return await add({a: 1, b: 2})")
    assert outcome.value == 3, outcome

import anyio
anyio.run(main)
"""

pytestmark = pytest.mark.anyio

UNUSED = (
    "anthropic",
    "cryptography",
    "docstring_parser",
    "httpx2",
    "json5",
    "mcp",
    "openai",
    "opentelemetry",
    "sqlite3",
    "starlette",
    "toolcell.agent.contract",
    "toolcell.agent.loop",
    "toolcell.app.conversation",
    "toolcell.app.core_setup",
    "toolcell.app.recalling",
    "toolcell.app.searching",
    "toolcell.base.version",
    "toolcell.execution.node.executor",
    "toolcell.gateway",
    "toolcell.library.tool_search",
    "toolcell.sessions.contract",
    "toolcell.sources.core",
    "toolcell.sources.mcp.settings",
    "toolcell.sources.mcp.source",
    "toolcell.swarm.swarm",
    "toolcell.toolsearch",
    "uvicorn",
)
"""Modules of what the program above does not use. One that is imported again costs every program
its share of the 300 ms that a start may take."""


async def told(program: str) -> str:
    done = await anyio.run_process([sys.executable, "-c", program], stderr=subprocess.STDOUT)
    return done.stdout.decode().strip()


async def test_a_cell_on_quickjs_imports_nothing_of_what_it_does_not_use():
    """DESIGN, start-up: import and first cell."""
    check = f"print([name for name in {UNUSED!r} if name in sys.modules])"
    assert await told(START + check) == "[]"


@pytest.mark.parametrize("name", UNUSED)
def test_the_list_names_modules_that_there_are(name):
    """A name that was misspelt, or has moved, would make the list blind."""
    assert find_spec(name) is not None


async def test_a_program_without_a_config_builds_no_validator_of_the_tree():
    check = (
        "from toolcell.config import tree, tools_tree, gateway_tree\n"
        "nodes = (tree.Config, tree.AgentsSettings, tools_tree.ToolsSettings,"
        " tools_tree.CodeModeSettings, gateway_tree.GatewaySettings)\n"
        "print([node.__name__ for node in nodes if node.__pydantic_complete__])"
    )
    assert await told(START + check) == "['CodeModeSettings']"


async def test_the_engine_is_imported_beside_the_event_loop():
    """The import takes 60 ms and more; whoever shares the loop is served meanwhile."""
    watch = (
        "import sys, threading\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'wasmtime':\n"
        "            print(threading.current_thread() is threading.main_thread())\n"
        "sys.meta_path.insert(0, Watch())\n"
    )
    assert await told(watch + START) == "False"


async def test_no_engine_is_made_for_a_runtime_that_ended_meanwhile():
    executors = Executors()
    await executors.aclose()
    with pytest.raises(RuntimeUnavailableError, match="its runtime has ended"):
        await executors.ready("quickjs")
    assert executors.statistics() == {}
