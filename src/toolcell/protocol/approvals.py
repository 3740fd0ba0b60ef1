"""Owns the shapes of approvals: a person is asked before a call runs. Closed when nobody answers.

Above: the gate, the library face, doors that show approvals. Below: `protocol.scope`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolcell.protocol.scope import RunScope


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One question, asked once."""

    approval_id: str
    scope: RunScope
    call_id: str
    parent_id: str | None
    tool_id: str
    tool_name: str
    arguments: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """The answer; `reason` is shown to the caller when it is a no."""

    approved: bool
    reason: str = ""


class Approver(Protocol):
    """Asks a person. Raising, or being cancelled, counts as a no."""

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Return the answer, however long it takes; the caller's budget is paused meanwhile."""
        ...


class NoApprover:
    """Nobody is there to ask: every answer is no."""

    async def request(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Refuse, and say why."""
        return ApprovalAnswer(
            approved=False,
            reason=(
                f"tool {request.tool_name!r} needs approval and nobody can be asked; allow it with "
                "a rule in tools.approvals.rules, or give the runtime an approver"
            ),
        )
