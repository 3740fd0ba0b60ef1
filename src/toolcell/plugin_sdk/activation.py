"""Owns the step from a `ToolPlugin` to its tools, with everything undone when it fails.

Above: sources. Below: `plugin_sdk.define`. Refuses to know: where a plugin was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolcell.errors import PluginError, ToolcellError
from toolcell.plugin_sdk.api import PluginApi
from toolcell.plugin_sdk.builder import build_tool
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.tools.decorator import AnyTool
from toolcell.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A loaded plugin: its tools, and what to run when it goes."""

    plugin: ToolPlugin
    tools: tuple[Tool, ...]
    unload: tuple[Callable[[], object], ...] = ()

    def close(self) -> list[str]:
        """Run the unload callbacks, each one whatever the others do; return their failures."""
        return run_callbacks(self.unload)


def activate(plugin: ToolPlugin) -> Activation:
    """Build and register the tools of a plugin.

    Raises:
        PluginError: the plugin's code raised, or two of its tools share a name. Its unload
            callbacks have run.
    """
    api = PluginApi(plugin.id)
    try:
        for each in _given(plugin):
            api.register_tool(each)
        if plugin.register is not None:
            plugin.register(api)
    except (Exception, SystemExit) as error:  # a plugin is foreign code; it must not end the host
        _, unload = api.close()
        run_callbacks(unload)
        raise PluginError(_reason(plugin, error)) from error
    tools, unload = api.close()
    twice = _first_duplicate(tools)
    if twice is not None:
        run_callbacks(unload)
        message = f"plugin {plugin.id!r} has two tools named {twice!r}; rename one."
        raise PluginError(message)
    return Activation(plugin=plugin, tools=tools, unload=unload)


def run_callbacks(callbacks: Iterable[Callable[[], object]]) -> list[str]:
    """Call each; return what the failing ones raised, as text."""
    failures: list[str] = []
    for callback in callbacks:
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - foreign code; the others must run too
            failures.append(f"{type(error).__name__}: {error}")
    return failures


def _given(plugin: ToolPlugin) -> Iterable[AnyTool]:
    tools = plugin.tools
    # A FunctionTool is callable too, and no maker of tools.
    made: object = tools
    if callable(tools) and not isinstance(tools, Tool):
        made = tools(build_tool)
    if isinstance(made, str | bytes) or not isinstance(made, Iterable):
        message = f"plugin {plugin.id!r}: tools gave {type(made).__name__}, not a list of tools."
        raise PluginError(message)
    return list(made)


def _reason(plugin: ToolPlugin, error: BaseException) -> str:
    if isinstance(error, ToolcellError):
        text = error.message
        return text if plugin.id in text else f"plugin {plugin.id!r}: {text}"
    return f"plugin {plugin.id!r} failed while it was loaded: {type(error).__name__}: {error}"


def _first_duplicate(tools: Iterable[Tool]) -> str | None:
    seen: set[str] = set()
    for each in tools:
        if each.name in seen:
            return each.name
        seen.add(each.name)
    return None
