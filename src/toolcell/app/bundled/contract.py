"""Owns what a bundled plugin is: a plugin and the namespaces that stand for its tools in cells.

Above: `app.plugins`. Below: `plugin_sdk`, `codemode.namespaces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolcell.codemode.namespaces.registry import NamespaceRegistration
from toolcell.plugin_sdk.define import ToolPlugin


@dataclass(frozen=True, slots=True)
class Bundled:
    """One bundled plugin."""

    plugin: ToolPlugin
    namespaces: Sequence[NamespaceRegistration] = ()
