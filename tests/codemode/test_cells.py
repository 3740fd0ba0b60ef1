"""Cells on the real engine: values, output, errors, limits, draining."""

import sys

import anyio
import pytest

from tests.codemode.support import EXECUTORS, bench_on, quickjs, run, value_of
from toolcell.base.jsontext import dumps, utf8_length
from toolcell.protocol.events import CallEnded, CallStarted, CellEnded, CellStarted

pytestmark = pytest.mark.anyio

NESTED = "let a=[]; for(let i=0;i<5000;i++) a=[a];"
SHALLOW = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="json carries it; what is deeper ends in the engine"
)


async def failure(runtime, code):
    outcome = await run(runtime, code)
    assert outcome.status == "failed", outcome
    return outcome


async def test_values_and_output_come_back_in_order():
    """rule 3.3, rule 3.4, rule 3.11, BEHAVIOURS 90, BEHAVIOURS 91, BEHAVIOURS 115 to 119."""
    async with quickjs() as host:
        runtime = host.runtime()
        outcome = await run(
            runtime,
            "const o={b:1}; text('a'); json(o); o.b=2; json(undefined); text(undefined);"
            "json(12n); return await Promise.resolve(3)",
        )
        document = outcome.to_dict()
        assert document["status"] == "completed"
        assert document["value"] == 3
        assert document["output"] == [
            {"type": "text", "text": "a"},
            {"type": "json", "value": {"b": 1}},
            {"type": "json", "value": None},
            {"type": "text", "text": "null"},
            {"type": "json", "value": "12"},
        ]
        assert await value_of(runtime, "1 + 1") is None
        assert await value_of(runtime, "return undefined") is None
        assert await value_of(runtime, "return 5n") == "5"
        assert await value_of(runtime, "const a=[]; a[0]=a; return a") == "[object Array]"
        error = await value_of(runtime, "return Object.assign(new TypeError('x'), {code: 7})")
        assert (error["name"], error["message"], error["code"]) == ("TypeError", "x", 7)


async def test_telemetry_is_complete_and_has_no_inputs():
    """rule 8.4, BEHAVIOURS 216, BEHAVIOURS 217, BEHAVIOURS 220, BR-10, TR-07."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(
            runtime,
            "await catalog.search('echo'); await catalog.search('add'); await echo.describe();"
            "await echo({v:'SECRET'}); await yield_control(); await echo({v:1});"
            "try { await boom({why:'x'}) } catch {}",
        )
        outcome = await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        telemetry = outcome.to_dict()["telemetry"]
        assert outcome.value is None
        assert telemetry["searchCount"] == 2
        assert telemetry["describeCount"] == 1
        assert telemetry["callCount"] == 3
        assert telemetry["catalogSize"] == 8
        assert telemetry["sources"] == {"openclaw": 8, "mcp": 0, "client": 0}
        assert telemetry["visibleTools"] == ["exec", "wait"]
        assert telemetry["counterScope"] == waiting.telemetry["counterScope"]
        assert "SECRET" not in dumps(telemetry)


async def test_errors_carry_name_place_phase_and_code():
    """rule 3.9, EX-03, BEHAVIOURS 86, BEHAVIOURS 88, BEHAVIOURS 118, BEHAVIOURS 139 to 144."""
    async with quickjs() as host:
        runtime = host.runtime()
        syntax = await failure(runtime, "const a = 1;\nconst b = ;")
        assert syntax.error.startswith("SyntaxError at openclaw-code-mode:user.js:2:")
        assert (syntax.code, syntax.phase, syntax.dispatched) == ("invalid_input", "input", False)
        typed = await failure(runtime, "await 0;\nnull.x;")
        assert typed.error.startswith("TypeError:")
        assert "user.js:2:" in typed.error
        assert (typed.code, typed.phase, typed.dispatched) == ("internal_error", "guest", False)
        missing = await failure(runtime, "return missingFn()")
        assert "ReferenceError" in missing.error
        assert "missingFn is not defined" in missing.error
        after = await failure(runtime, "text('before'); await echo({v:1}); throw new Error('boom')")
        assert "Error: boom" in after.error
        assert after.output == ({"type": "text", "text": "before"},)
        assert (after.phase, after.dispatched) == ("guest", True)
        nested = await failure(runtime, "await boom({why:'a'})")
        assert (nested.phase, nested.code) == ("bridge", "internal_error")
        caught = await failure(
            runtime, "try { await boom({why:'a'}) } catch {} throw new Error('mine')"
        )
        assert caught.phase == "guest"
        contract = await failure(runtime, "await add({a:'1', b:2})")
        assert (contract.phase, contract.code) == ("bridge", "invalid_input")
        assert set(contract.to_dict()) >= {"failurePhase", "bridgeDispatchStarted", "telemetry"}


async def test_an_imitated_failure_changes_nothing():
    """BEHAVIOURS 147."""
    async with quickjs() as host:
        outcome = await failure(
            host.runtime(),
            "try { await boom({why:'a'}) } catch {}"
            "throw Object.assign(new Error('fake'), {request_id: 1, code: 'invalid_input'})",
        )
        assert (outcome.phase, outcome.code) == ("guest", "internal_error")


async def test_a_nested_failure_is_plain_catchable_data():
    """rule 3.10, BR-01, BR-05, BEHAVIOURS 112, BEHAVIOURS 145, BEHAVIOURS 148."""
    async with quickjs() as host:
        value = await value_of(
            host.runtime(),
            "let r; try { await boom({why:'q'}) } catch (x) {"
            " r = {n: x.name, m: x.message, c: x.code, e: x.effectStatus, l: typeof x.location,"
            "      p: Object.getPrototypeOf(x) === Error.prototype} } return r",
        )
        assert value == {
            "n": "Error", "m": "boom: q", "c": "tool_error", "e": "unknown", "l": "string", "p": True,  # noqa: E501 - a program on one line
        }  # fmt: skip


async def test_ids_in_errors_become_callable_names():
    """BEHAVIOURS 149."""
    async with quickjs() as host:
        message = await value_of(
            host.runtime(), "try { await add({a:1}) } catch (x) { return x.message }"
        )
        assert '"add"' in message
        assert "openclaw:core" not in message


async def test_arguments_are_checked_before_the_tool_runs():
    """BR-02, BR-03, PO-05."""
    async with quickjs() as host:
        runtime = host.runtime()
        for call in ("add({a:'1',b:2})", "add([1,2])", "add(null)", "add()", "add({a:1,c:2})"):
            message = await value_of(
                runtime, f"try {{ await {call}; return 'ran' }} catch (x) {{ return x.code }}"
            )
            assert message == "input_contract", call
        assert host.fixture.count("add") == 0
        assert await value_of(runtime, "return await add({a:1,b:2})") == {"sum": 3}


async def test_what_json_cannot_carry_is_refused_before_it_is_sent():
    """BR-09, rule 8.5."""
    async with quickjs() as host:
        value = await value_of(
            host.runtime(),
            "const bad = []; const o = {}; o.o = o;"
            "for (const v of [{n:10n}, {v:o}, {v:{toJSON(){throw new Error('no')}}}])"
            " { try { await count(v); bad.push('ran') } catch (x) { bad.push(x.name) } }"
            "return [...bad, (await count({})).n]",
        )
        assert value == ["TypeError", "TypeError", "TypeError", 1]


async def test_an_unawaited_failure_fails_the_cell():
    """rule 3.10, EX-07, BEHAVIOURS 150."""
    async with quickjs() as host:
        runtime = host.runtime()
        outcome = await failure(runtime, "boom({why:'a'}); return 'fine'")
        assert "boom: a" in outcome.error
        assert outcome.phase == "bridge"
        settled = "return (await Promise.allSettled([boom({why:'c'})]))[0].status"
        assert await value_of(runtime, settled) == "rejected"


async def test_a_late_catch_after_a_yield_counts():
    """EX-07."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(
            runtime,
            "const p = boom({why:'b'}); await yield_control();"
            "try { await p } catch (x) { return 'late' }",
        )
        assert waiting.status == "waiting"
        outcome = await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        assert outcome.value == "late"


async def test_unawaited_promises_are_named_in_the_value():
    """EX-08, BEHAVIOURS 121."""
    async with quickjs() as host:
        value = await value_of(
            host.runtime(), "return [echo({v:1}), {p: new Promise(()=>{})}, {then: 5}]"
        )
        assert "Promise.all" in value[0]
        assert "await" in value[1]["p"]
        assert value[2] == {"then": 5}


async def test_a_loop_ends_at_the_limit_while_the_host_goes_on():
    """rule 9.4, EX-01, BEHAVIOURS 105, BEHAVIOURS 106."""
    async with quickjs() as host:
        runtime = host.runtime(timeout_ms=300)
        await runtime.prepare()
        ticks = 0

        async def ticker():
            nonlocal ticks
            while True:
                await anyio.sleep(0.02)
                ticks += 1

        async with anyio.create_task_group() as group:
            group.start_soon(ticker)
            outcome = await failure(runtime, "while(true){}")
            group.cancel_scope.cancel()
        assert outcome.code == "timeout"
        assert "code mode timeout exceeded" in outcome.error
        assert ticks >= 8
        thrown = await failure(runtime, "throw new Error('interrupted')")
        assert thrown.code == "internal_error"
        assert "Error: interrupted" in thrown.error


async def test_compute_after_a_reply_has_only_the_rest_of_the_budget():
    """BEHAVIOURS 193."""
    async with quickjs() as host:
        runtime = host.runtime(timeout_ms=600)
        await runtime.prepare()
        with anyio.fail_after(1.6):
            outcome = await failure(runtime, "await slow({ms:300}); while(true){}")
        assert outcome.code == "timeout"


async def test_memory_ends_the_cell_only():
    """EX-10, BEHAVIOURS 108."""
    async with quickjs() as host:
        runtime = host.runtime(memory_limit_bytes=8 << 20)
        outcome = await failure(runtime, "let s=['k']; while(true) s=s.concat(s)")
        assert "memory" in outcome.error.lower()
        assert outcome.code == "internal_error"
        assert await value_of(runtime, "return 1") == 1


async def test_a_program_that_waits_for_nothing_fails_at_once():
    """BEHAVIOURS 109."""
    async with quickjs() as host:
        outcome = await failure(host.runtime(), "await new Promise(() => undefined)")
        assert "pending without host work" in outcome.error
        assert outcome.code == "internal_error"
        assert host.store.statistics()["parked"] == 0


async def test_cells_share_nothing():
    """BEHAVIOURS 100, BEHAVIOURS 101, BEHAVIOURS 103, BEHAVIOURS 104."""
    async with quickjs() as host:
        runtime = host.runtime()
        await run(runtime, "globalThis.x = 1; Array.prototype.push = 1; echo.y = 1")
        assert await value_of(runtime, "return [typeof x, typeof [].push, typeof echo.y]") == [
            "undefined", "function", "undefined",
        ]  # fmt: skip
        names = (
            "[typeof process, typeof module, typeof require, typeof fetch, typeof XMLHttpRequest]"
        )
        assert set(await value_of(runtime, f"return {names}")) == {"undefined"}
        assert (
            await value_of(runtime, "return typeof globalThis.__openclawHostRequest") == "undefined"
        )
        values = {}

        async def one(number):
            values[number] = await value_of(runtime, f"return (await echo({{v: {number}}})).v")

        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(one, number)
        assert values == {number: number for number in range(12)}


async def test_sequential_and_parallel_calls_drain_in_one_exec():
    """rule 3.5, rule 8.2, RS-07, BEHAVIOURS 184, BEHAVIOURS 185, BEHAVIOURS 188."""
    async with quickjs() as host:
        runtime = host.runtime(max_pending_tool_calls=2)
        assert await value_of(
            runtime, "let n=0; for (let i=0;i<10;i++) n += (await echo({v:i})).v; return n"
        ) == 45  # fmt: skip
        tags = "Array.from({length:5}, (_, i) => slow({ms:20, tag:i}))"
        value = await value_of(runtime, f"return (await Promise.all({tags})).map(r => r.tag)")
        assert value == [0, 1, 2, 3, 4]
        assert host.fixture.most_overlap == 2
        await value_of(runtime, "void count({}); return 1")
        assert host.fixture.count("count") == 1


async def test_a_race_is_won_by_what_really_settles_first():
    """BEHAVIOURS 186, BEHAVIOURS 187."""
    async with quickjs() as host:
        runtime = host.runtime()
        value = await value_of(
            runtime,
            "return (await Promise.race([slow({ms:60, tag:'s'}), slow({ms:5, tag:'f'})])).tag",
        )
        assert value == "f"
        assert host.fixture.aborted == []
        value = await value_of(
            runtime,
            "const slower = [slow({ms:30, tag:1}), slow({ms:30, tag:2})];"
            "try { await Promise.all([boom({why:'x'}), ...slower]) } catch { return 'caught' }",
        )
        assert value == "caught"
        assert host.fixture.aborted == []


async def test_a_burst_over_the_queue_sends_nothing():
    """rule 8.2, BEHAVIOURS 189."""
    async with quickjs() as host:
        runtime = host.runtime(max_pending_tool_calls=2)
        burst = "await Promise.allSettled(Array.from({length: %d}, () => count({}))); return 1"
        outcome = await failure(runtime, burst % 131)
        assert outcome.code == "invalid_input"
        assert (
            "code mode bridge queue limit exceeded (128 ordinary requests queued; 2 in-flight slots)"  # noqa: E501 - a program on one line
            in outcome.error
        )
        assert host.fixture.count("count") == 0
        assert await value_of(runtime, burst % 130) == 1
        assert host.fixture.count("count") == 130


async def test_a_big_result_reaches_the_guest_whole_and_the_model_cut():
    """LM-01, rule 3.11."""
    async with quickjs() as host:
        runtime = host.runtime()
        assert await value_of(runtime, "return (await big({n:200000})).text.length") == 200_000
        outcome = await run(runtime, "return await big({n:200000})")
        document = outcome.to_dict()
        assert document["value"]["truncated"] is True
        assert document["truncated"] is True
        assert utf8_length(dumps(document)) <= 65_536


async def test_a_reply_over_the_inbox_is_a_catchable_error():
    """rule 8.5, BEHAVIOURS 192."""
    async with quickjs() as host:
        runtime = host.runtime(memory_limit_bytes=4 << 20)
        value = await value_of(
            runtime,
            "try { await big({n: 1100000}) } catch (x) { return [x.code, x.message] }",
        )
        assert value[0] == "invalid_input"
        assert value[1].startswith("Code Mode program-data budget exceeded. Paginate or narrow")


async def test_many_rejections_in_a_row_harm_nothing():
    """EX-13."""
    async with quickjs() as host:
        runtime = host.runtime()
        value = await value_of(
            runtime,
            "let n=0; for (let i=0;i<200;i++) { try { await boom({why:String(i)}) } catch { n++ } }"
            "return n",
        )
        assert value == 200
        assert await value_of(runtime, "return 1") == 1


async def test_a_failed_cell_leaves_its_calls_on_record_and_the_next_runs():
    """TR-04, BEHAVIOURS 146, RS-11."""
    async with quickjs() as host:
        runtime = host.runtime()
        await failure(runtime, "for (let i=0;i<5;i++) await count({}); throw new Error('stop')")
        ended = host.events.of(CallEnded)
        assert [event.status for event in ended] == ["completed"] * 5
        assert {event.parent_id for event in ended} == {"call-1"}
        assert await value_of(runtime, "return (await count({})).n") == 6


async def test_each_cell_is_on_record_with_one_end():
    """rule 8.3: what began ends once."""
    async with quickjs() as host:
        runtime = host.runtime()
        await run(runtime, "return 1")
        await run(runtime, "throw 1")
        started, ended = host.events.of(CellStarted), host.events.of(CellEnded)
        assert [event.cell_id for event in started] == [event.cell_id for event in ended]
        assert [event.status for event in ended] == ["completed", "failed"]
        assert started[0].executor == "quickjs"


async def test_refused_cells_start_no_engine():
    """EX-04, BEHAVIOURS 141."""
    async with quickjs() as host:
        runtime = host.runtime()
        for code in ("ls -la", "import('x')"):
            outcome = await failure(runtime, code)
            assert (outcome.code, outcome.phase, outcome.dispatched) == (
                "invalid_input", "input", False,
            )  # fmt: skip
        assert host.executor.statistics()["programs_started"] == 0
        assert host.events.of(CellStarted) == []


async def test_nested_ids_name_the_parent():
    """rule 8.3, BEHAVIOURS 164, BEHAVIOURS 165, BEHAVIOURS 167, TR-03."""
    async with quickjs() as host:
        runtime = host.runtime()
        heard = []
        code = (
            "const p = slow({ms:100, tag:'t'}); await yield_control(); await echo({v:1}); await p"
        )
        waiting = await runtime.exec({"code": code}, call_id="outer", on_update=heard.append)
        assert [event.tool_name for event in host.events.of(CallStarted)] == ["slow"]
        await runtime.wait({"runId": waiting.cell_id}, call_id="other")
        started = host.events.of(CallStarted)
        assert [event.call_id for event in started] == [
            "tool_search_code:outer:slow:1",
            "tool_search_code:outer:echo:2",
        ]
        assert {event.parent_id for event in host.events.of(CallEnded)} == {"outer"}
        assert heard == [{"tag": "t"}]


async def test_host_constructors_are_out_of_reach():
    """SE-01."""
    async with quickjs() as host:
        value = await value_of(
            host.runtime(),
            "const probe = 'return typeof process+typeof require+typeof globalThis.Deno';"
            "let e; try { await boom({why:'x'}) } catch (x) { e = x }"
            "return [TextEncoder,setTimeout,console.log,text,echo,catalog.search,Promise,e,"
            "Object.getPrototypeOf(async()=>{})].map(f => {"
            " try { return f.constructor.constructor(probe)() } catch { return 'blocked' } })",
        )
        assert set(value) <= {"blocked", "undefinedundefinedundefined"}


async def test_no_internal_name_is_exposed():
    """SE-03, BEHAVIOURS 102."""
    async with quickjs() as host:
        value = await value_of(
            host.runtime(),
            "JSON.stringify = () => 'forged'; Promise.prototype.then = () => 'forged';"
            "Array.prototype.push = () => { throw 1 };"
            "const names = Object.getOwnPropertyNames(globalThis);"
            "return [names.filter(n => n.startsWith('__')), (await echo({v:1})).v]",
        )
        assert value == [[], 1]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(f"{NESTED} return a", "nested too deeply", marks=SHALLOW),
        pytest.param(f"{NESTED} return await echo({{v:a}})", "nested too deeply", marks=SHALLOW),
        ("return {get a(){throw new Error('getter')}}", "Error: getter"),
        (
            "for(let i=0;i<1001;i++) setTimeout(()=>0, 3000); await echo({v:1}); return 1",
            "timers are open",
        ),
        ("throw {message:'obj'}", 'Uncaught {"message":"obj"}'),
        ("Promise.reject(new Error('detached')); return 1", "Error: detached"),
        ("}); evil(); (async () => {", "SyntaxError at"),
    ],
)
async def test_odd_programs_end_with_a_clear_error(code, text):
    """rule 3.9, rule 8.5: hostile shapes neither hang nor crash the host."""
    async with quickjs() as host:
        outcome = await failure(host.runtime(), code)
        assert text in outcome.error
        assert host.spawner.faults == []
        assert host.store.statistics()["slots"] == 0


async def test_a_loop_of_empty_timers_is_no_busy_loop_without_end():
    """BEHAVIOURS 113: it is parked at the deadline like any slow cell."""
    async with quickjs() as host:
        runtime = host.runtime(timeout_ms=200)
        outcome = await run(runtime, "while (true) await new Promise(r => setTimeout(r, 0))")
        assert outcome.status == "waiting"
        await runtime.abort()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("code", "place"),
    [("return (1", "1:10"), ("if (1) { return 2", "1:18"), ("let a = 1;\nreturn {a", "2:10")],
)
async def test_a_program_that_ends_too_early_is_told_where(executor, code, place):
    """Rule 3.2: what the engine met there is the host's own text, which nobody else has seen."""
    async with bench_on(executor) as host:
        outcome = await failure(host.runtime(executor=executor), code)
        assert f"user.js:{place}: the program ends too early" in outcome.error
