"""Owns the two contracts of a call: its input, checked after the hooks, and its output (rule 7.1).

Above: the gate. Below: `schema.validation`. Refuses to know: hooks, approvals. Validators are
compiled once per schema object and kept while it is in use; a tool that is published again with
another schema object is compiled again (BEHAVIOURS 289).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolcell.base.jsontext import clip_utf8
from toolcell.calls.invocation import Invocation
from toolcell.calls.nearest import nearest
from toolcell.errors import CallError
from toolcell.schema.validation import SchemaError, Validator, Violation, compile_validator
from toolcell.tools.content import MISSING

MAX_CACHED: Final = 8192
MAX_LINES: Final = 5
MAX_LINE_BYTES: Final = 256
_NO_SCHEMA: Final[Mapping[str, Any]] = {}


class Contracts:
    """Compiles, keeps and applies the contracts of tools."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: OrderedDict[int, tuple[Mapping[str, Any], Validator | None]] = OrderedDict()

    def check_input(self, invocation: Invocation, arguments: Mapping[str, Any]) -> None:
        """Check arguments against the tool's `parameters`.

        A schema from an MCP server or a client is applied where it compiles, and ignored where it
        does not: the far side checks again.

        Raises:
            CallError: `input_contract`, or `invalid_contract` for a local tool's broken schema.
        """
        sourced = invocation.sourced
        validator = self._validator(sourced.tool.parameters)
        if validator is None:
            if sourced.trusted:
                raise _invalid_contract(invocation, "input schema")
            return
        violations = validator.errors(arguments)
        if violations:
            raise _input_error(invocation, arguments, violations)

    def output(self, invocation: Invocation) -> Validator | None:
        """Return what checks the tool's details; None without a trusted `outputSchema`.

        Raises:
            CallError: `invalid_contract` (BEHAVIOURS 283).
        """
        schema = invocation.sourced.tool.output_schema
        if schema is None or not invocation.sourced.trusted:
            return None
        validator = self._validator(schema)
        if validator is None:
            raise _invalid_contract(invocation, "outputSchema")
        return validator

    def _validator(self, schema: Mapping[str, Any]) -> Validator | None:
        key = id(schema)
        held = self._compiled.get(key)
        if held is not None and held[0] is schema:
            self._compiled.move_to_end(key)
            return held[1]
        try:
            validator = compile_validator(schema)
        except SchemaError:
            validator = None
        self._compiled[key] = (schema, validator)
        if len(self._compiled) > MAX_CACHED:
            self._compiled.popitem(last=False)
        return validator


def check_output(invocation: Invocation, validator: Validator, details: Any) -> None:
    """Check details as the hooks left them. The value is never printed (BEHAVIOURS 284).

    Raises:
        CallError: `output_contract`.
    """
    if details is MISSING:
        raise _output_error(invocation, ["details are missing"])
    violations = validator.errors(details)
    if violations:
        lines = [violation.text(show_value=False) for violation in violations[:MAX_LINES]]
        raise _output_error(invocation, lines)


def check_object(invocation: Invocation) -> None:
    """Check that the arguments are one object at all; this comes before the hooks, which see it.

    Raises:
        CallError: `input_contract`.
    """
    arguments = invocation.arguments
    if isinstance(arguments, Mapping):
        return
    kinds = {"NoneType": "null", "list": "an array", "str": "a string", "bool": "a boolean"}
    kind = kinds.get(type(arguments).__name__, "a number")
    raise CallError(
        f'Invalid arguments for tool "{invocation.subject}": expected one object, got {kind}.'
        + _expected(invocation),
        code="input_contract",
        effect="none",
    )


def _input_error(
    invocation: Invocation, arguments: Mapping[str, Any], violations: Sequence[Violation]
) -> CallError:
    lines = [_clipped(violation.text(show_value=False)) for violation in violations[:MAX_LINES]]
    text = "; ".join(line.rstrip(".") for line in lines)
    trusted = invocation.sourced.trusted
    guesses = _guesses(invocation.sourced.tool.parameters, arguments) if trusted else []
    meant = f" Did you mean: {', '.join(guesses)}?" if guesses else ""
    return CallError(
        f'Invalid arguments for tool "{invocation.subject}": {text}.{meant}{_expected(invocation)}',
        code="input_contract",
        effect="none",
        untrusted=not trusted,
    )


def _guesses(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return known property names that unknown ones come close to, and that are still free."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    free = [name for name in properties if name not in arguments]
    unknown = [name for name in arguments if name not in properties]
    found = [guess for name in unknown[:MAX_LINES] for guess in nearest(name, free)[:1]]
    return list(dict.fromkeys(found))


def _expected(invocation: Invocation) -> str:
    hint = invocation.input_hint
    return f" Expected input: {hint}." if hint and invocation.sourced.trusted else ""


def _clipped(line: str) -> str:
    clipped = clip_utf8(line, MAX_LINE_BYTES)
    return line if clipped == line else f"{clipped} [truncated]"


def _output_error(invocation: Invocation, lines: Sequence[str]) -> CallError:
    text = "\n".join(f"- {_clipped(line)}" for line in lines)
    return CallError(
        f'Tool "{invocation.subject}" returned details that do not match its declared '
        "outputSchema. It has run: check the state it left before you call it again.\n" + text,
        code="output_contract",
        effect="unknown",
    )


def _invalid_contract(invocation: Invocation, what: str) -> CallError:
    return CallError(
        f'Tool "{invocation.subject}" has an invalid {what}.',
        code="invalid_contract",
        effect="none",
    )
