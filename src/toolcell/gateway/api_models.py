"""Owns the bodies of `/api` and how runs are shown there.

Above: `api_routes`, `openapi`. Below: `live`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from toolcell.gateway.bodies import SESSION_PATTERN
from toolcell.gateway.live import LiveRun


class ApiBody(BaseModel):
    """The base: camelCase keys, no others."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True
    )


class RunBody(ApiBody):
    """The body of `POST /api/runs`."""

    prompt: str = Field(min_length=1)
    """What the user says."""
    agent: str | None = Field(default=None, max_length=256)
    """The agent; `main` when absent."""
    session: str | None = Field(default=None, pattern=f"^{SESSION_PATTERN}$")
    """The session to go on with; a new one when absent."""
    model: str | None = Field(default=None, max_length=256)
    """`provider/model`, instead of the agent's own."""
    sender: str | None = Field(default=None, max_length=256)
    """Who asks."""


class ApprovalBody(ApiBody):
    """The body of `POST /api/approvals/{id}`."""

    decision: Literal["approve", "deny"]
    """The answer."""
    reach: Literal["once", "session"] = "once"
    """`session`: a yes holds for this tool in this session, whatever its arguments."""
    reason: str = Field(default="", max_length=2000)
    """Shown to the caller when the answer is no, and kept."""


def run_shown(live: LiveRun, *, error: str | None) -> dict[str, Any]:
    """Return a run as plain JSON data.

    Args:
        live: The run.
        error: Why it failed, with secrets masked.
    """
    result = live.result
    out: dict[str, Any] = {
        "id": live.run_id,
        "status": live.status,
        "agentId": live.scope.agent_id,
        "sessionId": live.scope.session_id,
        "createdAt": live.created_at,
        "endedAt": live.ended_at,
        "waitsForClient": list(live.client.handed_open),
        "error": error,
    }
    if result is not None:
        out |= {
            "text": result.text,
            "finish": result.finish,
            "turns": result.turns,
            "usage": {"input": result.usage.input_tokens, "output": result.usage.output_tokens},
        }
    return out
