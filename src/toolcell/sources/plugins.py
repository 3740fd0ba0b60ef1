"""Owns plugins as sources: found by entry point or path, and loaded so that none hurts another.

Above: `app`, the public face. Below: `plugin_sdk`, `sources.contract`. Refuses to know: policy.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

from toolcell.base.identifiers import digest
from toolcell.config.paths import object_name
from toolcell.errors import PluginError, ToolcellError
from toolcell.plugin_sdk.activation import Activation, activate
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.sources.contract import Unavailable
from toolcell.tools.tool import Group, SourcedTool

ENTRY_POINT_GROUP: Final = "toolcell.plugins"

Keep: TypeAlias = Callable[[ToolPlugin], Callable[[], object]]
"""Told of a plugin before it is activated; gives what to call once it is gone again."""


def _keep_nothing(_: ToolPlugin) -> Callable[[], object]:
    return lambda: None


class PluginSource:
    """The tools of one plugin: `openclaw:<plugin-id>:<tool>` (rule 4.1)."""

    def __init__(
        self, plugin: ToolPlugin, group: Group = Group.EXTERNAL, *, keep: Keep = _keep_nothing
    ) -> None:
        """Activate the plugin; raises `PluginError` when that fails, and nothing of it stays."""
        self._gone = keep(plugin)
        try:
            self._activation: Activation | None = activate(plugin)
        except PluginError:
            self._gone()
            raise
        self._plugin = plugin
        self._group = group
        self._tools = tuple(
            SourcedTool(tool=each, source="openclaw", owner=plugin.id, group=group)
            for each in self._activation.tools
        )

    @property
    def plugin(self) -> ToolPlugin:
        """The plugin."""
        return self._plugin

    @property
    def group(self) -> Group:
        """Bundled or external."""
        return self._group

    @property
    def version(self) -> int:
        """The tools of a plugin stay as they were loaded."""
        return 1

    def tools(self) -> Sequence[SourcedTool]:
        """Return its tools in the order it gave them."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """Return nothing: a plugin that fails is never made a source."""
        return ()

    async def start(self) -> None:
        """Do nothing; it is active already."""

    async def aclose(self) -> None:
        """Unload it."""
        self.unload()

    def unload(self) -> None:
        """Run the plugin's unload callbacks, once; what it registered elsewhere goes too."""
        activation, self._activation = self._activation, None
        if activation is not None:
            activation.close()
            self._gone()


class PluginSet:
    """All plugins as one source: those that loaded, and why the others did not."""

    def __init__(self, sources: Sequence[PluginSource], problems: Sequence[Unavailable]) -> None:
        self._sources = tuple(sources)
        self._problems = tuple(problems)
        self._tools = tuple(each for source in self._sources for each in source.tools())

    @property
    def plugins(self) -> Sequence[PluginSource]:
        """Those that loaded: bundled ones first."""
        return self._sources

    @property
    def version(self) -> int:
        """Plugins are loaded once."""
        return 1

    def tools(self) -> Sequence[SourcedTool]:
        """Return the tools of every plugin."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """Return each plugin that did not load, with its file and the remedy."""
        return self._problems

    async def start(self) -> None:
        """Do nothing; they are active already."""

    async def aclose(self) -> None:
        """Unload them, the last one first."""
        for source in reversed(self._sources):
            await source.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A plugin to load: where it is said to be, and how to get it."""

    owner: str
    place: str
    group: Group
    find: Callable[[], ToolPlugin]


def load_plugins(
    paths: Sequence[str] = (),
    *,
    bundled: Sequence[ToolPlugin] = (),
    entry_points: bool = True,
    deny: Sequence[str] = (),
    base_dir: Path | None = None,
    keep: Keep = _keep_nothing,
) -> PluginSet:
    """Find and activate plugins: bundled, then installed ones, then paths of the config.

    Args:
        paths: A Python file, a package folder, or `module:attribute`. The file defines `plugin`
            (see `define_tool_plugin`) or a function `register(api)`.
        bundled: Plugins that are part of the product.
        entry_points: Whether to load installed ones (group `toolcell.plugins`).
        deny: Ids that are never activated. A denied installed plugin whose entry point has that
            name is not even imported.
        base_dir: What relative paths start from; default the current folder.
        keep: Told of each plugin that is activated.

    Returns:
        What loaded, and for each that did not an `Unavailable` that names the file and the remedy.
    """
    denied = frozenset(deny)
    sources: list[PluginSource] = []
    problems: list[Unavailable] = []
    taken: dict[str, str] = {}
    for candidate in _candidates(paths, bundled, entry_points=entry_points, base_dir=base_dir):
        if candidate.owner in denied:
            continue
        try:
            plugin = candidate.find()
            if plugin.id in denied:
                continue
            _refuse_taken(plugin.id, taken)
            sources.append(PluginSource(plugin, candidate.group, keep=keep))
            taken[plugin.id] = candidate.place
        except PluginError as error:
            reason = f"{candidate.place}: {error.message}"
            # The reason holds paths and words of the host, which are no business of a model's.
            told = f"plugin {PurePath(candidate.owner).stem!r} could not be loaded."
            problems.append(Unavailable(owner=candidate.owner, reason=reason, told=told))
    return PluginSet(sources, problems)


def _refuse_taken(plugin_id: str, taken: Mapping[str, str]) -> None:
    if plugin_id in taken:
        message = f"plugin id {plugin_id!r} is taken by {taken[plugin_id]}; change one id."
        raise PluginError(message)


def _candidates(
    paths: Sequence[str],
    bundled: Sequence[ToolPlugin],
    *,
    entry_points: bool,
    base_dir: Path | None,
) -> Iterator[_Candidate]:
    for plugin in bundled:
        yield _Candidate(
            owner=plugin.id, place="bundled", group=Group.BUNDLED, find=_constant(plugin)
        )
    if entry_points:
        found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
        for point in sorted(found, key=lambda each: (each.name, each.value)):
            package = point.dist.name if point.dist else "unknown"
            place = f"installed package {package!r} (entry point {point.name} = {point.value})"
            yield _Candidate(
                owner=point.name, place=place, group=Group.EXTERNAL, find=_installed(point)
            )
    for text in paths:
        yield _Candidate(
            owner=text, place=f"plugin {text!r}", group=Group.EXTERNAL, find=_at(text, base_dir)
        )


def _constant(plugin: ToolPlugin) -> Callable[[], ToolPlugin]:
    return lambda: plugin


def _installed(point: importlib.metadata.EntryPoint) -> Callable[[], ToolPlugin]:
    return lambda: _as_plugin(_guarded(point.load), point.name)


def _at(text: str, base_dir: Path | None) -> Callable[[], ToolPlugin]:
    def find() -> ToolPlugin:
        named = object_name(text)
        if named is not None:
            module_name, attribute = named
            module = _guarded(lambda: importlib.import_module(module_name))
            if not hasattr(module, attribute):
                message = f"module {module_name!r} has no {attribute!r}."
                raise PluginError(message)
            return _as_plugin(getattr(module, attribute), attribute)
        return _from_file((base_dir or Path()) / Path(text).expanduser())

    return find


def _from_file(path: Path) -> ToolPlugin:
    target = path / "__init__.py" if path.is_dir() else path
    if not target.is_file():
        message = f"there is no file {str(target)!r}. Correct the path, or write module:attribute."
        raise PluginError(message)
    module = _import_file(target)
    if isinstance(getattr(module, "plugin", None), ToolPlugin):
        return _as_plugin(module.plugin, path.stem)
    if callable(getattr(module, "register", None)):
        return _as_plugin(module.register, path.stem)
    message = (
        f"{str(target)!r} defines no plugin: assign define_tool_plugin(...) to `plugin`, "
        "or define register(api)."
    )
    raise PluginError(message)


def _import_file(path: Path) -> Any:
    """Import a file under a name of its own; a failed import leaves nothing behind."""
    resolved = path.resolve()
    name = f"toolcell_plugin_{resolved.parent.name if path.stem == '__init__' else path.stem}"
    name = f"{name}_{digest(str(resolved), length=8)}"
    locations = [str(resolved.parent)] if path.stem == "__init__" else None
    spec = importlib.util.spec_from_file_location(
        name, resolved, submodule_search_locations=locations
    )
    if spec is None or spec.loader is None:
        message = f"{str(path)!r} is no Python file; its name must end in .py."
        raise PluginError(message)
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader
    sys.modules[name] = module
    try:
        _guarded(lambda: loader.exec_module(module))
    except PluginError:
        for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
            del sys.modules[loaded]
        raise
    return module


def _guarded(load: Callable[[], Any]) -> Any:
    """Run foreign code that is being imported; whatever it raises becomes a `PluginError`."""
    try:
        return load()
    except ToolcellError as error:
        raise PluginError(error.message) from error
    except (Exception, SystemExit) as error:  # foreign code must not take the host down
        place = _last_place(error)
        message = (
            f"it cannot be imported: {type(error).__name__}: {error}{place}. Fix or remove it."
        )
        raise PluginError(message) from error


def _last_place(error: BaseException) -> str:
    """Return ` (file, line n)` of where the error was raised, outside the import machinery."""
    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if "importlib" not in frame.filename and frame.filename != __file__:
            return f" ({frame.filename}, line {frame.lineno})"
    return ""


def _as_plugin(found: Any, name: str) -> ToolPlugin:
    """Return a plugin for what was found: one already, or a function `register(api)`."""
    if isinstance(found, ToolPlugin):
        return found
    if callable(found):
        plugin_id = name.lower().replace("_", "-")
        doc = (getattr(found, "__doc__", None) or "").strip()
        return ToolPlugin(id=plugin_id, name=name, description=doc, register=found)
    message = f"{name!r} is a {type(found).__name__}, neither a ToolPlugin nor register(api)."
    raise PluginError(message)
