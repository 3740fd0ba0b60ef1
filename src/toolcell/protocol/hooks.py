"""Owns the shapes of hooks: code of the operator that sees a call before and after it runs.

Above: the gate, the library face. Below: `protocol.scope`. A hook that raises fails closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcell.protocol.scope import RunScope


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeToolCall:
    """What a `before_tool_call` hook is shown (rules 3.12, 8.1; BEHAVIOURS F).

    Attributes:
        tool_name: The tool's own name; `exec` for a code cell and for the shell tool alike.
        tool_id: Exact catalog id; None for the model-facing control tools.
        arguments: Plain JSON; rewrite by returning another object, never in place.
        tool_kind: `code_mode_exec` for a code cell, else None.
        tool_input_kind: `javascript` or `typescript` for a code cell, else None.
    """

    scope: RunScope
    call_id: str
    parent_id: str | None
    tool_name: str
    tool_id: str | None
    source: str
    source_name: str | None
    arguments: Mapping[str, Any]
    tool_kind: Literal["code_mode_exec"] | None = None
    tool_input_kind: Literal["javascript", "typescript"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proceed:
    """Go on, with other arguments where given."""

    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Do not run the tool; the caller is told the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Run the tool only when a person approves."""

    reason: str


HookDecision: TypeAlias = Proceed | Block | Ask | None
"""None means: no opinion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterToolCall:
    """What an `after_tool_call` hook is shown; it may return a replacement for `details`."""

    before: BeforeToolCall
    status: Literal["completed", "failed", "blocked", "aborted"]
    details: Any
    error: str | None
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceDetails:
    """Give the caller these details instead; they are validated like the tool's own.

    The content a model would read becomes their JSON text. Only a call that gave a result can have
    its details replaced.
    """

    details: Any


BeforeHook: TypeAlias = Callable[[BeforeToolCall], Awaitable[HookDecision] | HookDecision]
AfterHook: TypeAlias = Callable[
    [AfterToolCall], Awaitable[ReplaceDetails | None] | ReplaceDetails | None
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of a run, in the order they apply.

    Attributes:
        before: Called before a tool runs; the first `Block` ends it.
        after: Called after a tool ran; each sees what the one before it returned.
        timeout_seconds: How long one hook may take before the call fails closed.
    """

    before: Sequence[BeforeHook] = ()
    after: Sequence[AfterHook] = ()
    timeout_seconds: float = 30.0
