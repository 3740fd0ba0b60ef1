"""Owns putting on record what a model was shown: its system prompt and tools, when they change.

Above: the loop. Below: `protocol.events`. Refuses to know: who keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolcell.base.clock import Clock
from toolcell.base.identifiers import digest
from toolcell.base.jsontext import dumps
from toolcell.protocol.events import ContentKept
from toolcell.protocol.messages import ToolDefinition
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink


class Shown:
    """Remembers what was told last, so that equal model calls cost nothing."""

    def __init__(self, sink: Sink, clock: Clock, scope: RunScope) -> None:
        self._sink = sink
        self._clock = clock
        self._scope = scope
        self._system: str | None = None
        self._tools: Sequence[ToolDefinition] | None = None

    def tell(self, system: str | None, tools: Sequence[ToolDefinition]) -> None:
        """Put on record what the next model call shows, where it is new."""
        if system and system != self._system:
            self._keep("system", system)
        self._system = system
        if self._tools is None or (tools is not self._tools and tools != self._tools):
            self._keep("tools", _text(tools))
        self._tools = tools

    def _keep(self, kind: Literal["system", "tools"], text: str) -> None:
        at, key = self._clock.wall(), digest(kind, text, length=64)
        self._sink.emit(ContentKept(scope=self._scope, at=at, kind=kind, key=key, text=text))


def _text(tools: Sequence[ToolDefinition]) -> str:
    plain = [
        {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
        for t in tools
    ]
    try:
        return dumps(plain)
    except (TypeError, ValueError, RecursionError) as error:
        # The provider is about to refuse it and to say why.
        return dumps({"names": [tool.name for tool in tools], "error": str(error)})
