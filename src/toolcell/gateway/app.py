"""Owns the ASGI application: routes, the guard before them, the border where errors end.

Above: `server`, tests. Below: the routes. Refuses to know: sockets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcell.errors import ToolcellError
from toolcell.gateway.api_routes import ApprovalRoutes, RunRoutes, SessionRoutes, StateRoutes
from toolcell.gateway.bodies import json_answer
from toolcell.gateway.conversation_routes import ConversationRoutes, WebhookRoutes
from toolcell.gateway.faults import ApiError, api_error
from toolcell.gateway.guard import Guard, GuardPorts
from toolcell.gateway.openai_routes import OpenAIRoutes
from toolcell.gateway.operations import OPERATIONS
from toolcell.gateway.rates import RateLimit
from toolcell.gateway.service import Service
from toolcell.protocol.events import Diagnostic

Handler = Callable[[Request], Awaitable[Response]]

_OPENAI_PATHS = ("/chat/completions", "/responses", "/models")
"""Where clients of OpenAI's API arrive whose base URL lacks `/v1`."""


def gateway_app(service: Service) -> Starlette:
    """Return the application over a running service."""
    rooms = (
        OpenAIRoutes(service),
        RunRoutes(service),
        SessionRoutes(service),
        ApprovalRoutes(service),
        StateRoutes(service),
        ConversationRoutes(service),
        WebhookRoutes(service),
    )
    limits, clock = service.config.gateway.limits, service.runtime.host.clock
    ports = GuardPorts(
        token=service.token,
        rates=RateLimit(limits.requests_per_minute, clock=clock),
        draining=lambda: service.runs.draining,
        seen=service.metrics.request,
    )
    by_path: dict[str, dict[str, Handler]] = {}
    for operation in OPERATIONS:
        handler: Handler = next(
            found for room in rooms if (found := getattr(room, operation.name, None)) is not None
        )
        path = operation.path.replace("{model}", "{model:path}")
        by_path.setdefault(path, {})[operation.method.upper()] = _bordered(service, handler)
    routes = [
        Route(path, _by_method(handlers), methods=list(handlers))
        for path, handlers in by_path.items()
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, ports)],
        exception_handlers={HTTPException: _no_route},
    )


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    """Return the one handler of a path, so that a 405 names all of its methods."""

    async def dispatched(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        handler = request.scope["endpoint"] = handlers[method]
        return await handler(request)

    return dispatched


def _bordered(service: Service, handler: Handler) -> Handler:
    """Return a handler whose errors are answers; what clients may not read is a diagnostic."""

    @wraps(handler)
    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - the border of the gateway
            told = api_error(error)
            if not isinstance(error, ApiError | ToolcellError):
                _tell(service, handler.__name__, error)
            told.message = service.redactor.text(told.message)
            return json_answer(told.body(), told.status, told.all_headers())

    return answered


def _tell(service: Service, route: str, error: Exception) -> None:
    service.runtime.sink.emit(
        Diagnostic(
            at=service.runtime.host.clock.wall(),
            level="error",
            subject=f"gateway {route}",
            message=f"{type(error).__name__}: {error}",
        )
    )


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404 and request.url.path.startswith(_OPENAI_PATHS):
        text = "the OpenAI API is below /v1 here; end the client's base URL with /v1"
        return json_answer(ApiError(404, text, "not_found").body(), 404)
    messages = {
        404: ("there is nothing here; GET /api/openapi.json says what there is", "not_found"),
        405: ("this path takes another method", "method_not_allowed"),
    }
    message, code = messages.get(status, ("the request cannot be answered", "http_error"))
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return json_answer(ApiError(status, message, code).body(), status, headers)
