"""Owns the way of a client's own tools: into a run's catalog, and of each call back to the client.

The same definitions make the same source, whatever the run, so that catalogs and engine images are
shared between requests; a call finds its run by the scope it carries.

Above: `runs`, the routes. Below: `sources.client`, `live`. Refuses to know: HTTP, wires.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio

from toolcell.base.identifiers import digest
from toolcell.base.jsontext import canonical, loads_finite, to_plain
from toolcell.errors import CallError, EffectStatus
from toolcell.gateway.live import LiveRun
from toolcell.protocol.messages import Message
from toolcell.sources.client import ClientDefinition, ClientSource
from toolcell.tools.content import ImageContent, TextContent, ToolResult
from toolcell.tools.tool import ToolContext

MAX_SOURCES: Final = 64
"""How many sets of client tools are kept ready."""


class ClientDesk:
    """Implements `ClientPort` for every run of the gateway.

    Args:
        live: Finds a run that goes on by its id.
        ttl_seconds: How long a client may take.
    """

    def __init__(self, live: Callable[[str], LiveRun | None], *, ttl_seconds: float) -> None:
        self._live = live
        self._ttl = ttl_seconds
        self._sources: OrderedDict[str, ClientSource] = OrderedDict()
        self._closing = False

    def source(self, app: str, definitions: Sequence[ClientDefinition]) -> ClientSource:
        """Return the source of these tools.

        Raises:
            ToolDefinitionError: a definition is wrong, or a name is there twice.
        """
        described = [[each.name, each.description, each.parameters] for each in definitions]
        key = digest(canonical([app, described]), length=64)
        found = self._sources.get(key)
        if found is not None:
            self._sources.move_to_end(key)
            return found
        made = self._sources[key] = ClientSource(app, definitions, port=self)
        if len(self._sources) > MAX_SOURCES:
            self._sources.popitem(last=False)
        return made

    async def call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Have the client run one of its tools.

        Raises:
            CallError: `unavailable`: it did not answer in time, or the gateway shuts down.
        """
        live = self._live(context.scope.run_id)
        if live is None or self._closing:
            message = f'the client of tool "{name}" is not connected to this run.'
            raise CallError(message, code="unavailable", effect="none")
        pending = live.client.ask(name, to_plain(arguments), _place(context.call_id))
        try:
            with anyio.move_on_after(self._ttl):
                await pending.settled.wait()
        finally:
            live.client.close(pending)
        if pending.outcome is None:
            why = "the gateway is shutting down" if self._closing else "it took too long"
            message = f'the client brought no result of tool "{name}": {why}.'
            effect: EffectStatus = "unknown" if pending.handed else "none"
            raise CallError(message, code="unavailable", effect=effect)
        return client_result(pending.outcome)

    def shut(self) -> None:
        """No client can answer any more: refuse further calls. Runs end the open ones."""
        self._closing = True


def client_result(said: Message) -> ToolResult:
    """Return what a client sent as a result.

    Wires carry results as text. A JSON object or array is what the program gets as its value; any
    other text is the value itself. Images are for a model; where they are all there is, a program
    gets what they are.
    """
    images = (ImageContent(image.data, image.mime_type) for image in said.images)
    text = (TextContent(said.text),) if said.text or not said.images else ()
    return ToolResult(content=(*text, *images), details=_value(said.text or said.words))


def _value(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return loads_finite(text)
    except (ValueError, RecursionError):
        return text


def _place(call_id: str) -> int:
    """Return which call of its program it is: the number its id ends with (BEHAVIOURS 345)."""
    number = call_id.rpartition(":")[2]
    return int(number) if number.isdecimal() and len(number) < 20 else 0
