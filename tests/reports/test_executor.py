"""Reports EX: the engine as a user of `CodeMode` meets it."""

import logging
import time

import anyio
import psutil
import pytest

from tests.reports.rig import agent, cell, cells
from toolcell import Completed, Failed, Waiting
from toolcell.execution.node import binary
from toolcell.execution.quickjs import executor

pytestmark = pytest.mark.anyio
FENCE = "```"


async def test_a_runaway_loop_is_a_timeout_and_the_host_stays_awake(any_guest):
    """EX-01, rule 9.4."""
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await anyio.sleep(0.02)
            ticks += 1

    async with cells(any_guest, timeoutMs=300) as open_:
        await open_.value("return 1")
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            start = time.perf_counter()
            outcome = await open_.failed("while (true) {}")
            took = time.perf_counter() - start
            group.cancel_scope.cancel()
        assert outcome.code == "timeout"
        assert took < 1.8
        assert ticks >= 8
        thrown = await open_.failed('throw new Error("interrupted")')
    assert "Error: interrupted" in thrown.error
    assert thrown.code == "internal_error"


async def test_an_engine_that_cannot_be_loaded_is_runtime_unavailable(guest, monkeypatch, tmp_path):
    """EX-02, rule 1.6: no other executor, no direct tools."""
    monkeypatch.setattr(executor, "ENGINE_WASM", tmp_path / "absent.wasm")
    async with cells(guest) as open_:
        outcome = await open_.failed("return 1")
        started = set(open_.cm.statistics()) - {"gate", "continuations", "swarm"}
    assert outcome.code == "runtime_unavailable"
    assert "absent.wasm" in outcome.error
    assert started == {guest[0]}


async def test_a_node_that_cannot_be_found_is_runtime_unavailable(monkeypatch):
    """EX-02, rule 1.6: QuickJS is not started in its place."""
    monkeypatch.setattr(binary, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    async with cells(("node", "catalog")) as open_:
        outcome = await open_.failed("return 1")
        assert "quickjs" not in open_.cm.statistics()
    assert outcome.code == "runtime_unavailable"
    assert "no Node was found" in outcome.error


async def test_a_run_whose_engine_is_blocked_is_not_asked_again_with_all_tools(tmp_path):
    """EX-02: the second request shows the same two tools."""
    config = {"plugins": {"deny": ["code-mode-quickjs"]}}
    async with agent(tmp_path, config=config, enabled=True) as made:
        await made.turn(cell("return 1"), "it does not work")
        assert made.shown(0) == made.shown(1) == ["exec", "wait"]
        assert "runtime_unavailable" in made.results()[0]


async def test_a_failure_has_its_name_and_the_line_the_user_wrote(any_guest):
    """EX-03."""
    async with cells(any_guest) as open_:
        syntax = await open_.failed("const a = 1;\nconst b = ;")
        thrown = await open_.failed("await 0;\nnull.x;")
    assert syntax.code == "invalid_input"
    assert "SyntaxError" in syntax.error
    assert "user.js:2:" in syntax.error
    assert thrown.error.startswith("TypeError:")
    assert "user.js:2:" in thrown.error


@pytest.mark.parametrize(
    "text", ["ls -la", "pwd", "cd /tmp && git status", r"dir C:\\Users", "npm test"]
)
async def test_shell_text_is_refused_before_anything_starts(guest, text):
    """EX-04: the answer names the tool to use instead."""
    async with cells(guest) as open_:
        outcome = await open_.failed(text)
        started = open_.cm.statistics().get("quickjs", {}).get("programs_started", 0)
    assert outcome.code == "invalid_input"
    assert "JavaScript" in outcome.error
    assert "shell" in outcome.error
    assert started == 0


async def test_programs_that_only_look_like_shell_run(any_guest):
    """EX-04."""
    async with cells(any_guest) as open_:
        assert await open_.value("const ls = 3; return ls") == 3
        assert await open_.value("return globalThis.pwd === undefined") is True


async def test_text_that_mentions_modules_is_only_text(any_guest):
    """EX-05, rule 3.2."""
    async with cells(any_guest) as open_:
        said = await open_.value('return `first call require("path")`;')
        assert said == 'first call require("path")'
        assert await open_.value(r'return /\bimport\(/.test("import(1)");') is True
        assert await open_.value('/* from "y" import z */ return 1;') == 1
        live = await open_.failed('return `v=${await import("os")}`;')
        assert live.code == "invalid_input"
        assert "module access is disabled" in live.error
        assert live.dispatched is False


async def test_a_failing_call_that_nobody_awaits_fails_the_cell(any_guest):
    """EX-07, rule 3.10."""
    async with cells(any_guest) as open_:
        outcome = await open_.failed('boom({why: "a"}); return "fine";', "boom")
        assert "boom: a" in outcome.error
        late = await open_.exec(
            'const p = boom({why: "b"}); await yield_control();'
            ' try { await p } catch (x) { return "late" }',
            "boom",
        )
        assert isinstance(late, Waiting)
        assert (await open_.finish(late)).value == "late"
        settled = 'return (await Promise.allSettled([boom({why: "c"})]))[0].status'
        assert await open_.value(settled, "boom") == "rejected"


async def test_returned_promises_say_that_they_were_not_awaited(any_guest):
    """EX-08."""
    async with cells(any_guest) as open_:
        code = "return [echo({v: 1}), {p: new Promise(() => {})}, {then: 5}]"
        first, second, third = await open_.value(code, "echo")
    for said in (first, second["p"]):
        assert "await" in said
        assert "Promise.all" in said
    assert third == {"then": 5}


async def test_the_usual_pause_works_and_timers_can_be_cleared(any_guest):
    """EX-09."""
    async with cells(any_guest) as open_:
        outcome = await open_.exec(
            "const t = Date.now(); await new Promise((r) => setTimeout(r, 300));"
            "const id = setTimeout(() => text('NO'), 50); clearTimeout(id);"
            "await new Promise((r) => setTimeout(r, 120)); return Date.now() - t >= 400"
        )
        assert isinstance(outcome, Completed), outcome
        assert outcome.value is True
        assert outcome.output == ()
        parked = await open_.exec(
            "const id = setTimeout(() => text('NO'), 60000);"
            "await yield_control(); clearTimeout(id); return 'done'"
        )
        finished = await open_.finish(parked)
        assert (finished.value, finished.output) == ("done", ())


async def test_running_out_of_memory_has_a_name(any_guest):
    """EX-10, rule 9.4: memory faults end the cell only."""
    async with cells(any_guest, memoryLimitBytes=8 << 20) as open_:
        caught = await open_.exec(
            'let s = ["k"]; try { while (true) s = s.concat(s) } catch (x) { return String(x) }'
        )
        said = caught.value if isinstance(caught, Completed) else caught.error
        assert "memory" in said.lower()
        uncaught = await open_.failed('let s = ["k"]; while (true) s = s.concat(s);')
        assert "memory" in uncaught.error.lower()
        assert await open_.value("return 1") == 1


async def test_the_guest_zone_is_utc_whatever_the_host_says(any_guest, monkeypatch):
    """EX-12."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        async with cells(any_guest) as open_:
            code = "return [new Date(0).getTimezoneOffset(), new Date(2026, 0, 1).toISOString()]"
            assert await open_.value(code) == [0, "2026-01-01T00:00:00.000Z"]
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_two_hundred_rejected_calls_harm_nobody(any_guest, capfd):
    """EX-13."""
    async with cells(any_guest) as open_:
        code = (
            "let n = 0; for (let i = 0; i < 200; i++) {"
            " try { await boom({why: String(i)}) } catch (x) { n++ } } return n"
        )
        assert await open_.value(code, "boom") == 200
        assert await open_.value("return 2") == 2
    assert capfd.readouterr().err == ""


async def test_fifty_timeouts_leave_nothing_behind(catalog_guest, caplog):
    """EX-14."""
    caplog.set_level(logging.WARNING)
    process = psutil.Process()
    async with cells(catalog_guest, timeoutMs=100) as open_:
        await open_.value("return 1")
        before = (process.num_fds(), process.num_threads(), len(process.children()))
        codes = [(await open_.failed("for (;;);")).code for _ in range(50)]
        assert codes == ["timeout"] * 50
        assert await open_.value('return "alive"') == "alive"

        def settled():
            now = (process.num_fds(), process.num_threads(), len(process.children()))
            live = open_.cm.statistics()["quickjs"]["live"]
            # Worker threads are started when first needed, and stay.
            return live == 0 and now[0] <= before[0] + 1 and now[2] <= before[2] + 1

        with anyio.fail_after(2):
            while not settled():  # noqa: ASYNC110 - the process's own counters
                await anyio.sleep(0.02)
        assert process.num_threads() <= before[1] + 16
    assert caplog.records == []


async def test_the_engine_is_compiled_once(catalog_guest):
    """EX-15."""
    async with cells(catalog_guest) as open_:
        for _ in range(20):
            await open_.value("return 1")
        for _ in range(5):
            assert (await open_.finish(await open_.exec("await yield_control(); return 1"))).value
        assert open_.cm.statistics()["quickjs"]["modules_compiled"] == 1


async def test_parked_cells_are_reaped_by_a_timer(catalog_guest):
    """EX-15: no later exec is needed."""
    async with cells(catalog_guest, snapshotTtlSeconds=1) as open_:
        assert isinstance(await open_.exec("await yield_control()"), Waiting)
        assert open_.cm.statistics()["continuations"]["parked"] == 1
        with anyio.fail_after(4):
            while open_.cm.statistics()["continuations"]["parked"]:  # noqa: ASYNC110 - a count
                await anyio.sleep(0.05)
        assert open_.cm.statistics()["quickjs"]["parked"] == 0


async def test_fences_come_off_and_a_lone_function_is_explained(any_guest):
    """EX-17: neither is completed with null."""
    async with cells(any_guest) as open_:
        assert await open_.value(f"{FENCE}js\nreturn 1+1\n{FENCE}") == 2
        outcome = await open_.failed("async () => { return 7 }")
    assert outcome.code == "invalid_input"
    assert "return" in outcome.error


async def test_a_huge_cell_is_refused_or_timed_within_the_limit(any_guest):
    """EX-18."""
    async with cells(any_guest, timeoutMs=300) as open_:
        await open_.value("return 1")
        start = time.perf_counter()
        outcome = await open_.failed("x=1;\n" * 1_000_000)
        assert time.perf_counter() - start < 1.8
    assert outcome.code in {"timeout", "invalid_input"}


async def test_an_engine_that_starts_slowly_is_charged_to_the_limit(guest, monkeypatch):
    """EX-18: a start that takes five seconds ends the cell in time, and can be cancelled."""
    real = executor.QuickJSExecutor.start

    async def late(self, *arguments, **named):
        await anyio.sleep(5)
        return await real(self, *arguments, **named)

    monkeypatch.setattr(executor.QuickJSExecutor, "start", late)
    async with cells(guest, timeoutMs=300) as open_:
        start = time.perf_counter()
        outcome = await open_.exec("return 1")
        assert time.perf_counter() - start < 1.8
        assert isinstance(outcome, Failed)
        assert outcome.code == "timeout"
        start = time.perf_counter()
        with anyio.move_on_after(0.1) as scope:
            await open_.exec("return 1")
        assert scope.cancelled_caught
        assert time.perf_counter() - start < 1
