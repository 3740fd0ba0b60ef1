"""Owns the two contracts of a call: its input, checked after the hooks, and its output (rule 7.1).

Above: the gate. Below: `schema.validation`, which remembers what it compiled by schema object, so
that a tool published again with another schema is compiled again (BEHAVIOURS 289).
Refuses to know: hooks, approvals.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolcell.base.jsontext import dumps
from toolcell.calls.invocation import Invocation
from toolcell.errors import CallError, SchemaError
from toolcell.schema.discriminator import Branch, Discriminator, discriminator_of
from toolcell.schema.validation import (
    Validator,
    Violation,
    compile_validator,
    did_you_mean,
    violation_lines,
)
from toolcell.schema.violations import describe_kind
from toolcell.tools.content import MISSING

MAX_BROKEN: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract:
    """What the details of one call are held to.

    Attributes:
        validator: Checks the whole `outputSchema`.
        branches: The branches that the input selects, with whose input it is (BEHAVIOURS 292):
            the caller's, as it was promised that one, and the executed one where a hook changed it.
            Each comes with what checks it alone.
    """

    validator: Validator
    branches: tuple[tuple[str, Branch, Validator], ...] = ()


class Contracts:
    """Applies the contracts of tools; remembers the schemas that do not compile."""

    __slots__ = ("_broken",)

    def __init__(self) -> None:
        self._broken: OrderedDict[int, Mapping[str, Any]] = OrderedDict()

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
            raise _input_error(invocation, violations)

    def output(
        self, invocation: Invocation, asked: Any, arguments: Mapping[str, Any]
    ) -> OutputContract | None:
        """Return what checks the tool's details; None without a trusted `outputSchema`.

        Args:
            invocation: The call.
            asked: The arguments as the caller gave them.
            arguments: The arguments as the hooks left them, which the tool runs with.

        Raises:
            CallError: `invalid_contract` (BEHAVIOURS 283, 292).
        """
        schema = invocation.sourced.tool.output_schema
        if schema is None or not invocation.sourced.trusted:
            return None
        validator = self._validator(schema)
        if validator is None:
            raise _invalid_contract(invocation, "outputSchema")
        try:
            found = discriminator_of(schema, invocation.sourced.tool.parameters)
            selected = _selected(found, asked, arguments) if found else {}
            branches = [(who, each, each.within(validator)) for each, who in selected.items()]
        except SchemaError as error:
            raise _invalid_contract(invocation, "outputSchema", error.message) from None
        return OutputContract(validator=validator, branches=tuple(branches))

    def _validator(self, schema: Mapping[str, Any]) -> Validator | None:
        if self._broken and self._broken.get(id(schema)) is schema:
            return None
        try:
            return compile_validator(schema)
        except SchemaError:
            self._broken[id(schema)] = schema
            if len(self._broken) > MAX_BROKEN:
                self._broken.popitem(last=False)
            return None


def check_output(invocation: Invocation, contract: OutputContract, details: Any) -> None:
    """Check details as the hooks left them. The value is never printed (BEHAVIOURS 284).

    Raises:
        CallError: `output_contract`.
    """
    if details is MISSING:
        raise _output_error(invocation, ["details are missing"])
    for whose, branch, validator in contract.branches:
        violations = validator.errors(details)
        if violations:
            lines = violation_lines(violations, show_value=False)
            raise _output_error(invocation, lines, which=_which(whose, branch))
    violations = contract.validator.errors(details)
    if violations:
        raise _output_error(invocation, violation_lines(violations, show_value=False))


def check_object(invocation: Invocation) -> None:
    """Check that the arguments are one object at all; this comes before the hooks, which see it.

    Raises:
        CallError: `input_contract`.
    """
    arguments = invocation.arguments
    if isinstance(arguments, Mapping):
        return
    kind = describe_kind(arguments)
    raise CallError(
        f'Invalid arguments for tool "{invocation.subject}": expected one object, got {kind}.'
        + _expected(invocation),
        code="input_contract",
        effect="none",
    )


def _input_error(invocation: Invocation, violations: Sequence[Violation]) -> CallError:
    text = "; ".join(violation_lines(violations, show_value=True))
    trusted = invocation.sourced.trusted
    meant = f" {guess}" if trusted and (guess := did_you_mean(violations)) else ""
    return CallError(
        f'Invalid arguments for tool "{invocation.subject}": {text}.{meant}{_expected(invocation)}',
        code="input_contract",
        effect="none",
        untrusted=not trusted,
    )


def _expected(invocation: Invocation) -> str:
    hint = invocation.input_hint
    return f" Expected input: {hint}." if hint and invocation.sourced.trusted else ""


def _selected(found: Discriminator, asked: Any, arguments: Any) -> dict[Branch, str]:
    """Return each branch that one of the inputs selects, the caller's first, with whose it is."""
    selected: dict[Branch, str] = {}
    for whose, given in (("the caller's", asked), ("the executed", arguments)):
        branch = found.selected(given)
        if branch is not None:
            selected.setdefault(branch, whose)
    return selected


def _which(whose: str, branch: Branch) -> str:
    return f" With {whose} {branch.input_property} {dumps(branch.value)} it is {branch.pointer}."


def _output_error(invocation: Invocation, lines: Sequence[str], *, which: str = "") -> CallError:
    text = "\n".join(f"- {line}" for line in lines)
    return CallError(
        f'Tool "{invocation.subject}" returned details that do not match its declared '
        f"outputSchema.{which} It has run: check the state it left before you call it again.\n"
        + text,
        code="output_contract",
        effect="unknown",
    )


def _invalid_contract(invocation: Invocation, what: str, why: str = "") -> CallError:
    return CallError(
        f'Tool "{invocation.subject}" has an invalid {what}{": " + why if why else ""}.',
        code="invalid_contract",
        effect="none",
    )
