"""Owns the trusted loader of plugins: which there are, and that their namespaces go with them.

Above: `app.runtime`. Below: `app.bundled`, `codemode.namespaces`, `sources.plugins`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolcell.codemode.namespaces.registry import NamespaceHolder, keep_code_mode_namespaces
from toolcell.config.tree import Config
from toolcell.errors import PluginError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.sources.plugins import PluginSet, PluginSource, load_plugins

if TYPE_CHECKING:  # imported by runtimes that have one
    from toolcell.app.bundled.contract import Bundled


def given_plugins(
    plugins: Sequence[ToolPlugin], holder: NamespaceHolder | None = None
) -> list[PluginSource]:
    """Activate plugins given in code, all or none.

    Args:
        plugins: The plugins.
        holder: The runtime that loads them.

    Raises:
        PluginError: one cannot be activated; those before it are unloaded again.
    """
    made: list[PluginSource] = []

    def keep(plugin: ToolPlugin) -> Callable[[], None]:
        return keep_code_mode_namespaces(plugin.id, holder=holder)

    try:
        for plugin in plugins:
            made.append(PluginSource(plugin, keep=keep))  # noqa: PERF401 - undone below
    except PluginError:
        for source in reversed(made):
            source.unload()
        raise
    return made


def configured_plugins(
    config: Config,
    folder: Path,
    *,
    load: bool = True,
    holder: NamespaceHolder | None = None,
) -> PluginSet:
    """Load the plugins that the config names: bundled ones, installed ones and those at paths.

    Args:
        config: The configuration.
        folder: Where bundled plugins keep their files.
        load: Whether any are loaded.
        holder: The runtime that loads them.
    """
    settings = config.plugins
    bundled = [_bundled(each, folder) for each in settings.bundled] if load else []
    namespaces = {id(each.plugin): each.namespaces for each in bundled}

    def keep(plugin: ToolPlugin) -> Callable[[], None]:
        return keep_code_mode_namespaces(plugin.id, namespaces.get(id(plugin), ()), holder=holder)

    return load_plugins(
        settings.paths if load else (),
        bundled=[each.plugin for each in bundled],
        entry_points=settings.entry_points and load,
        deny=settings.deny,
        keep=keep,
    )


def _bundled(name: str, folder: Path) -> Bundled:
    match name:
        case "notes":
            from toolcell.app.bundled.notes import notes  # noqa: PLC0415 - when it is chosen

            return notes(folder / "notes.db")
        case _:
            msg = f"plugins.bundled: there is no bundled plugin {name!r}; there is notes"
            raise PluginError(msg)
