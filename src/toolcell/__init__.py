"""toolcell: Code Mode and Tool Search for AI agents.

The names below are the public face; everything else may change. Each is imported when it is first
used, so that `python -m toolcell...` servers and tools start without the rest.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "app.host": ("Host",),
    "codemode.results": ("Completed", "Failed", "Waiting"),
    "errors": ("CallError", "ConfigError", "ToolcellError"),
    "library.code_mode": ("CodeMode",),
    "library.tool_search": ("ToolSearch",),
    "plugin_sdk.define": ("ToolPlugin", "define_tool_plugin"),
    "protocol.approvals": ("ApprovalAnswer", "ApprovalRequest"),
    "protocol.hooks": (
        "AfterToolCall",
        "Ask",
        "BeforeToolCall",
        "Block",
        "Hooks",
        "Proceed",
        "ReplaceDetails",
    ),
    "tools.by_input": ("output_by_input",),
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
