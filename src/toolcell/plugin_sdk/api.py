"""Owns `PluginApi`: what a plugin's `register` function is handed while it is loaded.

Above: `plugin_sdk.define`, `plugin_sdk.activation`. Below: `tools`. Refuses to know: loading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolcell.errors import PluginError
from toolcell.tools.decorator import AnyTool, as_tool
from toolcell.tools.tool import Tool


class PluginApi:
    """Takes what a plugin registers. It is closed once the plugin is loaded."""

    def __init__(self, plugin_id: str) -> None:
        self._plugin_id = plugin_id
        self._tools: list[Tool] = []
        self._unload: list[Callable[[], object]] = []
        self._open = True

    @property
    def plugin_id(self) -> str:
        """The id of the plugin that is being loaded."""
        return self._plugin_id

    def register_tool(
        self,
        given: AnyTool | None = None,
        *,
        factory: Callable[[], AnyTool | Sequence[AnyTool] | None] | None = None,
    ) -> None:
        """Add a tool, or what a factory makes.

        Args:
            given: A `Tool`, or a function that becomes one as with `@tool`.
            factory: Called at once; returns a tool, several, or None to add nothing.

        Raises:
            PluginError: not exactly one of the two is given, or the plugin is loaded already.
        """
        self._check_open()
        if (given is None) == (factory is None):
            message = (
                f"plugin {self._plugin_id!r}: register_tool takes a tool or factory=, not both."
            )
            raise PluginError(message)
        made = given if factory is None else factory()
        if made is None:
            return
        for each in made if isinstance(made, list | tuple) else (made,):
            self._tools.append(as_tool(each))

    def on_unload(self, callback: Callable[[], object]) -> None:
        """Have `callback()` run when the plugin is unloaded, or when loading it fails."""
        self._check_open()
        self._unload.append(callback)

    def close(self) -> tuple[tuple[Tool, ...], tuple[Callable[[], object], ...]]:
        """Take no more; return the tools, and the callbacks in the order to run them."""
        self._open = False
        return tuple(self._tools), tuple(reversed(self._unload))

    def _check_open(self) -> None:
        if not self._open:
            message = f"plugin {self._plugin_id!r} is loaded; register its tools while it loads."
            raise PluginError(message)
