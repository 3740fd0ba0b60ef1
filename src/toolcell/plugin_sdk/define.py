"""Owns `ToolPlugin` and `define_tool_plugin`: what a plugin is.

Above: plugins and their loader. Below: `plugin_sdk.builder`, `tools`. Refuses to know: loading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict, Unpack

from toolcell.errors import PluginError
from toolcell.plugin_sdk.api import PluginApi
from toolcell.plugin_sdk.builder import ToolBuilder
from toolcell.tools.decorator import AnyTool

PLUGIN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
RESERVED_IDS: Final = frozenset({"core"})
"""`openclaw:core:<tool>` is the id of local tools; a plugin must not pose as them."""

PluginTools: TypeAlias = Sequence[AnyTool] | Callable[[ToolBuilder], Sequence[AnyTool]]
"""Tools and functions, or a function that makes them with the builder it is handed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlugin:
    """A plugin: an id, words for people, and tools.

    Attributes:
        id: `[a-z0-9][a-z0-9-]*`, at most 64 characters: its tools are `openclaw:<id>:<tool>`.
        name: For people.
        description: What its tools are for.
        version: Its own version, for `doctor`.
        tools: Its tools; a function is called when the plugin is loaded.
        register: Called with a `PluginApi` when the plugin is loaded, after `tools`.
    """

    id: str
    name: str
    description: str
    version: str | None = None
    tools: PluginTools = ()
    register: Callable[[PluginApi], object] | None = None

    def __post_init__(self) -> None:
        """Refuse an id that cannot be part of a catalog id."""
        check_plugin_id(self.id)


class PluginOptions(TypedDict, total=False):
    """What else `define_tool_plugin` takes; see `ToolPlugin`."""

    version: str | None
    register: Callable[[PluginApi], object] | None


def define_tool_plugin(
    *,
    id: str,  # noqa: A002 - the contract's own name
    name: str,
    description: str,
    tools: PluginTools = (),
    **options: Unpack[PluginOptions],
) -> ToolPlugin:
    """Define a plugin.

    ```python
    plugin = define_tool_plugin(
        id="shipping",
        name="Shipping",
        description="Shipment tools.",
        tools=lambda tool: [
            tool(
                name="shipping_list",
                description="List shipments.",
                parameters={"type": "object", "properties": {}, "additionalProperties": False},
                output_schema=list[Shipment],
                execute=load_shipments,
            ),
        ],
    )
    ```

    Raises:
        PluginError: the id is not one, or is reserved.
    """
    unknown = sorted(set(options) - set(PluginOptions.__annotations__))
    if unknown:
        message = f"plugin {id!r}: define_tool_plugin has no option {unknown[0]!r}."
        raise PluginError(message)
    return ToolPlugin(id=id, name=name, description=description, tools=tools, **options)


def check_plugin_id(plugin_id: object) -> str:
    """Return a plugin id; raises `PluginError` for what is none."""
    if not isinstance(plugin_id, str) or not PLUGIN_ID.match(plugin_id):
        message = (
            f"plugin id {plugin_id!r} must be 1 to 64 of a-z, 0-9 and '-', "
            "starting with a letter or digit."
        )
        raise PluginError(message)
    if plugin_id in RESERVED_IDS:
        message = f"plugin id {plugin_id!r} is reserved; choose another."
        raise PluginError(message)
    return plugin_id
