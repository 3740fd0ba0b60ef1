"""Owns the registered namespaces of the process: the one registry of rule 6.1.

A trusted loader registers for a plugin and clears with it. Process-wide state on purpose: it is one
of the two exceptions the design names. Ids and globals are one plugin's in the whole process; each
runtime that loads that plugin has its own definitions of them, because `create_scope` belongs to
what the plugin opened when it was loaded there.

Above: loaders, the runtime. Below: `catalog.reserved`, `errors`. Refuses to know: runs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

from toolcell.catalog.order import sort_key
from toolcell.catalog.reserved import INTERNAL_PREFIX, RESERVED_GLOBALS, STANDARD_GLOBALS
from toolcell.config.tree import Config
from toolcell.errors import PluginError

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceContext:
    """What `create_scope` and a prompt function are told of the run."""

    agent_id: str
    session_key: str
    session_id: str
    run_id: str
    config: Config | None = None
    aborted: Callable[[], bool] = lambda: False


Prompt: TypeAlias = str | Callable[[NamespaceContext], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRegistration:
    """One namespace.

    Attributes:
        id: Its key in the registry.
        global_name: Its global in guest code, and its member of `namespaces`.
        description: Joins the description of `exec` while it is visible.
        required_tool_names: Tools of the plugin; it is visible only when all of them are.
        create_scope: Called once for each run; returns plain data and tool markers.
        prompt: Further words for the description, or a function of the run that gives them.
    """

    id: str
    global_name: str
    description: str
    required_tool_names: Sequence[str]
    create_scope: Callable[[NamespaceContext], Any]
    prompt: Prompt | None = None


@dataclass(frozen=True, slots=True)
class RegisteredNamespace:
    """A registration and the plugin it is for."""

    plugin_id: str
    registration: NamespaceRegistration


class NamespaceHolder:
    """One runtime that loads plugins; told apart by identity."""

    __slots__ = ()


_Share: TypeAlias = dict[str, RegisteredNamespace]


@dataclass(slots=True)
class _Plugin:
    """What the process knows of one plugin.

    Attributes:
        loads: Who has it loaded, oldest first, and the thread that loaded it.
        shares: The namespaces of each of them by id, the newest last; those under None were
            registered by nobody who loaded it, or their holder is gone.
    """

    loads: list[tuple[NamespaceHolder, int]] = field(default_factory=list)
    shares: dict[NamespaceHolder | None, _Share] = field(default_factory=dict)

    def seen_by(self, holder: NamespaceHolder | None) -> _Share:
        """Return the holder's own, or the newest where it has none."""
        own = self.shares.get(holder)
        return own if own is not None else next(reversed(self.shares.values()), {})

    def loading(self) -> NamespaceHolder | None:
        """Return whose plugin it is that registers now: activation runs in one thread."""
        thread = threading.get_ident()
        here = [load for load in self.loads if load[1] == thread] or self.loads
        return here[-1][0] if here else None


_plugins: dict[str, _Plugin] = {}
_lock = threading.RLock()
_CAMEL: Final = {
    "globalName": "global_name",
    "requiredToolNames": "required_tool_names",
    "createScope": "create_scope",
}


def register_code_mode_namespace_for_plugin(
    plugin_id: str, registration: NamespaceRegistration | Mapping[str, Any]
) -> None:
    """Register a namespace for a plugin; its mapping form takes the contract's own names.

    Each runtime that loads the plugin registers its own; the ids and globals stay the plugin's.

    Raises:
        PluginError: a field is missing or wrong, or the id or the global is taken or reserved.
    """
    owner = _text(plugin_id, "plugin id")
    made = _made(registration)
    _check(made)
    with _lock:
        known = _plugins.get(owner) or _Plugin()
        holder = known.loading()
        _refuse_taken(owner, known.shares.get(holder, {}), made)
        _plugins[owner] = known
        known.shares.setdefault(holder, {})[made.id] = RegisteredNamespace(owner, made)


def _refuse_taken(owner: str, own: _Share, made: NamespaceRegistration) -> None:
    """Refuse an id or a global of another plugin, or of the same one in the same runtime."""
    others = (
        share
        for plugin_id, plugin in _plugins.items()
        if plugin_id != owner
        for share in plugin.shares.values()
    )
    for share in (own, *others):
        for each in share.values():
            if each.registration.id == made.id:
                by = "" if each.plugin_id == owner else f' by plugin "{each.plugin_id}"'
                msg = f'namespace id "{made.id}" is already registered{by}'
                raise PluginError(msg)
            if each.registration.global_name == made.global_name:
                taken = each.registration.id
                by = "" if each.plugin_id == owner else f' of plugin "{each.plugin_id}"'
                msg = f'globalName "{made.global_name}" is already registered by "{taken}"{by}'
                raise PluginError(msg)


def clear_code_mode_namespaces_for_plugin(plugin_id: str) -> None:
    """Forget the namespaces of a plugin: it was disabled, unloaded or rolled back."""
    with _lock:
        known = _plugins.get(plugin_id)
        if known is not None:
            known.shares.clear()
            if not known.loads:
                del _plugins[plugin_id]


def clear_code_mode_namespaces_for_test() -> None:
    """Forget every namespace, so that tests do not see each other's."""
    with _lock:
        for plugin_id in tuple(_plugins):
            clear_code_mode_namespaces_for_plugin(plugin_id)


def keep_code_mode_namespaces(
    plugin_id: str,
    registrations: Sequence[NamespaceRegistration] = (),
    *,
    holder: NamespaceHolder | None = None,
) -> Callable[[], None]:
    """Count one more runtime that loads a plugin; for loaders.

    What the plugin registers from now on in this thread is that runtime's, and goes with it.

    Args:
        plugin_id: The plugin.
        registrations: Its own namespaces, registered at once.
        holder: The runtime; a new one when absent.

    Returns:
        What to call once when the plugin failed to load or is unloaded: the last one clears.

    Raises:
        PluginError: an id or a global belongs to another plugin; nothing is counted then.
    """
    load = (holder or NamespaceHolder(), threading.get_ident())
    with _lock:
        _plugins.setdefault(plugin_id, _Plugin()).loads.append(load)
        try:
            for each in registrations:
                register_code_mode_namespace_for_plugin(plugin_id, each)
        except PluginError:
            _let_go(plugin_id, load)
            raise
    return lambda: _let_go(plugin_id, load)


def _let_go(plugin_id: str, load: tuple[NamespaceHolder, int]) -> None:
    with _lock:
        known = _plugins[plugin_id]
        known.loads.remove(load)
        if not known.loads:
            del _plugins[plugin_id]
            return
        holder = load[0]
        left = [each for each, _ in known.loads]
        if holder in left:
            return
        share = known.shares.pop(holder, {})
        # A runtime whose plugin registered nothing of its own lives on those of the others.
        if any(each not in known.shares for each in left):
            known.shares[None] = {**known.shares.get(None, {}), **share}


def registered_namespaces(
    holder: NamespaceHolder | None = None,
) -> tuple[RegisteredNamespace, ...]:
    """Return what is registered, by id, as `holder` sees it: its own before others'."""
    with _lock:
        found = [each for known in _plugins.values() for each in known.seen_by(holder).values()]
    return tuple(sorted(found, key=lambda each: sort_key(each.registration.id)))


def registered_namespace(
    namespace_id: str, holder: NamespaceHolder | None = None
) -> RegisteredNamespace | None:
    """Return one namespace by its id; None when it is not registered (any more)."""
    with _lock:
        shares = [known.seen_by(holder) for known in _plugins.values()]
    return next((share[namespace_id] for share in shares if namespace_id in share), None)


def _made(given: NamespaceRegistration | Mapping[str, Any]) -> NamespaceRegistration:
    if isinstance(given, NamespaceRegistration):
        return given
    values = {_CAMEL.get(key, key): value for key, value in given.items()}
    known = {field.name for field in fields(NamespaceRegistration)}
    unknown = sorted(set(values) - known)
    if unknown:
        msg = f"a namespace registration has no {unknown[0]!r}; it has {', '.join(sorted(known))}"
        raise PluginError(msg)
    missing = sorted(known - {"prompt"} - set(values))
    if missing:
        msg = f"a namespace registration needs {missing[0]!r}"
        raise PluginError(msg)
    return NamespaceRegistration(**values)


def _check(made: NamespaceRegistration) -> None:
    _text(made.id, "namespace id")
    _text(made.description, "namespace description")
    _check_global(made.global_name)
    names = list(made.required_tool_names)
    if not names:
        msg = f"namespace {made.id!r} needs at least one tool name in requiredToolNames"
        raise PluginError(msg)
    for name in names:
        _text(name, "tool name in requiredToolNames")
    if not callable(made.create_scope):
        msg = f"createScope of namespace {made.id!r} must be a function"
        raise PluginError(msg)
    if made.prompt is not None and not isinstance(made.prompt, str) and not callable(made.prompt):
        msg = f"prompt of namespace {made.id!r} must be text or a function"
        raise PluginError(msg)


def _check_global(name: Any) -> None:
    if not isinstance(name, str) or not _IDENTIFIER.match(name):
        msg = f"globalName {name!r} must be an identifier of ASCII letters, digits, '_' and '$'"
        raise PluginError(msg)
    if name in STANDARD_GLOBALS:
        msg = f'globalName "{name}" collides with a global of JavaScript'
        raise PluginError(msg)
    if name in RESERVED_GLOBALS or name.startswith(INTERNAL_PREFIX):
        msg = f'globalName "{name}" is reserved'
        raise PluginError(msg)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = f"{what} must be a non-empty string, not {value!r}"
        raise PluginError(msg)
    return value
