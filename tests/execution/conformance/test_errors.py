"""How programs fail: names, messages, places in the user's own source."""

from __future__ import annotations

import json

import pytest

from tests.execution.conformance.conftest import Kind
from tests.execution.conformance.harness import FILENAME, first, run, suspend
from toolcell.execution.contract import Answer, Executor, Faulted, Finished, Refusal, Suspended

pytestmark = pytest.mark.anyio


async def test_a_syntax_error_names_the_users_line(executor: Executor) -> None:
    """EX-03: wrapper lines are not counted."""
    fault = (await run(executor, "const a = 1;\nconst b = ;")).fault
    assert fault.kind == "syntax"
    assert fault.error.name == "SyntaxError"
    assert fault.error.line == 2


async def test_a_runtime_error_names_the_users_line_and_column(executor: Executor) -> None:
    """EX-03."""
    fault = (await run(executor, "await 0;\n  null.x;")).fault
    assert fault.kind == "error"
    assert fault.error.name == "TypeError"
    assert (fault.error.line, fault.error.column is not None) == (2, True)
    assert f"{FILENAME}:2:" in fault.error.stack


async def test_the_first_line_has_right_columns(executor: Executor) -> None:
    """EX-03."""
    fault = (await run(executor, "   throw new Error('here')")).fault
    assert fault.error.line == 1
    assert fault.error.column is not None
    assert fault.error.column in range(4, 26)


async def test_stacks_show_no_frame_of_the_controller(executor: Executor) -> None:
    """rule 3.10."""
    for source in ("return {toJSON() { throw new Error('x') }}", "await call('boom', 'y')"):
        fault = (await run(executor, source)).fault
        assert all(FILENAME in line for line in fault.error.stack.splitlines())
    stack = (await run(executor, "try { await call('boom') } catch (e) { return e.stack }")).value
    assert all(FILENAME in line for line in stack.splitlines())


@pytest.mark.parametrize(
    "source",
    [
        "}); 1; (async function(){",
        "} + 1 + function(){",
        "}, globalThis.x = 1, async function(){",
        "})(); (async function(){",
        "*/ } /*",
        "return 1 })(",
    ],
)
async def test_source_that_closes_the_wrapper_does_not_parse(
    executor: Executor, source: str
) -> None:
    """rule 3.2: nothing of such a source runs."""
    assert (await run(executor, source)).fault.kind == "syntax"


@pytest.mark.parametrize(
    "source",
    [
        "return 5 //",
        "return 5 /* */",
        "'use strict'; return 5",
        "return (() => { return 5 })()",
        "{ return 5 }",
        "return 5;\n\n",
        "label: { break label } return 5",
        "var await_ = 5; return await_",
    ],
)
async def test_ordinary_bodies_parse(executor: Executor, source: str) -> None:
    """rule 3.1."""
    assert (await run(executor, source)).value == 5


async def test_bodies_run_in_sloppy_mode(executor: Executor) -> None:
    """rule 3.1: what models write against a script works."""
    assert (await run(executor, "leak = 4; return globalThis.leak")).value == 4


async def test_an_error_called_interrupted_is_no_timeout(executor: Executor) -> None:
    """EX-01, BEHAVIOURS 106."""
    fault = (await run(executor, "throw new Error('interrupted')")).fault
    assert (fault.kind, fault.error.message) == ("error", "interrupted")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("throw 'text'", "Uncaught text"),
        ("throw null", "Uncaught null"),
        ("throw {a: 1}", 'Uncaught {"a":1}'),
        ("throw Symbol('s')", "Uncaught Symbol(s)"),
    ],
)
async def test_thrown_values_that_are_no_errors_are_shown(
    executor: Executor, source: str, message: str
) -> None:
    """rule 3.10."""
    assert (await run(executor, source)).fault.error.message == message


async def test_an_error_that_cannot_be_shown_still_fails_the_program(executor: Executor) -> None:
    """rule 3.10: hostile errors do not break the report."""
    source = """const e = new Error('x');
      Object.defineProperty(e, 'message', {get() { throw 1 }}); throw e"""
    assert (await run(executor, source)).fault.kind == "error"
    huge = (await run(executor, "throw new Error('x'.repeat(1e6))")).fault
    assert huge.error.message.endswith(" [error truncated]")
    assert len(huge.error.message) < 20_000


async def test_a_refused_request_is_a_plain_error_with_its_fields(executor: Executor) -> None:
    """rule 3.10, BEHAVIOURS 112, BEHAVIOURS 148."""
    source = """try { await call('boom', 'no') } catch (e) {
      return [e instanceof Error, Object.getPrototypeOf(e) === Error.prototype,
              e.message, e.code] }"""
    assert (await run(executor, source)).value == [True, True, "no", "tool_error"]


async def test_an_uncaught_refusal_says_which_request(executor: Executor) -> None:
    """BEHAVIOURS 143, BEHAVIOURS 144, BEHAVIOURS 147: only the error itself, unchanged."""
    plain = (await run(executor, "await call('echo');\nawait call('boom', 'b')")).fault
    assert plain.error.request_id == 2
    assert plain.error.line == 2
    for source in (
        "try { await call('boom') } catch (e) { throw new Error('own') }",
        "try { await call('boom') } catch (e) { throw new Error(e.message) }",
        "try { await call('boom') } catch (e) { e.message = 'mine'; throw e }",
        "throw Object.assign(new Error('boom'), {request_id: 1, code: 'tool_error'})",
    ):
        assert (await run(executor, source)).fault.error.request_id is None, source


async def test_two_hundred_refusals_leave_the_engine_sound(executor: Executor) -> None:
    """EX-13."""
    source = (
        "let n = 0; for (let i = 0; i < 200; i++) "
        "{ try { await call('boom', String(i)) } catch (x) { n++ } } return n"
    )
    assert (await run(executor, source)).value == 200
    assert (await run(executor, "return 1")).value == 1


async def test_an_unawaited_failing_call_fails_the_program(executor: Executor) -> None:
    """EX-07, rule 3.10, BEHAVIOURS 150."""
    fault = (await run(executor, "call('boom', 'a'); return 'fine'")).fault
    assert fault.error.message == "a"
    assert fault.error.request_id == 1


async def test_a_rejection_handled_after_a_pause_is_handled(executor: Executor) -> None:
    """EX-07: judged only at the end."""
    step = await suspend(
        executor,
        "const p = call('boom'); await call('yield'); try { await p } catch (x) { return 'late' }",
    )
    refused = Refusal(1, json.dumps({"message": "b"}))
    again = await step.continuation.resume([refused], 5)
    assert isinstance(again, Suspended)
    end = await again.continuation.resume([Refusal(2, json.dumps({"message": "c"}))], 5)
    assert isinstance(end, Faulted)
    assert end.error.message == "c"
    settled = await run(
        executor, "return (await Promise.allSettled([call('boom', 'c')]))[0].status"
    )
    assert settled.value == "rejected"


async def test_a_handled_rejection_after_the_answer_completes(executor: Executor) -> None:
    """EX-07, second control."""
    step = await suspend(
        executor,
        "const p = call('boom'); await call('yield'); try { await p } catch (x) { return 'late' }",
    )
    again = await step.continuation.resume([Refusal(1, '{"message":"b"}')], 5)
    assert isinstance(again, Suspended)
    end = await again.continuation.resume([Answer(2, "null")], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == "late"


async def test_a_rejection_nobody_handles_fails_the_program(executor: Executor) -> None:
    """rule 3.10: of any promise, not only of calls."""
    fault = (await run(executor, "Promise.reject(new RangeError('lost')); return 1")).fault
    assert (fault.error.name, fault.error.message) == ("RangeError", "lost")


async def test_waiting_for_nothing_is_an_error(executor: Executor) -> None:
    """BEHAVIOURS 109."""
    fault = (await run(executor, "await new Promise(() => undefined)")).fault
    assert fault.kind == "error"
    assert "pending without host work" in fault.error.message


async def test_deep_recursion_is_an_error_that_can_be_caught(
    executor: Executor, kind: Kind
) -> None:
    """rule 9.4."""
    caught = (
        "let d = 0; function f() { d++; f() } try { f() } catch (e) { return [e.name, d > 100] }"
    )
    assert (await run(executor, caught)).value == ["RangeError", True]
    for source in (
        "function f(n) { return f(n + 1) + 1 } return f(0)",
        "function g() { [1, 2].sort(g) } g()",
        "function g() { 'a'.replace(/a/, g) } g()",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x",
        "let f = function() {}; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()",
        "return eval('('.repeat(1e5) + '1' + ')'.repeat(1e5))",
        "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('')",
        "const o = {get x() { return this.x }}; return o.x",
        "class A { constructor() { new A() } } new A()",
        "const o = {toString() { return '' + o }}; return '' + o",
    ):
        step = await first(executor, source, seconds=20)
        if source in kind.unbounded:
            assert isinstance(step, Finished), source
            continue
        assert isinstance(step, Faulted), source
        # Ten thousand nested binds need memory before they need stack.
        assert step.kind in ({"error", "memory"} if "bind" in source else {"error"}), source
