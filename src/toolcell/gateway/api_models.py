"""Owns the bodies of `/api` and how runs are shown there.

Above: `api_routes`, `openapi`. Below: `live`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from toolcell.agent.seeing import MAX_IMAGES
from toolcell.gateway.bodies import SESSION_PATTERN
from toolcell.gateway.live import LiveRun
from toolcell.sources.core.conversations import MAX_MESSAGE_CHARS, MAX_WAIT_MS

NAME_PATTERN: Final = r"^[^\x00-\x1f\x7f]{1,256}$"


class ApiBody(BaseModel):
    """The base: camelCase keys, no others."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True
    )


class RunBody(ApiBody):
    """The body of `POST /api/runs`."""

    prompt: str = Field(min_length=1)
    """What the user says."""
    images: list[str] | None = Field(
        default=None,
        description="Images that the user shows behind the prompt, as data URLs of base64.",
        # Counted where they are read, as on the other wires, so that the error is the same.
        json_schema_extra={"maxItems": MAX_IMAGES},
    )
    """What the user shows, as data URLs."""
    agent: str | None = Field(default=None, max_length=256)
    """The agent; `main` when absent."""
    session: str | None = Field(default=None, pattern=f"^{SESSION_PATTERN}$")
    """The session to go on with; a new one when absent."""
    model: str | None = Field(default=None, max_length=256)
    """`provider/model`, instead of the agent's own."""
    sender: str | None = Field(default=None, max_length=256)
    """Who asks."""


class CompactBody(ApiBody):
    """The body of `POST /api/sessions/{id}/compact`, which may be absent."""

    model: str | None = Field(default=None, min_length=1, max_length=256)
    """`provider/model` that writes the summary; the agent's own when absent."""


class ApprovalBody(ApiBody):
    """The body of `POST /api/approvals/{id}`."""

    decision: Literal["approve", "deny"]
    """The answer."""
    reach: Literal["once", "session"] = "once"
    """`session`: a yes holds for this tool in this session, whatever its arguments."""
    reason: str = Field(default="", max_length=2000)
    """Shown to the caller when the answer is no, and kept."""


class SendBody(ApiBody):
    """The body of `POST /api/conversations/send`."""

    conversation_ref: str = Field(min_length=1, max_length=500)
    """From `GET /api/conversations`."""
    message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    """What to say."""
    agent: str | None = Field(default=None, max_length=256)
    """The agent that says it; `main` when absent."""


class TurnBody(SendBody):
    """The body of `POST /api/conversations/turn`."""

    wait_ms: int = Field(default=120_000, ge=100, le=MAX_WAIT_MS)
    """How long to wait for the reply, in milliseconds."""


class InboundBody(ApiBody):
    """The body of `POST /webhooks/{channel}`: a message that comes in."""

    id: str = Field(pattern=r"^[!-~]{1,128}$")
    """The sender's id of the message: it is taken once, however often it is sent."""
    conversation: str = Field(min_length=1, max_length=256)
    """The conversation's key in the channel."""
    sender: str = Field(pattern=NAME_PATTERN)
    """Who says it."""
    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    """What is said."""
    reply_to: str | None = Field(default=None, min_length=1, max_length=128)
    """The id of the message it answers."""


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
            "usage": result.usage.to_dict(),
        }
    return out
