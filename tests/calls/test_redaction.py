"""Secrets are masked in what is stored, never in what the running cell gets."""

import pytest

from tests.calls.kit import Counted, Recording, core, invocation
from toolcell.calls.gate import Gate
from toolcell.calls.redaction import MASK, Redactor
from toolcell.errors import CallError
from toolcell.policy.approvals import ApprovalRule, ApprovalRules
from toolcell.protocol.hooks import Ask, Hooks

pytestmark = pytest.mark.anyio

CANARY = 'S3CR3T-"CANARY"-0001'


async def test_the_record_is_masked_and_the_caller_is_not() -> None:
    """SE-08, rule 8.4: arguments, results, progress, errors, reasons: nowhere in the events."""

    async def body(arguments: object, context: object) -> object:
        context.update({"at": f"key {CANARY}"})  # type: ignore[attr-defined]
        return await Counted({CANARY: [f"x{CANARY}y", 12345678]})(arguments, context)  # type: ignore[arg-type]

    sink = Recording()
    hooks = Hooks(before=[lambda _: Ask(reason=f"uses {CANARY}")])
    rules = ApprovalRules((ApprovalRule(tool="boom", decision="deny", reason=CANARY),))
    redactor = Redactor([CANARY, "12345678"])
    plain = Gate(sink=sink, redactor=redactor)
    result = await plain.call(invocation(core("x", body), {"token": CANARY}))
    assert result.details == {CANARY: [f"x{CANARY}y", 12345678]}
    assert sink.ended[0].result == {MASK: [f"x{MASK}y", MASK]}
    assert sink.started[0].arguments == {"token": MASK}
    with pytest.raises(CallError, match=CANARY):
        await plain.call(invocation(core("y", Counted(raises=ValueError(f"bad {CANARY}")))))
    asking = Gate(sink=sink, redactor=redactor, hooks=hooks, approvals=rules)
    for name in ("x", "boom"):
        with pytest.raises(CallError):
            await asking.call(invocation(core(name, body)))
    assert len(sink.events) > 8
    assert "CANARY" not in repr(sink.events)


def test_the_longest_secret_wins_and_short_ones_are_left_alone() -> None:
    """SE-08: a secret that begins another leaves no tail; `no` and blanks mask nothing."""
    redactor = Redactor(["abcd", "abcdef", "no", "", "    "])
    assert redactor.text("x abcdef abcd no") == f"x {MASK} {MASK} no"
    value = {"a": [None, True, 1.5, "no"]}
    assert Redactor(["no"]).value(value) is value
    assert redactor.value(value) == value


@pytest.mark.parametrize(
    "secret",
    ['quo"ted-secret', "back\\slash", "line\nbreak", "tab\tand\x00nul", "ümläut-☃", "12345678"],
)
def test_a_secret_is_found_however_json_writes_it(secret: str) -> None:
    """SE-08: secrets are looked for in the JSON text, where some characters are escaped."""
    redactor = Redactor([secret, "another"])
    found = redactor.value({"a": [{f"k{secret}": f"x{secret}y"}], "n": 123456789})
    masked = {"a": [{f"k{MASK}": f"x{MASK}y"}], "n": 123456789}
    assert found == ({**masked, "n": MASK} if secret.isdigit() else masked)
    untouched = {"a": ["no secret", 1.5, None]}
    assert redactor.value(untouched) is untouched


@pytest.mark.parametrize("depth", [300, 490, 700, 900])
async def test_what_is_nested_deeply_is_masked_and_is_no_fault_of_the_gate(depth: int) -> None:
    """SE-08: Python's stack ends before the JSON reader's; the call has run."""
    value: object = CANARY
    for _ in range(depth // 2):
        value = {"a": [value]}
    sink = Recording()
    gate = Gate(sink=sink, redactor=Redactor([CANARY]))
    result = await gate.call(invocation(core("x", Counted(value)), {"given": value}))
    assert CANARY in leaf(result.details)
    for seen in (sink.started[0].arguments["given"], sink.ended[0].result):
        assert leaf(seen) == MASK


def leaf(value: object) -> str:
    """Return what a chain ends in."""
    while not isinstance(value, str):
        assert isinstance(value, dict | list)
        (value,) = value.values() if isinstance(value, dict) else value
    return value
