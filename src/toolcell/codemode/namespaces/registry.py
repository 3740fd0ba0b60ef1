"""Owns the registered namespaces of the process: the one registry of rule 6.1.

A trusted loader registers for a plugin and clears with it. Process-wide state on purpose: it is one
of the two exceptions the design names.

Above: loaders, the runtime. Below: `catalog.reserved`, `errors`. Refuses to know: runs.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
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


_registered: dict[str, RegisteredNamespace] = {}
_loaded: Counter[str] = Counter()
"""How many runtimes of the process have a plugin loaded, by its id."""
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

    Raises:
        PluginError: a field is missing or wrong, or the id or the global is taken or reserved.
    """
    owner = _text(plugin_id, "plugin id")
    made = _made(registration)
    _check(made)
    with _lock:
        if made.id in _registered:
            msg = f'namespace id "{made.id}" is already registered'
            raise PluginError(msg)
        for other in _registered.values():
            if other.registration.global_name == made.global_name:
                taken = other.registration.id
                msg = f'globalName "{made.global_name}" is already registered by "{taken}"'
                raise PluginError(msg)
        _registered[made.id] = RegisteredNamespace(owner, made)


def clear_code_mode_namespaces_for_plugin(plugin_id: str) -> None:
    """Forget the namespaces of a plugin: it was disabled, unloaded or rolled back."""
    with _lock:
        for key in [k for k, each in _registered.items() if each.plugin_id == plugin_id]:
            del _registered[key]


def clear_code_mode_namespaces_for_test() -> None:
    """Forget every namespace, so that tests do not see each other's."""
    with _lock:
        _registered.clear()


def keep_code_mode_namespaces(
    plugin_id: str, registrations: Sequence[NamespaceRegistration] = ()
) -> Callable[[], None]:
    """Count one more runtime that loads a plugin; for loaders.

    Runtimes share the registry, so a namespace must outlive the first of them that closes.

    Args:
        plugin_id: The plugin.
        registrations: Its own namespaces; the first runtime registers them.

    Returns:
        What to call once when the plugin failed to load or is unloaded: the last one clears.

    Raises:
        PluginError: an id or a global belongs to another plugin; nothing is counted then.
    """
    with _lock:
        for each in registrations:
            found = _registered.get(each.id)
            if found is None or found.plugin_id != plugin_id:
                _register_or_undo(plugin_id, each)
        _loaded[plugin_id] += 1
    return lambda: _let_go(plugin_id)


def _register_or_undo(plugin_id: str, registration: NamespaceRegistration) -> None:
    try:
        register_code_mode_namespace_for_plugin(plugin_id, registration)
    except PluginError:
        if not _loaded[plugin_id]:
            clear_code_mode_namespaces_for_plugin(plugin_id)
        raise


def _let_go(plugin_id: str) -> None:
    with _lock:
        _loaded[plugin_id] -= 1
        if _loaded[plugin_id] <= 0:
            del _loaded[plugin_id]
            clear_code_mode_namespaces_for_plugin(plugin_id)


def registered_namespaces() -> tuple[RegisteredNamespace, ...]:
    """Return what is registered, by id."""
    with _lock:
        found = tuple(_registered.values())
    return tuple(sorted(found, key=lambda each: sort_key(each.registration.id)))


def registered_namespace(namespace_id: str) -> RegisteredNamespace | None:
    """Return one namespace by its id; None when it is not registered (any more)."""
    return _registered.get(namespace_id)


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
