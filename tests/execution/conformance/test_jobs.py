"""Promises, requests, timers: what drains, in which order, and when a program is over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.execution.conformance.harness import run, suspend
from toolcell.execution.contract import Answer, Executor, Finished, Suspended

pytestmark = pytest.mark.anyio


async def test_jobs_run_in_order_before_the_step_ends(executor: Executor) -> None:
    """rule 3.4."""
    source = """const seen = [];
      Promise.resolve().then(() => seen.push(2)).then(() => seen.push(4));
      (async () => { await null; seen.push(3) })(); seen.push(1);
      for (let i = 0; i < 5; i++) await null; return seen"""
    assert (await run(executor, source)).value == [1, 2, 3, 4]


async def test_thousands_of_chained_jobs_run_in_one_step(executor: Executor) -> None:
    """rule 3.4."""
    ran = await run(executor, "let n = 0; while (n < 20000) { await null; n++ } return n")
    assert (ran.value, ran.steps) == (20000, 1)


async def test_requests_count_from_one_in_call_order(executor: Executor) -> None:
    """rule 9.1: what the contract says of ids."""
    step = await suspend(
        executor, "await Promise.all([call('a', 1), call('b', {x: 2}), call('c')])"
    )
    asked = [(one.id, one.method, json.loads(one.args)) for one in step.requests]
    assert asked == [(1, "a", [1]), (2, "b", [{"x": 2}]), (3, "c", [])]
    await step.continuation.dispose()


@pytest.mark.parametrize(
    "argument",
    [
        "{get v() { inner.push(call('inner')); return 1 }}",
        "{toJSON() { inner.push(call('inner')); return {v: 1} }}",
        "new Proxy({v: 1}, {get(o, k) { if (k === 'v') inner.push(call('inner')); return o[k] }})",
    ],
)
async def test_arguments_that_ask_while_they_are_read_have_ids_of_their_own(
    executor: Executor, argument: str
) -> None:
    """rule 8.2, rule 9.1: no request takes the place of another."""
    step = await suspend(
        executor,
        f"const inner = []; const outer = call('outer', {argument});"
        "return [await outer, await inner[0], await call('after')]",
    )
    asked = [(one.id, one.method, json.loads(one.args)) for one in step.requests]
    assert asked == [(1, "inner", []), (2, "outer", [{"v": 1}])]
    held = await step.continuation.resume([Answer(1, '"in"'), Answer(2, '"out"')], 5)
    assert isinstance(held, Suspended)
    assert [one.id for one in held.requests] == [3]
    end = await held.continuation.resume([Answer(3, '"last"')], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == ["out", "in", "last"]


async def test_answers_are_delivered_in_the_order_given(executor: Executor) -> None:
    """BEHAVIOURS 186: the winner is the one that settles first."""
    step = await suspend(executor, "return await Promise.race([call('slow'), call('quick')])")
    first = await step.continuation.resume([Answer(2, '"quick"'), Answer(1, '"slow"')], 5)
    assert isinstance(first, Finished)
    assert json.loads(first.value) == "quick"


async def test_the_slower_calls_are_awaited_before_the_program_ends(executor: Executor) -> None:
    """BEHAVIOURS 186, BEHAVIOURS 187."""
    step = await suspend(executor, "return await Promise.race([call('slow'), call('quick')])")
    held = await step.continuation.resume([Answer(2, '"quick"')], 5)
    assert isinstance(held, Suspended)
    assert held.requests == ()
    end = await held.continuation.resume([Answer(1, '"slow"')], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == "quick"


async def test_a_detached_call_is_finished_before_the_program_is_done(executor: Executor) -> None:
    """BEHAVIOURS 188."""
    step = await suspend(executor, "call('echo').then((v) => text(v)); return 1")
    end = await step.continuation.resume([Answer(1, '"drained"')], 5)
    assert isinstance(end, Finished)
    assert [frame.text for frame in end.output] == ["drained"]


async def test_a_thousand_requests_in_one_step(executor: Executor) -> None:
    """BEHAVIOURS 185."""
    source = """const calls = Array.from({length: 1000}, (_, i) => call('echo', i));
      const all = await Promise.all(calls);
      return all.reduce((a, b) => a + b, 0)"""
    ran = await run(executor, source)
    assert (ran.value, ran.steps, len(ran.requests)) == (499500, 2, 1000)


@pytest.mark.parametrize(
    "argument",
    [
        "{n: 10n}",
        "(() => { const o = {}; o.o = o; return o })()",
        "{v: {toJSON() { throw new Error('no') }}}",
        "{v: {get x() { throw 5 }}}",
        "{v: Promise.resolve(1)}",
    ],
)
async def test_arguments_json_cannot_carry_are_refused_before_they_are_sent(
    executor: Executor, argument: str
) -> None:
    """BR-09."""
    source = f"""try {{ await call('echo', {argument}) }} catch (e) {{
      return [e.name, /JSON/.test(e.message), await call('echo', 7)] }}"""
    ran = await run(executor, source)
    assert ran.value == ["TypeError", True, 7]
    assert [request.id for request in ran.requests] == [1]


async def test_arguments_lose_what_json_drops(executor: Executor) -> None:
    """BR-09: undefined members are dropped as JSON does."""
    ran = await run(executor, "return await call('echo', {a: undefined, b: 1})")
    assert ran.value == {"b": 1}


async def test_a_withdrawn_request_no_longer_holds_the_program(executor: Executor) -> None:
    """EX-09, BEHAVIOURS 209: a cleared timer."""
    ran = await run(
        executor,
        "const t = later(90000); t.promise.then(() => text('NO')); withdraw(t.id); return 1",
    )
    assert (ran.value, ran.steps, ran.texts) == (1, 1, [])


async def test_only_what_was_opened_for_it_can_be_withdrawn(executor: Executor) -> None:
    """BEHAVIOURS 188: clearing a made-up timer id gives up no tool call."""
    ran = await run(executor, "call('boom', 'real'); withdraw(1); return 1")
    assert ran.fault.error.message == "real"


async def test_a_request_can_be_withdrawn_after_a_resume(executor: Executor) -> None:
    """EX-09, RS-01."""
    step = await suspend(
        executor,
        "const t = later(90000); t.promise.then(() => text('late')); "
        "await call('yield'); withdraw(t.id); withdraw(later(5).id); "
        "await call('again'); return 'done'",
    )
    middle = await step.continuation.resume([Answer(2, "null")], 5)
    assert isinstance(middle, Suspended)
    assert (middle.withdrawn, [one.id for one in middle.requests]) == ((1,), [4])
    end = await middle.continuation.resume([Answer(4, "null")], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == "done"


async def test_answers_to_unknown_or_settled_requests_are_ignored(executor: Executor) -> None:
    """rule 3.6: nothing is delivered twice."""
    step = await suspend(
        executor, "const a = await call('a'); const b = await call('b'); return [a, b]"
    )
    again = await step.continuation.resume([Answer(1, "1"), Answer(1, "2"), Answer(99, "3")], 5)
    assert isinstance(again, Suspended)
    end = await again.continuation.resume([Answer(2, "4")], 5)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == [1, 4]


async def test_sequential_calls_each_take_one_step(executor: Executor) -> None:
    """BEHAVIOURS 184, RS-07."""

    def count(_method: str, args: list[Any]) -> Any:
        return args[0] + 1

    source = "let n = 0; for (let i = 0; i < 50; i++) n = await call('next', n); return n"
    ran = await run(executor, source, host=count)
    assert (ran.value, ran.steps) == (50, 51)


async def test_large_replies_arrive_whole(executor: Executor) -> None:
    """BEHAVIOURS 192: what the host lets through fits."""

    def large(_method: str, _args: list[Any]) -> Any:
        return "é" * 1_000_000

    assert (await run(executor, "return (await call('big')).length", host=large)).value == 1_000_000
