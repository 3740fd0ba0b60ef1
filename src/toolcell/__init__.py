"""toolcell: Code Mode and Tool Search for AI agents.

The names below are the public face; everything else may change. Each is imported when it is first
used, so that `python -m toolcell...` servers and tools start without the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcell.app.host import Host as Host
    from toolcell.codemode.results import Completed as Completed
    from toolcell.codemode.results import Failed as Failed
    from toolcell.codemode.results import Waiting as Waiting
    from toolcell.errors import CallError as CallError
    from toolcell.errors import ConfigError as ConfigError
    from toolcell.errors import ToolcellError as ToolcellError
    from toolcell.library.code_mode import CodeMode as CodeMode
    from toolcell.library.tool_search import ToolSearch as ToolSearch
    from toolcell.plugin_sdk.define import ToolPlugin as ToolPlugin
    from toolcell.plugin_sdk.define import define_tool_plugin as define_tool_plugin
    from toolcell.protocol.approvals import ApprovalAnswer as ApprovalAnswer
    from toolcell.protocol.hooks import Ask as Ask
    from toolcell.protocol.hooks import Block as Block
    from toolcell.protocol.hooks import Hooks as Hooks
    from toolcell.protocol.hooks import Proceed as Proceed
    from toolcell.protocol.hooks import ReplaceDetails as ReplaceDetails
    from toolcell.tools.content import ToolResult as ToolResult
    from toolcell.tools.decorator import tool as tool
    from toolcell.tools.tool import Tool as Tool
    from toolcell.tools.tool import ToolContext as ToolContext

_HOMES = {
    "app.host": ("Host",),
    "codemode.results": ("Completed", "Failed", "Waiting"),
    "errors": ("CallError", "ConfigError", "ToolcellError"),
    "library.code_mode": ("CodeMode",),
    "library.tool_search": ("ToolSearch",),
    "plugin_sdk.define": ("ToolPlugin", "define_tool_plugin"),
    "protocol.approvals": ("ApprovalAnswer",),
    "protocol.hooks": ("Ask", "Block", "Hooks", "Proceed", "ReplaceDetails"),
    "tools.content": ("ToolResult",),
    "tools.decorator": ("tool",),
    "tools.tool": ("Tool", "ToolContext"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one table


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME_OF:
        msg = f"module 'toolcell' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"toolcell.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
