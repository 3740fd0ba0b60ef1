"""Owns `toolcell demo`: the same question with direct tools and in Code Mode, side by side.

Above: `cli.main`. Below: `cli.demo`, `cli.opening`, `app.conversation`.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from toolcell.app.conversation import Turn, converse
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.cli.calltree import tree_lines
from toolcell.cli.console import DONE, FAILED, Progress, print_json, print_text
from toolcell.cli.demo.plugin import demo_plugin
from toolcell.cli.demo.script import PROGRAM, QUESTION, code_mode_steps, direct_steps
from toolcell.cli.opening import Opening, opened
from toolcell.cli.options import SHARED, Shared
from toolcell.config.parse import parse_config
from toolcell.config.resolve import takes_images
from toolcell.config.tree import Config
from toolcell.protocol.events import CellParked, Event, ModelCalled
from toolcell.providers.scripted import ScriptedProvider

BUDGET_MS = 1000
SCRIPTED = "scripted/demo"
Mode = Literal["direct", "code"]


@dataclass(slots=True)
class Measured:
    """What one mode came to."""

    mode: Mode
    tools: int = 0
    calls: list[dict[str, Any]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    shown: int = 0
    parked: int = 0
    seconds: float = 0.0
    answer: str = ""
    failed: str = ""

    def emit(self, event: Event) -> None:
        """Count model calls and parked cells."""
        match event:
            case ModelCalled():
                self.requests.append(event.request_bytes)
                self.shown = len(event.tool_names)
            case CellParked():
                self.parked += 1
            case _:
                pass

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "mode": self.mode,
            "tools": self.tools,
            "toolsShown": self.shown,
            "requestBytes": self.requests,
            "turns": len(self.requests),
            "parkedCells": self.parked,
            "seconds": round(self.seconds, 3),
            "answer": self.answer,
            "error": self.failed or None,
            "calls": self.calls,
        }


def demo(*, model: str | None = None, shared: Shared = SHARED) -> int:
    """Let an agent work through about 100 tools, first directly, then in Code Mode.

    Offline and scripted, unless --model names a configured model.

    Args:
        model: `provider/model` of your config; the demo then asks that model.
        shared: Options of every command.
    """
    base = shared.load() if model is not None else Config()
    progress = Progress()
    with progress.running("starting"):
        modes: tuple[Mode, ...] = ("direct", "code")
        direct, code = (anyio.run(_measure, mode, base, model, progress) for mode in modes)
    if shared.json:
        print_json({"question": QUESTION, "direct": direct.to_dict(), "codeMode": code.to_dict()})
    else:
        _tell(direct, code, scripted=model is None)
    return FAILED if direct.failed or code.failed else DONE


async def _measure(mode: Mode, base: Config, model: str | None, progress: Progress) -> Measured:
    measured = Measured(mode=mode)
    with tempfile.TemporaryDirectory(prefix="toolcell-demo-") as folder:
        opening = Opening(plugins=(demo_plugin(),), sinks=(measured,))
        async with opened(_config(base, mode, folder), opening, progress) as open_:
            if model is None:
                steps = direct_steps() if mode == "direct" else code_mode_steps()
                open_.runtime.providers.add("scripted", ScriptedProvider(steps))
            scope = open_.runtime.scope(channel="demo")
            sees = takes_images(open_.runtime.config, model)
            tools = (each.tool for each in open_.runtime.tools())
            measured.tools = sum(sees or not tool.needs_vision for tool in tools)
            start = SYSTEM_CLOCK.monotonic()
            turn = Turn(scope=scope, prompt=QUESTION, model=model or SCRIPTED)
            result = await converse(open_.runtime, open_.sessions, turn)
            measured.seconds = SYSTEM_CLOCK.monotonic() - start
            measured.answer = result.text
            measured.failed = result.error.message if result.error is not None else ""
            tree = await open_.sessions.tree(scope.session_id)
            measured.calls = [node.to_dict() for node in tree]
    return measured


def _config(base: Config, mode: Mode, workspace: str) -> Config:
    data = base.model_dump(by_alias=True, exclude_unset=True)
    tools = data.setdefault("tools", {})
    tools["codeMode"] = {"enabled": mode == "code", "executor": "quickjs", "timeoutMs": BUDGET_MS}
    data.setdefault("agents", {}).setdefault("defaults", {})["workspace"] = workspace
    servers = data.setdefault("mcp", {}).setdefault("servers", {})
    servers["warehouse"] = {
        "command": sys.executable,
        "args": ["-m", "toolcell.testing.demo_mcp"],
    }
    return parse_config(data)


def _tell(direct: Measured, code: Measured, *, scripted: bool) -> None:
    model = "a scripted model" if scripted else "the model"
    print_text(f"An agent with {code.tools} tools and {model} is asked:\n  {QUESTION}\n")
    for title, each in (("With direct tools", direct), ("In Code Mode", code)):
        print_text(
            f"{title}: {each.shown} tools shown, first request {each.requests[0]:,} bytes, "
            f"{len(each.requests)} model calls, {sum(each.requests):,} bytes in all"
            if each.requests
            else f"{title}: no request was made"
        )
    if direct.requests and code.requests:
        print_text(
            f"The first request is {direct.requests[0] / code.requests[0]:.1f} times smaller.\n"
        )
    program = next((call["arguments"].get("code", "") for call in code.calls), PROGRAM)
    print_text("The program the model wrote:\n")
    print_text("\n".join(f"  {line}" for line in program.rstrip().splitlines()) + "\n")
    print_text("What it called:\n")
    for line in tree_lines(code.calls):
        print_text(f"  {line}")
    if code.parked:
        print_text(
            f"\nOne call outlived exec ({BUDGET_MS} ms): the cell was parked and wait finished it."
        )
    for each in (direct, code):
        if each.failed:
            print_text(f"\n{each.mode}: failed: {each.failed}")
    print_text(f"\nAnswer, direct:    {direct.answer}")
    print_text(f"Answer, Code Mode: {code.answer}")
