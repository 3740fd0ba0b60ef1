"""Owns putting the few settings a caller names on top of a config tree.

Above: the library face, commands with `--executor`. Below: `config.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcell.config.code_mode import ExecutorName, GuestApi
from toolcell.config.fields import Settings
from toolcell.config.parse import parse_node
from toolcell.config.tool_search import ToolSearchMode
from toolcell.config.tools_tree import CodeModeSettings, ToolSearchSettings
from toolcell.config.tree import Config


def with_code_mode(
    config: Config, *, executor: ExecutorName | None = None, guest_api: GuestApi | None = None
) -> Config:
    """Return `config` with code mode on, and these choices in place of its own."""
    given: dict[str, Any] = {"enabled": True}
    if executor is not None:
        given["executor"] = executor
    if guest_api is not None:
        given["guestApi"] = guest_api
    return _with_tools(config, code_mode=_code_mode(config, given))


def with_tool_search(config: Config, *, mode: ToolSearchMode | None = None) -> Config:
    """Return `config` with Tool Search on and code mode off, and this mode in place of its own."""
    given = {**_said(config.tools.tool_search), "enabled": True}
    if mode is not None:
        given["mode"] = mode
    search = parse_node(ToolSearchSettings, given, ("tools", "toolSearch"))
    return _with_tools(config, tool_search=search, code_mode=_code_mode(config, {"enabled": False}))


def _code_mode(config: Config, given: Mapping[str, Any]) -> CodeModeSettings:
    data = {**_said(config.tools.code_mode), **given}
    return parse_node(CodeModeSettings, data, ("tools", "codeMode"))


def _said(node: Settings | None) -> dict[str, Any]:
    return {} if node is None else node.model_dump(by_alias=True, exclude_unset=True)


def _with_tools(config: Config, **changed: Settings) -> Config:
    tools = config.tools.model_copy(update=changed)
    return config.model_copy(update={"tools": tools})
