"""Owns putting the few settings a caller names on top of a config tree.

Above: the library face, commands with `--executor`. Below: `config.parse`.
"""

from __future__ import annotations

from toolcell.config.code_mode import ExecutorName, GuestApi
from toolcell.config.parse import parse_config
from toolcell.config.tool_search import ToolSearchMode
from toolcell.config.tree import Config


def with_code_mode(
    config: Config, *, executor: ExecutorName | None = None, guest_api: GuestApi | None = None
) -> Config:
    """Return `config` with code mode on, and these choices in place of its own."""
    data = config.model_dump(by_alias=True, exclude_unset=True)
    tools = data.setdefault("tools", {})
    given = {**(tools.get("codeMode") or {}), "enabled": True}
    if executor is not None:
        given["executor"] = executor
    if guest_api is not None:
        given["guestApi"] = guest_api
    tools["codeMode"] = given
    return parse_config(data)


def with_tool_search(config: Config, *, mode: ToolSearchMode | None = None) -> Config:
    """Return `config` with Tool Search on and code mode off, and this mode in place of its own."""
    data = config.model_dump(by_alias=True, exclude_unset=True)
    tools = data.setdefault("tools", {})
    given = {**(tools.get("toolSearch") or {}), "enabled": True}
    if mode is not None:
        given["mode"] = mode
    tools["toolSearch"] = given
    tools["codeMode"] = {**(tools.get("codeMode") or {}), "enabled": False}
    return parse_config(data)
