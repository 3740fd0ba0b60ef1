"""Owns how the gateway says no: a status, and the error object that OpenAI clients read.

Above: every route. Below: `errors`. Refuses to know: Starlette.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcell.errors import (
    ConfigError,
    ProviderError,
    RequestError,
    ToolcellError,
    ToolDefinitionError,
)

INVALID = "invalid_request_error"


@dataclass(eq=False)
class ApiError(Exception):
    """A request that gets an error for an answer.

    Attributes:
        status: The HTTP status.
        message: What was wrong and what to do.
        code: A stable word.
        type: OpenAI's class of error.
        param: The field that was wrong.
        retry: Whether the same request may simply be sent again; None leaves it to the client.
            After a run began it may not: its tools may have had effects.
        headers: Further response headers.
    """

    status: int
    message: str
    code: str
    type: str = INVALID
    param: str | None = None
    retry: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the message."""
        return self.message

    def body(self) -> dict[str, Any]:
        """Return the error in OpenAI's shape."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def all_headers(self) -> dict[str, str]:
        """Return its headers; official clients obey `x-should-retry`."""
        told = {} if self.retry is None else {"x-should-retry": "true" if self.retry else "false"}
        return {**told, **self.headers}


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """Return a 400: the request itself is wrong."""
    return ApiError(400, message, code, param=param)


def not_found(message: str, code: str = "not_found") -> ApiError:
    """Return a 404."""
    return ApiError(404, message, code)


def conflict(message: str, code: str, *, retry: bool | None = None) -> ApiError:
    """Return a 409: the request is fine and comes at the wrong time."""
    return ApiError(409, message, code, retry=retry)


def overloaded(message: str, code: str) -> ApiError:
    """Return a 429 that may be tried again in a second."""
    return ApiError(429, message, code, type="rate_limit_error", headers={"retry-after": "1"})


def draining() -> ApiError:
    """Return a 503: the gateway is going away."""
    return ApiError(
        503, "the gateway is shutting down; try again later", "shutting_down", type="server_error"
    )


def api_error(error: Exception) -> ApiError:
    """Return what a client is told of an error raised while it was served.

    An error that is not one of toolcell's own says nothing of its cause: it may hold anything.
    """
    match error:
        case ApiError():
            return error
        case RequestError() | ToolDefinitionError():
            return ApiError(400, error.message, "invalid_tools", param="tools", retry=False)
        case ProviderError():
            status = 429 if error.status == 429 else 502
            kind = "rate_limit_error" if status == 429 else "upstream_error"
            return ApiError(status, error.message, error.code, type=kind, retry=False)
        case ConfigError():
            message = f"the gateway's configuration does not allow this: {error.message}"
            return ApiError(500, message, "config", type="server_error", retry=False)
        case ToolcellError():
            return ApiError(500, error.message, error.code, type="server_error", retry=False)
        case _:
            message = "the gateway failed; its diagnostics say why"
            return ApiError(500, message, "internal_error", type="server_error", retry=False)
