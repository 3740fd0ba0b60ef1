"""Owns tools that arrive over the wire with a request: `client:<app>:<name>`, never trusted.

Above: the gateway, the agent. Below: `tools`, `sources.contract`. Refuses to know: the wire. What a
definition says about its own standing (catalog mode, replay safety, output) is not read: a remote
tool cannot choose to be shown directly or to be run again (PO-08, rule 7.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from toolcell.errors import ToolDefinitionError
from toolcell.sources.contract import Unavailable
from toolcell.tools.content import ToolResult
from toolcell.tools.decorator import check_name
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolContext

MAX_CLIENT_TOOLS: Final = 1_000
_ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDefinition:
    """A tool as a client describes it: a name, words, and a JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: dict(_ANY_OBJECT))


class ClientPort(Protocol):
    """Has the client run one of its tools and brings back the result."""

    async def call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Return the client's result; raises to fail."""
        ...


class ClientSource:
    """The tools of one client app."""

    def __init__(
        self, app: str, definitions: Sequence[ClientDefinition], *, port: ClientPort
    ) -> None:
        """Take the definitions of one request.

        Raises:
            ToolDefinitionError: too many, a bad name, parameters that are no object, or a name
                twice.
        """
        self._app = check_name(app, "client app")
        self._port = port
        if len(definitions) > MAX_CLIENT_TOOLS:
            message = f"client {app!r} sends {len(definitions)} tools, at most {MAX_CLIENT_TOOLS}."
            raise ToolDefinitionError(message)
        taken: dict[str, SourcedTool] = {}
        for each in definitions:
            name = check_name(each.name, f"tool of client {app!r}")
            if name in taken:
                message = f"client {app!r} sends two tools named {name!r}; keep one."
                raise ToolDefinitionError(message)
            taken[name] = self._sourced(each)
        self._tools = tuple(taken.values())

    def _sourced(self, definition: ClientDefinition) -> SourcedTool:
        parameters = definition.parameters
        if not isinstance(parameters, Mapping):
            kind = type(parameters).__name__
            message = f"tool {definition.name!r} of client {self._app!r}: parameters is a {kind}."
            raise ToolDefinitionError(message)
        made = Tool(
            name=definition.name,
            description=definition.description,
            parameters=dict(parameters),
            execute=_Remote(definition.name, self._port),
        )
        return SourcedTool(tool=made, source="client", owner=self._app, group=Group.CLIENT)

    @property
    def version(self) -> int:
        """The tools of a request do not change."""
        return 1

    def tools(self) -> Sequence[SourcedTool]:
        """Return them in the order they were sent."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """Return nothing."""
        return ()

    async def start(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


class _Remote:
    """`Tool.execute` of a client's tool; whatever comes back is marked as from the network."""

    __slots__ = ("_name", "_port")

    def __init__(self, name: str, port: ClientPort) -> None:
        self._name = name
        self._port = port

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        result = await self._port.call(self._name, arguments, context)
        return ToolResult(
            content=result.content,
            details=result.details,
            is_error=result.is_error,
            untrusted=True,
        )
