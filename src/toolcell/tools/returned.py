"""Owns how a Python return value becomes a `ToolResult`: plain JSON `details` and text content.

Above: `tools.decorator`. Below: `tools.content`, `pydantic`. Refuses to know: calls, schemas.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcell.base.jsontext import Json, dumps, utf8_length
from toolcell.errors import CallError
from toolcell.tools.content import ImageContent, OtherContent, TextContent, ToolResult
from toolcell.tools.threads import run_sync
from toolcell.tools.typeschema import first_line

MAX_RESULT_BYTES: Final = 16 << 20
"""The largest `details` as JSON text: no cell takes more (see `CodeModeOptions.inbox_bytes`)."""

MAX_DEPTH: Final = 200
"""Deeper nesting is refused: it is a mistake, and JSON readers recurse."""

_LOOP_NODES: Final = 20_000
"""Values with more nodes are converted in a thread, so that the event loop goes on (about 5 ms)."""

_BLOCKS = (TextContent, ImageContent, OtherContent)


async def to_result(name: str, value: Any, adapter: TypeAdapter[Any] | None) -> ToolResult:
    """Return the result for what the tool `name` returned.

    Args:
        name: The tool, for error messages.
        value: What its function returned.
        adapter: The adapter of its declared return type; None when it declares none.

    Raises:
        CallError: the value cannot be plain JSON of at most `MAX_RESULT_BYTES`.
    """
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, _BLOCKS):
        return ToolResult(content=(value,))
    typed = adapter is not None
    try:
        details, text = _converted(value, adapter, _Walk(_LOOP_NODES, typed=typed))
    except _TooManyForTheLoopError:
        try:
            details, text = await run_sync(
                lambda: _converted(value, adapter, _Walk(None, typed=typed))
            )
        except _RefusedError as error:
            raise _refusal(name, error) from None
    except _RefusedError as error:
        raise _refusal(name, error) from None
    return ToolResult(content=(TextContent(text),), details=details)


def _refusal(name: str, error: _RefusedError) -> CallError:
    message = f"Tool {name!r} ran, but what it returned cannot be used: {error}"
    return CallError(message, code="output_contract", effect="unknown")


class _RefusedError(Exception):
    """Says what in the value has no JSON form, and where."""


class _TooManyForTheLoopError(Exception):
    """The value is too big to be converted on the event loop."""


def _converted(value: Any, adapter: TypeAdapter[Any] | None, walk: _Walk) -> tuple[Json, str]:
    """Return plain details and the text a model reads."""
    details = walk.plain(value, "$", 0)
    if adapter is not None:
        details = _typed(value, adapter)
    try:
        text = dumps(details)
    except (ValueError, TypeError, RecursionError) as error:
        _Walk(None, typed=False).plain(details, "$", 0)  # raises with the place, where it finds it
        msg = f"{first_line(error)}."
        raise _RefusedError(msg) from None
    if utf8_length(text) > MAX_RESULT_BYTES:
        raise _RefusedError(_too_big())
    return details, details if isinstance(details, str) else text


def _typed(value: Any, adapter: TypeAdapter[Any]) -> Json:
    """Check a value against its declared type and return its JSON form."""
    try:
        checked = adapter.validate_python(value)
        return adapter.dump_python(checked, mode="json", by_alias=True, warnings="error")
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or '$'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)[:3]
        )
        msg = f"it does not match the declared return type ({problems})."
        raise _RefusedError(msg) from None
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        msg = f"{first_line(error)}."
        raise _RefusedError(msg) from None


def _too_big() -> str:
    return (
        f"it is larger than {MAX_RESULT_BYTES >> 20} MiB of JSON. "
        "Return less: a page, a summary, or the path of a file."
    )


class _Walk:
    """One pass over a value that refuses what JSON cannot carry and copies the rest.

    With `typed`, models and unknown leaves are left to the declared type, which writes them later.
    """

    def __init__(self, nodes: int | None, *, typed: bool) -> None:
        self._typed = typed
        self._nodes_left = nodes
        self._bytes_left = MAX_RESULT_BYTES
        self._open: set[int] = set()

    def plain(self, value: Any, where: str, depth: int) -> Json:
        """Return `value` as fresh plain data; raises `_RefusedError`."""
        if value is None or value is True or value is False:
            self._spend(4)
            return value
        kind = type(value)
        if kind is str:
            self._spend(len(value) + 2)
            return value
        if kind is int:
            self._spend(1)
            return value
        if isinstance(value, float):
            self._spend(3)
            if not math.isfinite(value):
                msg = f"{where} is {float(value)}, which JSON cannot carry. Use None."
                raise _RefusedError(msg)
            return float(value)
        return self._other(value, where, depth)

    def _other(self, value: Any, where: str, depth: int) -> Json:
        if isinstance(value, Enum):
            return self.plain(value.value, where, depth)
        if isinstance(value, str):
            return self.plain(str.__str__(value), where, depth)
        if isinstance(value, bytes | bytearray | memoryview):
            msg = f"{where} is bytes. Return text: str, or base64."
            raise _RefusedError(msg)
        if isinstance(value, Iterator) or inspect.isasyncgen(value) or inspect.isawaitable(value):
            kind = type(value).__name__
            msg = f"{where} is a {kind}, not a value. Return a list."
            raise _RefusedError(msg)
        if isinstance(value, Mapping | list | tuple | set | frozenset) or _is_record(value):
            return self._container(value, where, depth)
        return self._leaf(value, where)

    def _container(self, value: Any, where: str, depth: int) -> Json:
        if depth >= MAX_DEPTH:
            msg = f"it is nested deeper than {MAX_DEPTH} levels."
            raise _RefusedError(msg)
        if id(value) in self._open:
            msg = f"{where} contains itself, so it has no end."
            raise _RefusedError(msg)
        self._open.add(id(value))
        self._spend(2)
        try:
            if isinstance(value, BaseModel):
                return self._model(value, where)
            if isinstance(value, Mapping):
                return self._object(value.items(), where, depth)
            if _is_record(value):
                names = [field.name for field in dataclasses.fields(value)]
                return self._object(((n, getattr(value, n)) for n in names), where, depth)
            return [
                self.plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)
            ]
        finally:
            self._open.discard(id(value))

    def _object(self, items: Any, where: str, depth: int) -> Json:
        out: dict[str, Any] = {}
        for key, item in items:
            if isinstance(key, Enum):
                name = key.value
            elif isinstance(key, int) and not isinstance(key, bool):
                name = str(key)
            else:
                name = key
            if not isinstance(name, str):
                kind = type(key).__name__
                msg = f"{where} has a key of type {kind}. Use strings."
                raise _RefusedError(msg)
            self._spend(len(name) + 4)
            out[name] = self.plain(item, f"{where}.{name}", depth + 1)
        return out

    def _model(self, value: BaseModel, where: str) -> Json:
        if self._typed:
            return None
        try:
            return value.model_dump(mode="json", by_alias=True)
        except (PydanticSerializationError, ValueError) as error:
            msg = f"{where}: {first_line(error)}."
            raise _RefusedError(msg) from None

    def _leaf(self, value: Any, where: str) -> Json:
        """Dates, UUIDs, paths, decimals: what pydantic knows how to write."""
        self._spend(16)
        if self._typed:
            return None
        try:
            return to_jsonable_python(value)
        except (PydanticSerializationError, ValueError) as error:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            message = f"{where} is a {kind}, which has no JSON form. Return plain data."
            raise _RefusedError(message) from error

    def _spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _RefusedError(_too_big())
        if self._nodes_left is not None:
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise _TooManyForTheLoopError


def _is_record(value: Any) -> bool:
    return isinstance(value, BaseModel) or dataclasses.is_dataclass(value)
