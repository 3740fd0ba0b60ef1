"""Owns which agent a request means: `model` names one, as `agent:<id>` or `<id>`.

Above: the routes. Below: `config`. Refuses to know: what the agent's own model is.
"""

from __future__ import annotations

from typing import Final

from toolcell.config.tree import Config
from toolcell.gateway.faults import ApiError, not_found
from toolcell.protocol.scope import DEFAULT_AGENT

PREFIX: Final = "agent:"
_DEFAULTS: Final = frozenset({"", "default", "toolcell"})


def agent_ids(config: Config) -> tuple[str, ...]:
    """Return the agents there are, `main` first."""
    others = (name for name in config.agents.entries if name != DEFAULT_AGENT)
    return (DEFAULT_AGENT, *others)


def agent_of(config: Config, model: str | None) -> str:
    """Return the agent that `model` names; `main` when it names none.

    Raises:
        ApiError: 404 `model_not_found`.
    """
    name = (model or "").strip().removeprefix(PREFIX)
    if name in _DEFAULTS:
        return DEFAULT_AGENT
    known = agent_ids(config)
    if name in known:
        return name
    shown = ", ".join(f"{PREFIX}{each}" for each in known[:20])
    message = f"the model {(model or '')[:100]!r} does not exist; agents are the models: {shown}"
    error: ApiError = not_found(message, "model_not_found")
    error.param = "model"
    raise error


def model_cards(config: Config, created: float) -> list[dict[str, object]]:
    """Return the agents as `GET /v1/models` lists them."""
    return [
        {
            "id": f"{PREFIX}{name}",
            "object": "model",
            "created": int(created),
            "owned_by": "toolcell",
        }
        for name in agent_ids(config)
    ]
