"""Owns reading a request (its body, bounded in size and time, as a model) and writing JSON.

Above: the routes. Below: Starlette, pydantic, `faults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import anyio
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from toolcell.base.jsontext import dumps, loads_finite, loads_strict
from toolcell.gateway.faults import ApiError, invalid

READ_SECONDS: Final = 30.0
"""How long a client may take to send its body."""
MAX_ERRORS_SHOWN: Final = 3
SESSION_PATTERN: Final = "[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}"
_SESSION_ID: Final = re.compile(SESSION_PATTERN)

M = TypeVar("M", bound=BaseModel)


def json_answer(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response; a lone surrogate, which no wire carries, becomes `?`."""
    return Response(
        dumps(value).encode("utf-8", "replace"), status, headers, media_type="application/json"
    )


async def read_model(request: Request, model: type[M], *, limit: int) -> M:
    """Return the body as a `model`.

    Raises:
        ApiError: 400, 408, 413 or 415; the message names the field.
    """
    return parsed(await read_json_bytes(request, limit=limit), model)


async def read_optional(request: Request, model: type[M], *, limit: int) -> M:
    """Return the body as a `model` of which nothing is needed; no body stands for an empty object.

    Raises:
        ApiError: 400, 408, 413 or 415; the message names the field.
    """
    data = await _body(request, limit)
    if not data:
        return model()
    _check_json(request)
    return parsed(data, model)


async def read_json_bytes(request: Request, *, limit: int) -> bytes:
    """Return the body as it was sent, when it says that it is JSON.

    Raises:
        ApiError: 408, 413 or 415.
    """
    _check_json(request)
    return await _body(request, limit)


def _check_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # Also what keeps a web page from sending one: this type needs a preflight.
        message = "send the body as JSON, with content-type: application/json"
        raise ApiError(415, message, "unsupported_media_type")


def parsed(data: bytes, model: type[M], *, strict: bool = False) -> M:
    """Return JSON as a `model`.

    Args:
        data: The JSON.
        model: What it should be.
        strict: Whether a key that stands twice in an object is refused.

    Raises:
        ApiError: 400; the message names the field.
    """
    value = _json(data, loads_strict if strict else loads_finite)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _refused(error) from error


def query_number(request: Request, name: str, default: int, *, most: int) -> int:
    """Return a whole number of the query from 0 to `most`.

    Raises:
        ApiError: 400: it is no such number.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        message = f"{name} must be a whole number from 0 to {most}"
        raise invalid(message, param=name)
    return min(int(text), most)


def session_id(given: str | None, *, param: str) -> str | None:
    """Return a session id a client chose.

    Raises:
        ApiError: 400: it has other characters, or more than 128.
    """
    if given is None or _SESSION_ID.fullmatch(given):
        return given
    message = "a session id has 1 to 128 letters, digits, and . _ : @ -"
    raise invalid(message, param=param)


async def _body(request: Request, limit: int) -> bytes:
    too_large = ApiError(413, f"the body is over {limit} bytes", "request_too_large")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:19]) > limit:
        raise too_large
    pieces, size = [], 0
    try:
        with anyio.fail_after(READ_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise too_large
                pieces.append(piece)
    except TimeoutError as error:
        message = f"the body did not arrive within {READ_SECONDS:g} seconds"
        raise ApiError(408, message, "request_timeout") from error
    except ClientDisconnect as error:
        raise ApiError(499, "the client went away", "client_gone") from error
    return b"".join(pieces)


def _json(data: bytes, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(data)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"the body is not JSON: {why}"
        raise invalid(message, code="invalid_json") from error


def _refused(error: ValidationError) -> ApiError:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    first = _place(problems[0]["loc"])
    shown = "; ".join(
        f"{_place(each['loc']) or 'the body'}: {each['msg']}"
        for each in problems[:MAX_ERRORS_SHOWN]
    )
    return invalid(shown, param=first or None)


def _place(location: Sequence[int | str]) -> str:
    parts = ""
    for part in location:
        if isinstance(part, int):
            parts += f"[{part}]"
        elif re.fullmatch(r"[a-z][A-Za-z0-9_]*", part):
            parts += f".{part}" if parts else part
    return parts
