"""Owns what may be asked of a child, read once from a guest's or a model's plain JSON.

Above: the guest extension, the tools, the swarm. Below: `schema.validation`, `ports`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from toolcell.base.identifiers import digest
from toolcell.base.jsontext import canonical
from toolcell.errors import SchemaError
from toolcell.schema.validation import compile_validator
from toolcell.swarm.ports import Thinking

THINKING: Final[tuple[str, ...]] = get_args(Thinking)
MAX_LABEL: Final = 200
"""Characters of a label or a phase that are kept."""
MAX_SCHEMA_CHARS: Final = 64 << 10
"""Of a schema as JSON; it is compiled on the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """One child that is asked for. The options are those of rule 11.1.

    Attributes:
        prompt: The task.
        label: What people see of it; `phase` is the part of the work it belongs to.
        model: `provider/model`.
        thinking: A level of `ports.Thinking`.
        agent_id: The agent it runs as.
        schema: JSON Schema of the value that it gives back.
    """

    prompt: str
    label: str | None = None
    model: str | None = None
    thinking: Any = None
    agent_id: str | None = None
    schema: Mapping[str, Any] | None = None
    phase: str | None = None

    @property
    def fingerprint(self) -> str:
        """The same for the same request: `sha256:<64 hex digits>`."""
        parts = (self.prompt, self.label, self.model, self.thinking, self.agent_id, self.phase)
        return "sha256:" + digest(canonical([*parts, self.schema]), length=64)


def read_request(caller: str, prompt: Any, options: Any) -> SpawnRequest | str:
    """Return the request, or what is wrong with it; `caller` is named in that."""
    if not isinstance(prompt, str) or not prompt.strip():
        return f"{caller} prompt must be a non-empty string"
    if not isinstance(options, dict):
        return f"{caller} options must be an object"
    texts: dict[str, str] = {}
    for name in ("label", "model", "thinking", "agentId", "phase"):
        given = options.get(name)
        if given is None:
            continue
        if not isinstance(given, str) or not given.strip():
            return f"{caller} {name} must be a non-empty string"
        texts[name] = given
    thinking = texts.get("thinking")
    if thinking is not None and thinking not in THINKING:
        return f"{caller} thinking must be one of {', '.join(THINKING)}"
    schema = options.get("schema")
    problem = None if schema is None else _schema_problem(schema)
    if problem is not None:
        return f"{caller} schema {problem}"
    return SpawnRequest(
        prompt=prompt,
        label=_clipped(texts.get("label")),
        model=texts.get("model"),
        thinking=thinking,
        agent_id=texts.get("agentId"),
        schema=schema,
        phase=_clipped(texts.get("phase")),
    )


def _schema_problem(schema: Any) -> str | None:
    if not isinstance(schema, dict):
        return "must be a JSON Schema object"
    size = len(canonical(schema))
    if size > MAX_SCHEMA_CHARS:
        return f"has {size} characters as JSON, at most {MAX_SCHEMA_CHARS}"
    try:
        compile_validator(schema)
    except SchemaError as error:
        return f"cannot be used: {error.message}"
    return None


def _clipped(text: str | None) -> str | None:
    return None if text is None else text[:MAX_LABEL]
