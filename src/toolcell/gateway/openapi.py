"""Owns the OpenAPI document, made of the operations.

Above: `api_routes`. Below: `operations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from toolcell.base.version import VERSION
from toolcell.gateway.operations import EVENT, OPERATIONS, TEXT, Operation, object_of
from toolcell.sources.core.signing import HEADER

_REF: Final = "#/components/schemas/{model}"


def openapi_document() -> dict[str, Any]:
    """Return the document, as fresh plain data."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in _models()], by_alias=True, ref_template=_REF
    )
    error = object_of(message=TEXT, type=TEXT, param={"type": ["string", "null"]}, code=TEXT)
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolcell gateway", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": {**schemas["$defs"], "Error": object_of(error=error)},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "signature": {"type": "apiKey", "in": "header", "name": HEADER},
            },
        },
        "security": [{"token": []}],
    }


def _models() -> Iterable[type[BaseModel]]:
    return dict.fromkeys(each.body for each in OPERATIONS if each.body is not None)


def _described(operation: Operation) -> dict[str, Any]:
    own: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.about,
        "parameters": list(_parameters(operation)),
        "responses": {
            str(status): _answer("The answer.", media, schema)
            for status, (media, schema) in operation.answers.items()
        },
    }
    always = () if operation.open else (401, 500, 503)
    for status in sorted({*operation.errors, *always, 429}):
        reference = {"$ref": _REF.format(model="Error")}
        own["responses"][str(status)] = _answer("An error.", "application/json", reference)
    if operation.body is not None:
        schema = {"$ref": _REF.format(model=operation.body.__name__)}
        own["requestBody"] = {
            "required": operation.body_needed,
            "content": {"application/json": {"schema": schema}},
        }
    if operation.streams:
        own["responses"]["200"]["content"]["text/event-stream"] = {"schema": EVENT}
    if operation.signed:
        own["security"] = [{"signature": []}]
    if operation.open:
        own["security"] = []
        own["responses"]["503"] = own["responses"]["200"]
    return own


def _answer(about: str, media: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {media: {"schema": dict(schema)}}}


def _parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    for part in operation.path.split("/"):
        if part.startswith("{"):
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": TEXT}
    for name, schema in (operation.query or {}).items():
        yield {"name": name, "in": "query", "required": False, "schema": dict(schema)}
