"""Every error toolcell raises, in one tree, each with a code and its audience.

Above: everything. Below: the standard library. Refuses to know: where an error is shown.

    ToolcellError
    ├── ConfigError            operator   a config value, named by its path
    ├── ToolDefinitionError    operator   a function or value that cannot become a tool
    ├── SchemaError            operator   a JSON Schema that cannot be used, and where in it
    ├── PluginError            operator   a plugin that cannot be loaded or registered
    ├── SessionError           operator   the session store cannot read or write
    ├── McpError               operator   a server that cannot be started, reached or understood
    ├── ProviderError          operator   the model endpoint refused or broke
    ├── PayloadViolationError  operator   rule 2.6: the final provider request shows other tools
    ├── RequestError           operator   a client's request that cannot run; a door answers 400
    ├── CellError              model      the outcome of a cell; `code` is a code of rule 3.9
    │   └── RuntimeUnavailableError  model  rule 1.6: the executor cannot load or start
    └── CallError              guest      one tool call; catchable data in guest code
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Audience(StrEnum):
    """Who the text of an error is written for."""

    GUEST = "guest"
    MODEL = "model"
    OPERATOR = "operator"


CellErrorCode = Literal[
    "invalid_input",
    "runtime_unavailable",
    "timeout",
    "output_limit_exceeded",
    "snapshot_limit_exceeded",
    "internal_error",
    "aborted",
]
"""Rule 3.9. `aborted` is shown with the catalog API only."""

CallErrorCode = Literal[
    "input_contract",
    "output_contract",
    "invalid_contract",
    "invalid_input",
    "tool_error",
    "unknown_tool",
    "unavailable",
    "blocked",
    "aborted",
]
"""What a guest reads as `error.code` after a nested call (BEHAVIOURS 148, and four of our own)."""

EffectStatus = Literal["none", "unknown"]
"""`none`: the tool body never ran. `unknown`: it may have had effects; never replay blindly."""


class ToolcellError(Exception):
    """The base of every error raised on purpose.

    Attributes:
        message: What was wrong, where, and what to do; identifiers quoted with `!r`.
        code: A stable machine-readable word.
        audience: Who the message is written for.
    """

    code: str = "error"
    audience: Audience = Audience.OPERATOR

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class ConfigError(ToolcellError):
    """A config value that cannot be accepted; `path` is dotted: `tools.codeMode.enabled`."""

    code = "config"

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class ToolDefinitionError(ToolcellError):
    """A function, type or value that cannot become a tool; raised where the tool is made."""

    code = "tool_definition"


class SchemaError(ToolcellError):
    """A JSON Schema that cannot be used; `path` is where in it, dotted: `properties.a.type`."""

    code = "schema"

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class PluginError(ToolcellError):
    """A plugin that cannot be found, imported or registered."""

    code = "plugin"


class SessionError(ToolcellError):
    """The session store cannot be opened, read or written."""

    code = "session"


class McpError(ToolcellError):
    """An MCP server that cannot be started, reached or understood; `server` is its raw name."""

    code = "mcp"

    def __init__(self, message: str, *, server: str = "") -> None:
        super().__init__(message)
        self.server = server


class ProviderError(ToolcellError):
    """The model endpoint refused or broke off; `retryable` says whether to try again.

    `too_long` says that the request does not fit into the model's context window; its code is then
    `context_length`.
    """

    code = "provider"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        too_long: bool = False,
    ) -> None:
        super().__init__(message, code="context_length" if too_long else None)
        self.retryable = retryable
        self.status = status
        self.too_long = too_long


class PayloadViolationError(ToolcellError):
    """Rule 2.6: the final provider request shows tools it must not show.

    `tools` are the labels of those: `client:<name>`, or `hosted:<type>` (BEHAVIOURS 40).
    """

    code = "payload_violation"

    def __init__(self, message: str, *, tools: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.tools = tools


class RequestError(ToolcellError):
    """A client's request that cannot be accepted (CN-07): nothing ran, and a door answers 400."""

    code = "invalid_request_error"


class CellError(ToolcellError):
    """Why a cell failed, with a code of rule 3.9; `phase` says in whose hands it was."""

    audience = Audience.MODEL

    def __init__(
        self,
        message: str,
        *,
        code: CellErrorCode = "internal_error",
        phase: Literal["input", "guest", "host", "bridge"] = "host",
    ) -> None:
        super().__init__(message, code=code)
        self.phase = phase


class RuntimeUnavailableError(CellError):
    """Rule 1.6: the chosen executor cannot load or start. Never answered by a fallback."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="runtime_unavailable", phase="host")


class CallError(ToolcellError):
    """One tool call that did not give a result.

    Attributes:
        code: A `CallErrorCode`.
        effect: Whether the tool body may have run.
        untrusted: The message came from the network and is wrapped before a model reads it.
    """

    audience = Audience.GUEST

    def __init__(
        self,
        message: str,
        *,
        code: CallErrorCode = "tool_error",
        effect: EffectStatus = "unknown",
        untrusted: bool = False,
    ) -> None:
        super().__init__(message, code=code)
        self.effect: EffectStatus = effect
        self.untrusted = untrusted
