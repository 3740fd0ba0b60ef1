"""Owns the bundled plugin `notes`: what an agent wants to find again in its next session.

Its tools stand behind the namespace `Notes` (rule 6), which is how a cell uses them.

Above: `app.plugins`. Below: `note_book`, `plugin_sdk`, `codemode.namespaces`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from toolcell.app.bundled.contract import Bundled
from toolcell.app.bundled.note_book import MAX_NAME, MAX_TEXT, NoteBook
from toolcell.base.clock import SYSTEM_CLOCK, Clock
from toolcell.base.jsontext import JsonObject, dumps
from toolcell.codemode.namespaces.registry import NamespaceContext, NamespaceRegistration
from toolcell.codemode.namespaces.scope import create_code_mode_namespace_tool
from toolcell.errors import CallError
from toolcell.plugin_sdk.builder import ToolBuilder
from toolcell.plugin_sdk.define import define_tool_plugin
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool, ToolContext

ID: Final = "notes"
NAMES: Final = ("notes_list", "notes_read", "notes_write", "notes_remove")
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


def _closed(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT: Final[JsonObject] = {"type": "string"}
_COUNT: Final[JsonObject] = {"type": "integer"}
_TIME: Final[JsonObject] = {"type": "number"}
_FLAG: Final[JsonObject] = {"type": "boolean"}
_ROW: Final = _closed({"name": _TEXT, "chars": _COUNT, "updatedAt": _TIME})
_LISTED: Final = _closed({"notes": {"type": "array", "items": _ROW}})
_READ: Final = _closed({"name": _TEXT, "text": _TEXT, "updatedAt": _TIME})
_WRITTEN: Final = _closed({"name": _TEXT, "created": _FLAG, "chars": _COUNT})
_REMOVED: Final = _closed({"name": _TEXT, "removed": _FLAG})


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _List(_Arguments):
    query: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = None


class _Named(_Arguments):
    name: Name


class _Write(_Arguments):
    name: Name
    text: Annotated[str, Field(max_length=MAX_TEXT)]


class Notes:
    """The tools over one book."""

    def __init__(self, book: NoteBook, clock: Clock = SYSTEM_CLOCK) -> None:
        self._book = book
        self._clock = clock

    async def listed(self, arguments: _List, context: ToolContext) -> ToolResult:
        """List notes."""
        agent = context.scope.agent_id
        found = await anyio.to_thread.run_sync(self._book.list, agent, arguments.query)
        rows = [{"name": n.name, "chars": n.chars, "updatedAt": n.updated_at} for n in found]
        return _told({"notes": rows}, untrusted=True)

    async def read(self, arguments: _Named, context: ToolContext) -> ToolResult:
        """Read one."""
        agent, name = context.scope.agent_id, arguments.name
        found = await anyio.to_thread.run_sync(self._book.read, agent, name)
        if found is None:
            msg = f"there is no note {name!r}; notes_list lists them."
            raise CallError(msg, code="tool_error", effect="none")
        text, written = found
        return _told({"name": name, "text": text, "updatedAt": written}, untrusted=True)

    async def write(self, arguments: _Write, context: ToolContext) -> ToolResult:
        """Write one."""
        agent, name, text = context.scope.agent_id, arguments.name, arguments.text
        created = await anyio.to_thread.run_sync(
            lambda: self._book.write(agent, name, text, now=self._clock.wall())
        )
        return _told({"name": name, "created": created, "chars": len(text)})

    async def remove(self, arguments: _Named, context: ToolContext) -> ToolResult:
        """Remove one."""
        agent, name = context.scope.agent_id, arguments.name
        removed = await anyio.to_thread.run_sync(self._book.remove, agent, name)
        return _told({"name": name, "removed": removed})

    def tools(self, tool: ToolBuilder) -> list[Tool]:
        """Return the tools of the plugin."""
        return [
            tool(
                name="notes_list",
                description="List the notes this agent keeps; with query those that hold it.",
                parameters=_List,
                output_schema=_LISTED,
                execute=self.listed,
                replay_safe=True,
            ),
            tool(
                name="notes_read",
                description="Read a note this agent keeps.",
                parameters=_Named,
                output_schema=_READ,
                execute=self.read,
                replay_safe=True,
            ),
            tool(
                name="notes_write",
                description="Keep a note for later sessions, over the one of that name.",
                parameters=_Write,
                output_schema=_WRITTEN,
                execute=self.write,
            ),
            tool(
                name="notes_remove",
                description="Remove a note this agent keeps.",
                parameters=_Named,
                output_schema=_REMOVED,
                execute=self.remove,
            ),
        ]


def notes(path: Path) -> Bundled:
    """Return the plugin over a file, with its namespace."""
    plugin = define_tool_plugin(
        id=ID, name="Notes", description="What an agent keeps.", tools=Notes(NoteBook(path)).tools
    )
    namespace = NamespaceRegistration(
        id=ID,
        global_name="Notes",
        description="Notes that this agent keeps from session to session.",
        required_tool_names=NAMES,
        prompt="Use Notes.list(query?), .read(name), .write(name, text) and .remove(name).",
        create_scope=_scope,
    )
    return Bundled(plugin, (namespace,))


def _scope(context: NamespaceContext) -> dict[str, Any]:
    return {
        "agent": context.agent_id,
        "maxChars": MAX_TEXT,
        "list": create_code_mode_namespace_tool("notes_list", _query),
        "read": create_code_mode_namespace_tool("notes_read", _named),
        "write": create_code_mode_namespace_tool("notes_write", _note),
        "remove": create_code_mode_namespace_tool("notes_remove", _named),
    }


def _query(given: list[Any]) -> dict[str, Any]:
    return {"query": given[0]} if given and given[0] is not None else {}


def _named(given: list[Any]) -> dict[str, Any]:
    return dict(zip(("name",), given, strict=False))


def _note(given: list[Any]) -> dict[str, Any]:
    return dict(zip(("name", "text"), given, strict=False))


def _told(details: dict[str, Any], *, untrusted: bool = False) -> ToolResult:
    return ToolResult(content=(TextContent(dumps(details)),), details=details, untrusted=untrusted)
