"""Tools, hooks and approvers that raise what no handler expects: the runtime outlives them."""

import sys

import pytest

from toolcell import CodeMode, Hooks, Host, tool
from toolcell.protocol.approvals import ApprovalAnswer

pytestmark = pytest.mark.anyio


class PanicError(BaseException):
    """As extension modules raise: not an Exception."""


class UnshowableError(Exception):
    def __str__(self):
        raise PanicError

    __repr__ = __str__


def nested_group(depth):
    error = ValueError("innermost")
    for _ in range(depth):
        error = ExceptionGroup("group", [error])
    return error


RAISED = {
    "a panic": lambda: PanicError("panicked"),
    "a group with a panic": lambda: BaseExceptionGroup("g", [PanicError("panicked")]),
    "an unshowable error": UnshowableError,
    "a deep group": lambda: nested_group(3000),
    "a generator's exit": GeneratorExit,
}


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def thrower(make):
    @tool
    async def fail_hard() -> None:
        """Raise."""
        raise make()

    return fail_hard


@pytest.mark.parametrize("make", RAISED.values(), ids=RAISED)
async def test_a_tool_may_raise_anything_and_only_its_own_call_fails(make):
    """rule 3.10, rule 9.4: one call's fault never ends the runtime that others share."""
    async with CodeMode(tools=[add, thrower(make)], executor="quickjs") as cm:
        caught = await cm.exec("try { await fail_hard() } catch (e) { return typeof e.message }")
        assert caught.value == "string"
        after = await cm.exec("return await add({a: 1, b: 2})")
        assert after.value == 3


async def test_a_sync_tool_that_raises_keyboard_interrupt_does_not_stop_the_program():
    """rule 3.10: no signal reaches a thread, so it is the tool's own fault."""

    @tool
    def interrupt() -> None:
        """Raise KeyboardInterrupt."""
        raise KeyboardInterrupt

    async with CodeMode(tools=[interrupt], executor="quickjs") as cm:
        outcome = await cm.exec("try { await interrupt() } catch (e) { return e.message }")
        assert "KeyboardInterrupt" in outcome.value


def leave(_seen):
    sys.exit(3)


def panic(_seen):
    raise PanicError("panicked")


def unshowable(_seen):
    raise UnshowableError


@pytest.mark.parametrize("hook", [leave, panic, unshowable])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_hook_may_raise_anything_and_the_call_fails_closed(hook, when):
    """rule 8.1, PO-03, SE-07: blocked or withheld; the runtime goes on."""

    def only_add(seen):
        call = seen if when == "before" else seen.before
        return hook(seen) if call.tool_name == "add" else None

    host = Host(hooks=Hooks(**{when: (only_add,)}))
    async with CodeMode(tools=[add], executor="quickjs", host=host) as cm:
        for _ in range(2):
            outcome = await cm.exec(
                "try { return await add({a: 1, b: 2}) } catch (e) { return [e.code, e.message] }"
            )
            code, message = outcome.value
            assert code == "blocked"
            assert "hook failed" in message


@pytest.mark.parametrize("fault", [leave, panic, unshowable])
async def test_an_approver_may_raise_anything_and_it_is_a_no(fault):
    """rule 3.5, PO-06: closed when nobody gives an answer."""

    class Approver:
        async def request(self, request) -> ApprovalAnswer:
            return fault(request)

    config = {"tools": {"approvals": {"rules": [{"tool": "add", "decision": "ask"}]}}}
    host = Host(approver=Approver())
    async with CodeMode(tools=[add], executor="quickjs", config=config, host=host) as cm:
        for _ in range(2):
            outcome = await cm.exec(
                "try { return await add({a: 1, b: 2}) } catch (e) { return e.code }"
            )
            assert outcome.value == "blocked"
