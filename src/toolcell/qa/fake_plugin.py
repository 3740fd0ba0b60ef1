"""Owns the fake plugin: one tool that is wanted, one direct-only, and as many others as asked for.

Above: scenarios, and the plugin file that a scenario writes. Below: `tools`, `plugin_sdk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolcell.plugin_sdk.define import ToolPlugin, define_tool_plugin
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

PLUGIN_ID: Final = "fake"
WANTED: Final = "fake_create_ticket"
DIRECT_ONLY: Final = "fake_screen"
_VERBS: Final = ("list", "archive", "rename", "export", "assign", "merge", "audit", "restore")
_THINGS: Final = ("invoice", "shipment", "contract", "employee", "warehouse", "campaign", "sensor")
_FILE: Final = """\
\"\"\"Written by the QA scenario.\"\"\"

from toolcell.qa.fake_plugin import fake_plugin

plugin = fake_plugin({count})
"""


def write_plugin(folder: Path, count: int) -> Path:
    """Write a plugin file with `count` tools beside the direct-only one; return its path."""
    path = folder / "fake_plugin_for_qa.py"
    path.write_text(_FILE.format(count=count), encoding="utf-8")
    return path


def fake_plugin(count: int) -> ToolPlugin:
    """Return the plugin: the wanted tool, `count - 1` others, and the direct-only one."""
    others = [_other(number) for number in range(count - 1)]
    return define_tool_plugin(
        id=PLUGIN_ID,
        name="Fake",
        description="Tools for QA scenarios.",
        tools=[_wanted(), _direct_only(), *others],
    )


def other_names(count: int) -> list[str]:
    """Return the names of the tools that nobody calls."""
    return [_other_name(number) for number in range(count - 1)]


def _wanted() -> Tool:
    async def create(arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        details = {"ticket": "T-1", "title": arguments["title"]}
        return ToolResult(content=(TextContent("created T-1"),), details=details)

    return Tool(
        name=WANTED,
        description="Create a ticket in the fake tracker.",
        parameters=_object({"title": "What is wrong.", "body": "How to see it."}, "title"),
        execute=create,
        output_schema={
            "type": "object",
            "properties": {"ticket": {"type": "string"}, "title": {"type": "string"}},
            "required": ["ticket", "title"],
            "additionalProperties": False,
        },
    )


def _direct_only() -> Tool:
    return Tool(
        name=DIRECT_ONLY,
        description="Look at the fake screen.",
        parameters=_object({}),
        execute=_nothing,
        catalog_mode="direct-only",
    )


def _other(number: int) -> Tool:
    verb, thing = _words(number)
    fields = {
        f"{thing}_id": f"The {thing} to {verb}.",
        "reason": f"Why the {thing} is to be handled, for the audit trail.",
        "notify": f"Who is told when the {thing} is done with, as a mail address.",
        "due": "When it is to be done, as an ISO 8601 date and time with zone.",
    }
    return Tool(
        name=_other_name(number),
        description=f"{verb.capitalize()} one {thing} of department {number} of the fake company.",
        parameters=_object(fields, f"{thing}_id"),
        execute=_nothing,
    )


def _words(number: int) -> tuple[str, str]:
    return _VERBS[number % len(_VERBS)], _THINGS[number // len(_VERBS) % len(_THINGS)]


def _other_name(number: int) -> str:
    verb, thing = _words(number)
    return f"fake_{verb}_{thing}_{number:04d}"


def _object(fields: Mapping[str, str], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": text} for name, text in fields.items()
        },
        "required": list(required),
        "additionalProperties": False,
    }


async def _nothing(_arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
    return ToolResult(details={})
