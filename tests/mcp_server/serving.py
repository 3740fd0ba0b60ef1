"""`toolcell mcp serve` as a real process, and the MCP SDK's own client to talk to it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from platformdirs import user_cache_path

from toolcell.config.env import variable

SRC = str(Path(__file__).parents[2] / "src")

PLUGIN = '''
"""Tools for the tests of the server."""

import sys
from pathlib import Path
from typing import Any, TypedDict

import anyio

from toolcell import define_tool_plugin, tool


class Sum(TypedDict):
    sum: float


@tool
async def add(a: float, b: float) -> Sum:
    """Add two numbers."""
    return {"sum": a + b}


@tool
async def slow(seconds: float, mark: str) -> str:
    """Wait, then leave a mark; another one when cancelled."""
    Path(mark + ".began").touch()
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        Path(mark + ".cancelled").touch()
        raise
    Path(mark + ".done").touch()
    return "slept"


@tool
async def halves() -> str:
    """Half of a surrogate pair, which no wire can carry."""
    return chr(0xD83D)


@tool(catalog_mode="direct-only", replay_safe=True)
async def look(what: str) -> Sum:
    """A tool that stays with the model."""
    return {"sum": float(len(what))}


plugin = define_tool_plugin(
    id="tests", name="Tests", description="For tests.", tools=[add, slow, halves, look]
)
'''


NOISE = '''

import os

print("printed by a plugin that is loaded")
os.write(1, b"written by a plugin that is loaded\\n")


@tool
async def shout() -> None:
    """Write to stdout in every way there is."""
    print("printed by a tool")
    os.write(1, b"written by a tool\\n")
    os.system("echo from a child; cat")


plugin = define_tool_plugin(
    id="tests", name="Tests", description="For tests.", tools=[add, shout]
)
'''


@dataclass(frozen=True)
class Home:
    """A folder with a config, and how the command is run in it."""

    folder: Path
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    code_mode: Mapping[str, Any] = field(default_factory=dict)
    approvals: Sequence[Mapping[str, Any]] = ()
    answer_seconds: int = 600
    noisy: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> Home:
        (self.folder / "plugin.py").write_text(PLUGIN + (NOISE if self.noisy else ""))
        config = {
            "tools": {
                "codeMode": {"executor": "quickjs", **self.code_mode},
                "approvals": {"rules": list(self.approvals)},
            },
            "gateway": {"limits": {"approvalTtlSeconds": self.answer_seconds}},
            "plugins": {"paths": [str(self.folder / "plugin.py")], "entryPoints": False},
            "mcp": {"servers": self.servers},
        }
        (self.folder / "toolcell.json").write_text(json.dumps(config))
        return self

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": variable("PATH") or "",
            "HOME": str(self.folder),
            "PYTHONPATH": SRC,
            "TOOLCELL_HOME": str(self.folder),
            # The engine compiled once for all of them, instead of in each home.
            "XDG_CACHE_HOME": str(user_cache_path()),
            **self.more,
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "toolcell.cli", *words]


def fixture_server(*flags: str) -> dict[str, Any]:
    """The config of the MCP fixture."""
    return {
        "command": sys.executable,
        "args": ["-m", "toolcell.testing.mcp_fixture", *flags],
        "env": {"PYTHONPATH": SRC},
    }


class Notices(list[Any]):
    """What the server announced."""

    async def __call__(self, message: Any) -> None:
        self.append(message)

    def count(self, method: str) -> int:
        return sum(getattr(each, "method", None) == method for each in self)


@asynccontextmanager
async def stdio(
    home: Home,
    *words: str,
    mode: str = "legacy",
    notices: Notices | None = None,
    asked: Any = None,
) -> AsyncIterator[Client]:
    command, *args = home.command("mcp", "serve", *words)
    parameters = StdioServerParameters(
        command=command, args=args, env=home.environment, cwd=str(home.folder)
    )
    async with Client(
        parameters, mode=mode, message_handler=notices, elicitation_callback=asked
    ) as client:
        yield client


@dataclass
class Web:
    """A server over HTTP."""

    url: str
    process: Popen[str]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)


@contextmanager
def http(home: Home, *words: str) -> Iterator[Web]:
    command = home.command("mcp", "serve", "--http", "127.0.0.1:0", *words)
    with Popen(
        command, stdout=PIPE, stderr=PIPE, text=True, env=home.environment, cwd=home.folder
    ) as process:
        try:
            yield Web(process.stderr.readline().split()[-1], process)
        finally:
            process.kill()


async def exists(path: Path) -> None:
    await until(path.exists)


async def until(holds: Any, seconds: float = 10.0) -> None:
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110  what another process does sets no event
            await anyio.sleep(0.01)
