"""What guest code cannot reach or forge, whatever built-in it replaces."""

from __future__ import annotations

import json

import pytest

from tests.execution.conformance.conftest import Kind
from tests.execution.conformance.harness import run, suspend
from toolcell.execution.contract import Answer, Executor, Faulted, Finished, Refusal

pytestmark = pytest.mark.anyio


async def test_programs_share_no_globals(executor: Executor) -> None:
    """BEHAVIOURS 103, rule 2.5."""
    await run(executor, "globalThis.x = 1; Array.prototype.y = 2; JSON.z = 3")
    assert (await run(executor, "return [typeof x, typeof [].y, typeof JSON.z]")).value == [
        "undefined"
    ] * 3


async def test_there_is_nothing_of_a_host(executor: Executor) -> None:
    """BEHAVIOURS 100, rule 9.3."""
    names = (
        "process module require fetch XMLHttpRequest Deno Bun WebAssembly navigator std os print"
    )
    source = f"return '{names}'.split(' ').map((n) => n + ':' + typeof globalThis[n])"
    found = (await run(executor, source)).value
    assert [entry for entry in found if not entry.endswith(":undefined")] == []


async def test_constructors_confer_nothing(executor: Executor, kind: Kind) -> None:
    """SE-01, BEHAVIOURS 114."""
    source = """const made = [text, call, handle, Promise, later(1).promise.then,
        Object.getPrototypeOf(async () => {}), Object.getPrototypeOf(function*() {})];
      let error; try { await call('boom') } catch (e) { error = e }
      made.push(error.constructor, error);
      return made.map((f) => { try {
        const build = typeof f.constructor === 'function' ? f.constructor.constructor : Function;
        return build('return typeof process + typeof require + typeof globalThis.Deno')()
      } catch (x) { return 'blocked' } })"""
    ran = await run(executor, source)
    if kind.boundary:
        assert set(ran.value) <= {"blocked", "undefinedundefinedundefined"}


async def test_modules_cannot_be_loaded(executor: Executor) -> None:
    """rule 3.2: the screen refuses these before; the engine has nothing to load either."""
    source = "try { await import('fs') } catch (e) { return e instanceof Error }"
    assert (await run(executor, source)).value is True
    assert (await run(executor, "return eval('import.meta')")).fault.kind == "error"


async def test_no_internal_name_is_left_on_the_global_object(executor: Executor) -> None:
    """BEHAVIOURS 101, SE-03."""
    source = """return Object.getOwnPropertyNames(globalThis).filter((n) =>
      /openclaw|engine|emit|dispatch|compile|bridge|kit|controller|^__/i.test(n))"""
    assert (await run(executor, source)).value == []


TAMPERING = [
    "Promise.prototype.then = () => { throw new Error('then') }",
    "Promise.prototype.constructor = class { }",
    "Object.defineProperty(Promise.prototype, 'constructor', {get() { throw new Error('ctor') }})",
    "Promise.resolve = Promise.reject = Promise.all = null",
    "globalThis.Promise = undefined",
    "JSON.parse = JSON.stringify = () => 'forged'",
    "globalThis.JSON = undefined",
    "Object.defineProperty = Object.keys = Object.create = null",
    "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null",
    "Reflect.apply = () => 'forged'",
    "Array.prototype[Symbol.iterator] = function*() { yield 'forged' }",
    "Array.prototype.push = Array.prototype.join = Array.prototype.map = () => 'forged'",
    "WeakMap.prototype.get = WeakMap.prototype.has = WeakMap.prototype.set = () => 'forged'",
    "String.prototype.indexOf = String.prototype.slice = () => 'forged'",
    "Object.prototype.error = {message: 'forged'}; Object.prototype.id = 1",
    "Object.defineProperty(Object.prototype, 'value', {set() { throw new Error('set') }})",
    "Object.defineProperty(Array.prototype, '0', {set() { throw new Error('set') }})",
    "Error.prototype.toString = () => 'forged'; globalThis.Error = globalThis.TypeError = null",
    "Object.defineProperty(Error.prototype, 'name', {get() { throw new Error('name') }})",
    "Object.defineProperty(Error.prototype, 'message', {get() { throw new Error('m') }})",
    "Error.prepareStackTrace = () => 'forged'; Error.stackTraceLimit = 0",
    "globalThis.undefined_ = 1; globalThis.Object = globalThis.Array = globalThis.String = null",
    "[Object, Array, Promise, String, Function].forEach((c) => Object.freeze(c.prototype))",
    (
        "const g = globalThis; "
        "for (const n of Object.keys(Object.getOwnPropertyDescriptors(g))) "
        "/call|text/.test(n) || delete g[n]"
    ),
]


@pytest.mark.parametrize("tampering", TAMPERING)
async def test_replaced_built_ins_forge_neither_replies_nor_results(
    executor: Executor, tampering: str
) -> None:
    """BEHAVIOURS 102, BEHAVIOURS 147, SE-03."""
    source = f"{tampering};\nconst got = await call('echo', 'real'); text(got); return got"
    if "throw new Error('ctor')" in tampering:
        assert (await run(executor, source)).fault.error.message == "ctor"  # its own await fails
        return
    step = await suspend(executor, source)
    assert [(one.id, one.method, one.args) for one in step.requests] == [(1, "echo", '["real"]')]
    end = await step.continuation.resume([Answer(1, '"answer"')], 5)
    assert isinstance(end, Finished), end
    assert json.loads(end.value) == "answer"
    assert [frame.text for frame in end.output] == ["answer"]


@pytest.mark.parametrize("tampering", TAMPERING)
async def test_replaced_built_ins_do_not_turn_a_failure_into_a_success(
    executor: Executor, tampering: str
) -> None:
    """BEHAVIOURS 102, EX-07."""
    step = await suspend(executor, f"{tampering};\ncall('boom'); return 'fine'")
    end = await step.continuation.resume([Refusal(1, '{"message":"real"}')], 5)
    assert isinstance(end, Faulted), end
    assert end.error.message == "real"
    assert end.error.request_id == 1


async def test_a_forged_to_json_changes_no_report(executor: Executor) -> None:
    """BEHAVIOURS 147."""
    source = """Object.prototype.toJSON = () => ({name: 'Forged', message: 'm', request_id: 7});
      throw new Error('real')"""
    fault = (await run(executor, source)).fault
    assert (fault.error.name, fault.error.message, fault.error.request_id) == (
        "Error",
        "real",
        None,
    )


async def test_call_sites_do_not_hand_out_the_controller(executor: Executor) -> None:
    """SE-01: a stack-trace hook sees no function that is not the guest's."""
    source = """const seen = [];
      Error.prepareStackTrace = (e, sites) => {
        for (const s of sites) if (s.getFunction) seen.push(typeof s.getFunction());
        return '' };
      const o = {toJSON() { return new Error('x').stack, 1 }}; json(o); text(o);
      try { null.x } catch (e) { e.stack } return seen"""
    assert (await run(executor, source)).value == []


async def test_functions_do_not_show_their_callers(executor: Executor) -> None:
    """SE-01."""
    source = """let found = []; const o = {toJSON: function probe() {
        try { found.push(typeof probe.caller) } catch (e) { found.push('refused') }
        try { found.push(typeof arguments.callee.caller) } catch (e) { found.push('refused') }
        return 1 }};
      json(o); return found"""
    assert "function" not in (await run(executor, source)).value


async def test_requests_cannot_carry_a_second_frame(executor: Executor) -> None:
    """SE-03: text that looks like the protocol stays text."""
    refused = await run(executor, "try { await call('a [1]', 2) } catch (e) { return e.name }")
    assert (refused.value, refused.requests) == ("TypeError", [])
    step = await suspend(executor, "await call('echo', '1 forged [\"x\"]\\n2 b []')")
    assert len(step.requests) == 1
    await step.continuation.dispose()
