"""Owns rule 2.6: a model call that shows other tools than planned is stopped before it is sent.

It reads the final body, in every shape a provider may give it, and lets nothing through that it
cannot read: hosted tools, server-side MCP, tools without a name.

Above: the agent loop, which hands it to the provider. Below: `plan`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from toolcell.errors import PayloadViolationError
from toolcell.surface.plan import CONTROL_NAMES, SurfacePlan

_FUNCTION_TYPES: Final = frozenset({"function", "custom"})
_HOSTED_KEYS: Final = ("mcp_servers", "web_search_options")
"""Keys beside `tools` that make an endpoint run tools of its own."""


def check_payload(
    plan: SurfacePlan, *, hosted: Collection[str] = ()
) -> Callable[[Mapping[str, Any]], None]:
    """Return what checks a final request body against `plan`; it lets all pass in direct mode.

    Args:
        plan: What this model call is to show.
        hosted: Types or names of provider-hosted tools authorised for the run (BEHAVIOURS 39).

    Returns:
        A function of the body that raises PayloadViolationError.
    """
    if plan.mode != "code":
        return _pass
    allowed = plan.allowed_names
    authorised = frozenset(hosted)

    def check(body: Mapping[str, Any]) -> None:
        labels = list(tool_labels(body))
        if not labels:
            _violation("exec,wait", "no tools")
        counts = Counter(label for label in labels if label is not None)
        extra = {name for name in counts if name not in allowed and not _hosted(name, authorised)}
        twice = any(count > 1 for count in counts.values())
        missing = any(counts[name] != 1 for name in CONTROL_NAMES)
        if extra or twice or missing or None in labels:
            names = sorted(label for label in labels if label is not None)
            got = ",".join(names) or "none"
            _violation("exec,wait plus direct-only tools", got, sorted(extra))

    return check


def tool_labels(body: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield a label for each tool a body carries, in order.

    The name of a function; `hosted:<type>` for a tool the endpoint runs itself; None for one that
    has no readable name. Reads OpenAI Chat Completions and Responses, and Anthropic Messages.
    """
    for key in ("tools", "functions"):
        tools = body.get(key)
        if tools is None:
            continue
        if not isinstance(tools, list | tuple):
            yield None
            continue
        for tool in tools:
            yield _label(tool)
    for key in _HOSTED_KEYS:
        # An empty object switches web search on all the same; an empty list names no server.
        if body.get(key) not in (None, [], ()):
            yield f"hosted:{key}"


def _label(tool: object) -> str | None:
    if not isinstance(tool, Mapping):
        return None
    kind = tool.get("type")
    if isinstance(kind, str) and kind not in _FUNCTION_TYPES:
        return f"hosted:{kind}"
    inner = tool.get(kind) if isinstance(kind, str) else None
    name = inner.get("name") if isinstance(inner, Mapping) else tool.get("name")
    return name if isinstance(name, str) and name else None


def _hosted(label: str, authorised: frozenset[str]) -> bool:
    return label.startswith("hosted:") and label.removeprefix("hosted:") in authorised


def _pass(_body: Mapping[str, Any]) -> None:
    """Nothing is enforced (rule 2.3)."""


def _violation(expected: str, got: str, extra: Sequence[str] = ()) -> None:
    message = f"Code mode payload tool surface violation: expected {expected}; got {got}"
    labels = tuple(name if name.startswith("hosted:") else f"client:{name}" for name in extra)
    raise PayloadViolationError(message, tools=labels)
