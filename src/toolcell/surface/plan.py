"""Owns `SurfacePlan`: which tools one model call shows, under which names.

Above: the agent loop, the library face, enforcement. Below: `catalog.names`, `schema`, `tools`.
Refuses to know: whether code mode is on (`activation` says), how a call runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from toolcell.catalog.names import catalog_order, provider_names
from toolcell.errors import PayloadViolationError
from toolcell.protocol.messages import ToolDefinition
from toolcell.schema.normalise import provider_schema
from toolcell.schema.plain import SameObject
from toolcell.surface.client_names import check_client_names
from toolcell.tools.tool import SourcedTool, ToolKind

CONTROL_NAMES: Final = ("exec", "wait")
"""What the model sees of code mode, in this order (rule 2.2)."""

MAX_CONTROL_SCHEMAS: Final = 32

_QUIET: Final = frozenset({"wait"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VisibleTool:
    """A tool the model sees.

    Attributes:
        name: What the model calls it: `^[a-zA-Z0-9_-]{1,64}$`, unique in the plan.
        definition: What the provider is sent.
        sourced: The tool itself.
        quiet: Kept out of progress shown to people, as `wait` is (BEHAVIOURS 34).
    """

    name: str
    definition: ToolDefinition
    sourced: SourcedTool
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurfacePlan:
    """The visible tools of one model call.

    Making one costs a pass over every visible schema: keep it while the tools are the same.

    Attributes:
        visible: In the order they are sent.
        mode: `code` is enforced on the wire (rule 2.6).
        diagnostics: A sentence for each tool that was renamed or left out.
        prompt: Text that belongs into the system prompt: the directory of Tool Search.
        hidden: Finds a tool that is not shown by its exact name, for a model that calls it all the
            same (rule 10.4).
        allowed_names: The names of the visible tools.
    """

    visible: tuple[VisibleTool, ...]
    mode: Literal["direct", "code", "tool-search"]
    diagnostics: tuple[str, ...] = ()
    prompt: str = ""
    hidden: Callable[[str], SourcedTool | None] | None = None
    _by_name: Mapping[str, VisibleTool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Index by name."""
        object.__setattr__(self, "_by_name", {tool.name: tool for tool in self.visible})

    @property
    def allowed_names(self) -> frozenset[str]:
        """The names of the visible tools."""
        return frozenset(self._by_name)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a provider is sent, in order."""
        return tuple(tool.definition for tool in self.visible)

    def resolve(self, name: str) -> VisibleTool | None:
        """Return the tool a model means; surrounding whitespace is forgiven (CN-08)."""
        trimmed = name.strip()
        shown = self._by_name.get(name) or self._by_name.get(trimmed)
        if shown is not None or self.hidden is None:
            return shown
        sourced = self.hidden(trimmed)
        return None if sourced is None else _visible(trimmed, sourced)


def plan_direct(tools: Iterable[SourcedTool]) -> SurfacePlan:
    """Show every ordinary tool; control tools are never among them (BEHAVIOURS 33).

    Raises:
        RequestError: a client tool has a name that is taken (CN-07).
    """
    ordinary = [sourced for sourced in tools if sourced.tool.kind is ToolKind.ORDINARY]
    check_client_names(ordinary, mode="direct")
    visible, diagnostics = _named(ordinary)
    return SurfacePlan(visible=visible, mode="direct", diagnostics=diagnostics)


def plan_code_mode(
    tools: Iterable[SourcedTool],
    controls: Sequence[SourcedTool],
    *,
    required_direct: Collection[str] = (),
) -> SurfacePlan:
    """Show exactly `exec`, `wait` and the direct-only tools (rule 2.2).

    Only trusted tools can be direct-only: a remote tool that claims to be stays in the catalog
    (PO-08). Tool Search controls are not shown (rule 2.4).

    Args:
        tools: The effective tools of the run.
        controls: The control tools of code mode, `exec` and `wait`, in any order.
        required_direct: Own names of trusted tools that must be visible without being
            direct-only, such as the tool a channel delivers messages with (BEHAVIOURS 31).

    Raises:
        PayloadViolationError: `controls` is not exactly one `exec` and one `wait`.
        RequestError: two client tools have one name (CN-07).
    """
    tools = list(tools)
    check_client_names(tools, mode="code")
    shown, diagnostics = _named([t for t in tools if is_direct(t, required_direct)])
    kept = []
    for tool in shown:
        if tool.name in CONTROL_NAMES:
            lost = f"direct-only tool {tool.sourced.id!r} is left out: code mode needs the name"
            diagnostics = (*diagnostics, f"{lost} {tool.name!r}; rename it.")
        else:
            kept.append(tool)
    visible = (*_controls(controls), *kept)
    return SurfacePlan(visible=visible, mode="code", diagnostics=diagnostics)


def plan_tool_search(
    controls: Sequence[SourcedTool],
    direct: Sequence[SourcedTool],
    *,
    prompt: str = "",
    hidden: Callable[[str], SourcedTool | None] | None = None,
) -> SurfacePlan:
    """Show the Tool Search controls, then the tools that are sent with their schemas (rule 10).

    Args:
        controls: In the order they are shown.
        direct: Direct-only tools; in directory mode also the client's, and what a turn is given.
        prompt: The directory.
        hidden: See `SurfacePlan.hidden`.
    """
    shown, diagnostics = _named(direct)
    taken = {control.tool.name for control in controls}
    kept = []
    for tool in shown:
        if tool.name in taken:
            lost = f"tool {tool.sourced.id!r} is not shown: tool search needs the name"
            diagnostics = (*diagnostics, f"{lost} {tool.name!r}; rename it.")
        else:
            kept.append(tool)
    visible = (*(_visible(control.tool.name, control) for control in controls), *kept)
    return SurfacePlan(
        visible=visible,
        mode="tool-search",
        diagnostics=diagnostics,
        prompt=prompt,
        hidden=hidden,
    )


def is_direct(sourced: SourcedTool, required_direct: Collection[str] = ()) -> bool:
    """Whether a tool stays visible behind any compaction: trusted, and direct-only or required."""
    if not sourced.trusted or sourced.tool.kind is not ToolKind.ORDINARY:
        return False
    return sourced.tool.catalog_mode == "direct-only" or sourced.tool.name in required_direct


def _controls(controls: Sequence[SourcedTool]) -> tuple[VisibleTool, ...]:
    by_name = {c.tool.name: c for c in controls if c.tool.kind is ToolKind.CONTROL}
    if len(controls) != len(CONTROL_NAMES) or set(by_name) != set(CONTROL_NAMES):
        got = ",".join(sorted(c.tool.name for c in controls)) or "none"
        message = f"code mode needs its control tools {','.join(CONTROL_NAMES)}; got {got}"
        raise PayloadViolationError(message)
    return tuple(_visible(name, by_name[name]) for name in CONTROL_NAMES)


def _named(tools: Sequence[SourcedTool]) -> tuple[tuple[VisibleTool, ...], tuple[str, ...]]:
    names = provider_names(tools)
    ordered = sorted(tools, key=catalog_order)
    visible = tuple(_visible(names.by_id[t.id], t) for t in ordered if t.id in names.by_id)
    return visible, names.diagnostics


@lru_cache(maxsize=MAX_CONTROL_SCHEMAS)
def _control_schema(same: SameObject) -> Mapping[str, Any]:
    """Controls are made anew for each run, but their schemas are not."""
    return provider_schema(same.schema)


def _visible(name: str, sourced: SourcedTool) -> VisibleTool:
    given = sourced.tool.parameters
    control = sourced.tool.kind is ToolKind.CONTROL
    definition = ToolDefinition(
        name=name,
        description=sourced.tool.description,
        parameters=_control_schema(SameObject(given)) if control else provider_schema(given),
    )
    return VisibleTool(
        name=name,
        definition=definition,
        sourced=sourced,
        quiet=name in _QUIET and sourced.tool.kind is ToolKind.CONTROL,
    )
