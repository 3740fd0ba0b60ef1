"""Owns plugin namespaces in guest code: `Issues.list(...)` and `namespaces.Issues.list(...)`.

A call is a catalog call of one exact tool: the same policy, hooks, approvals and record (rule 6.4).
Scopes belong to a run: they are made once, when its first cell starts.

Above: the runtime. Below: `codemode.namespaces`, `extensions.calling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcell.base.jsontext import Json
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.calling import (
    bad_input,
    call_value,
    refuse_namespaces,
    text_at,
    unknown,
)
from toolcell.codemode.extensions.contract import (
    Calling,
    CellContext,
    GuestExtension,
    prelude,
)
from toolcell.codemode.namespaces.registry import (
    NamespaceContext,
    NamespaceHolder,
    NamespaceRegistration,
    RegisteredNamespace,
    registered_namespace,
    registered_namespaces,
)
from toolcell.codemode.namespaces.scope import Scope, read_scope, unsafe
from toolcell.codemode.view import GuestView
from toolcell.config.tree import Config
from toolcell.errors import CallError, CellError
from toolcell.protocol.scope import RunScope


class RunNamespaces:
    """The namespaces one run sees, and their scopes.

    Args:
        scope: The run.
        config: The configuration, for `create_scope`.
        aborted: Whether the run was given up.
        tell: Told what an operator should know.
        holder: The runtime that loaded the plugins; None sees the newest of each.
    """

    def __init__(
        self,
        scope: RunScope,
        *,
        config: Config | None = None,
        aborted: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda _: None,
        holder: NamespaceHolder | None = None,
    ) -> None:
        self._context = NamespaceContext(
            agent_id=scope.agent_id,
            session_key=scope.session_key,
            session_id=scope.session_id,
            run_id=scope.run_id,
            config=config,
            aborted=aborted,
        )
        self._scopes: dict[str, Scope] = {}
        self._tell = tell
        self._holder = holder

    def extension(self) -> GuestExtension:
        """Return the extension of this run."""
        return GuestExtension(
            name="namespaces",
            script=prelude("namespaces"),
            start=self._start,
            handlers={"namespaces.call": Calling(self._call, refuse_namespaces)},
            prompt=self._prompt,
        )

    def _start(self, cell: CellContext) -> Json:
        """Give a cell the namespaces it sees; raises CellError for a scope that cannot be used."""
        return [
            {
                "id": each.registration.id,
                "name": each.registration.global_name,
                "bare": each.registration.global_name not in cell.view.native,
                "node": self._scope(each.registration).node,
            }
            for each in visible(cell.view, self._holder)
        ]

    async def _call(self, arguments: list[Any], cell: CellContext) -> str:
        found = _named(text_at(arguments, 0), cell.view, self._holder)
        path = text_at(arguments, 1)
        tool = self._scope(found.registration).tools.get(tuple(path.split(".")))
        if tool is None:
            raise _not_callable(path)
        entry = _entry(found, tool.tool_name, cell.view)
        given = _given(arguments)
        try:
            mapped = tool.input(given)
        except Exception as error:
            called = f"{found.registration.global_name}.{path}"
            self._tell(f"the input mapper of {called} failed: {type(error).__name__}: {error}")
            msg = f"{called} cannot be called with these arguments."
            raise bad_input(msg) from error
        return await call_value(entry, mapped, cell)

    def _scope(self, registration: NamespaceRegistration) -> Scope:
        made = self._scopes.get(registration.id)
        if made is None:
            where = f"the scope of namespace {registration.global_name!r}"
            made = read_scope(
                _created(registration, self._context),
                where=where,
                allowed=registration.required_tool_names,
            )
            self._scopes[registration.id] = made
        return made

    def _prompt(self, view: GuestView) -> str | None:
        told = [self._told(each.registration) for each in visible(view, self._holder)]
        return "\n- ".join(told) if told else None

    def _told(self, registration: NamespaceRegistration) -> str:
        more = self._more(registration)
        text = f"{registration.global_name}: {registration.description}"
        return f"{text} {more}" if more else text

    def _more(self, registration: NamespaceRegistration) -> str | None:
        """Return the prompt; one that fails is left out and told, and takes no run down."""
        prompt = registration.prompt
        if not callable(prompt):
            return prompt
        try:
            made: object = prompt(self._context)
        except Exception as error:  # noqa: BLE001 - a plugin's own code, told to the operator
            problem = f"failed: {type(error).__name__}: {error}"
        else:
            if isinstance(made, str):
                return made
            problem = f"gave {type(made).__name__}, not text"
        self._tell(f"the prompt of namespace {registration.global_name!r} {problem}")
        return None


def visible(view: GuestView, holder: NamespaceHolder | None = None) -> list[RegisteredNamespace]:
    """Return the namespaces whose required tools are all there, of their own plugin (rule 6.2)."""
    return [each for each in registered_namespaces(holder) if _sees(view, each)]


def _sees(view: GuestView, namespace: RegisteredNamespace) -> bool:
    owner, owned = namespace.plugin_id, view.owned
    return all((owner, name) in owned for name in namespace.registration.required_tool_names)


def _created(registration: NamespaceRegistration, context: NamespaceContext) -> Any:
    """Call the plugin's own code; whatever it raises fails the cell before the guest runs."""
    try:
        return registration.create_scope(context)
    except Exception as error:
        msg = f"createScope of namespace {registration.global_name!r} failed: {error}"
        raise CellError(msg, code="internal_error", phase="host") from error


def _named(
    namespace_id: str, view: GuestView, holder: NamespaceHolder | None
) -> RegisteredNamespace:
    found = registered_namespace(namespace_id, holder)
    if found is not None and _sees(view, found):
        return found
    msg = f"Unknown code mode namespace: {namespace_id}"
    raise unknown(msg)


def _not_callable(path: str) -> CallError:
    for part in path.split("."):
        if unsafe(part):
            return bad_input(f"Invalid code mode namespace path segment: {part}")
    return unknown(f"Code mode namespace path is not callable: {path}")


def _given(arguments: list[Any]) -> list[Any]:
    """Return the guest's arguments: one by itself, several as a list behind a null."""
    if len(arguments) <= 3:
        return arguments[2:]
    if not isinstance(arguments[3], list):
        raise bad_input("a malformed bridge request was refused.")
    return arguments[3]


def _entry(found: RegisteredNamespace, tool_name: str, view: GuestView) -> Entry:
    """Return the tool by its exact catalog id, whatever else has its name (BEHAVIOURS 256)."""
    entry = view.by_id.get(f"openclaw:{found.plugin_id}:{tool_name}")
    if entry is not None:
        return entry
    msg = f"the tool {tool_name!r} of this namespace is not available."
    raise unknown(msg)
