"""Every ending exactly once: abort, cancellation, shutdown, faults of the host, engine troubles."""

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from tests.codemode.support import bench, quickjs, run, until
from toolcell.codemode.extensions.contract import Calling, GuestExtension, prelude
from toolcell.codemode.runtime import CodeModeRuntime
from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import Faulted, GuestError, GuestScript
from toolcell.execution.scripted import Ask, Say, ScriptedExecutor, ScriptError
from toolcell.protocol.events import CallEnded, CellEnded, CellStarted

pytestmark = pytest.mark.anyio


async def in_background(group, function):
    outcomes = []

    async def task():
        outcomes.append(await function())

    group.start_soon(task)
    return outcomes


async def test_an_abort_ends_a_loop_with_its_own_code():
    """rule 3.9, BEHAVIOURS 110, BEHAVIOURS 140, EX-18."""
    async with quickjs() as host:
        runtime = host.runtime()
        await runtime.prepare()
        async with anyio.create_task_group() as group:
            outcomes = await in_background(group, lambda: run(runtime, "text('t'); while(true){}"))
            await anyio.sleep(0.1)
            with anyio.fail_after(2):
                await runtime.abort()
                await until(lambda: outcomes)
        outcome = outcomes[0]
        assert (outcome.status, outcome.code) == ("failed", "aborted")
        assert outcome.error == "code mode execution aborted"
        assert host.store.statistics()["slots"] == 0
        assert len(host.events.of(CellEnded)) == 1


async def test_an_abort_during_a_call_aborts_it_once():
    """rule 8.1, BEHAVIOURS 207: the call ends once, no later guest code runs."""
    async with quickjs() as host:
        runtime = host.runtime()
        async with anyio.create_task_group() as group:
            outcomes = await in_background(
                group,
                lambda: run(runtime, "try { await hold({key:'k'}) } finally { await count({}) }"),
            )
            await host.fixture.start_of("k").wait()
            await runtime.abort()
            await runtime.abort()
        assert outcomes[0].code == "aborted"
        assert host.fixture.aborted == ["hold:k"]
        assert host.fixture.count("count") == 0
        assert [event.status for event in host.events.of(CallEnded)] == ["aborted"]
        assert host.spawner.live == 0


async def test_an_abort_during_wait_ends_it():
    """BEHAVIOURS 207."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, "await yield_control(); await hold({key:'k'}); return 1")
        async with anyio.create_task_group() as group:
            outcomes = await in_background(
                group, lambda: runtime.wait({"runId": waiting.cell_id}, call_id="w")
            )
            await host.fixture.start_of("k").wait()
            await host.store.aclose()
        assert (outcomes[0].status, outcomes[0].code) == ("failed", "aborted")
        assert host.store.statistics()["slots"] == 0
        assert host.fixture.aborted == ["hold:k"]


async def test_a_cancelled_caller_takes_the_cell_along():
    """rule 3.8: dropped on abort; the cancellation is not swallowed."""
    async with quickjs() as host:
        runtime = host.runtime()
        async with anyio.create_task_group() as group:
            outcomes = await in_background(group, lambda: run(runtime, "await hold({key:'k'})"))
            await host.fixture.start_of("k").wait()
            group.cancel_scope.cancel()
        assert outcomes == []
        assert host.fixture.aborted == ["hold:k"]
        assert host.spawner.live == 0
        ended = host.events.of(CellEnded)
        assert [event.code for event in ended] == ["aborted"]
        assert host.executor.statistics()["live"] == 0


async def test_the_end_of_a_run_or_session_drops_its_cells():
    """rule 3.8."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, "await yield_control()")
        await runtime.aclose()
        assert host.store.statistics()["slots"] == 0
        refused = await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        assert refused.error == "code mode run is unavailable or expired."
        await run(runtime, "await yield_control()")
        await host.store.drop_session("another", "over")
        assert host.store.statistics()["parked"] == 1
        await host.store.drop_session("s-1", "the session is over")
        assert host.store.statistics()["slots"] == 0
        await run(runtime, "await yield_control()")
        await host.store.drop_run(runtime._catalog.scope, "the run is over")
        assert host.store.statistics()["slots"] == 0
        assert len(host.events.of(CellEnded)) == 3


async def test_an_unfinished_call_dies_with_a_failed_cell():
    """rule 3.10: no later effect of a cell that is over."""
    async with quickjs() as host:
        outcome = await run(
            host.runtime(), "hold({key:'k'}); await echo({v:1}); throw new Error('x')"
        )
        assert outcome.status == "failed"
        assert host.fixture.aborted == ["hold:k"]
        assert host.spawner.live == 0


class Unavailable:
    """An executor that cannot start."""

    name = "broken"

    async def start(self, *_args):
        raise RuntimeUnavailableError("executor 'broken' is not available: no engine")


class Hanging:
    """An executor whose engine takes for ever to start."""

    name = "hanging"
    cancelled = False

    async def start(self, *_args):
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            Hanging.cancelled = True
            raise


class Crashing:
    """An executor that traps."""

    name = "crashing"

    async def start(self, *_args):
        return Faulted(kind="crash", error=GuestError(name="", message="trap: unreachable"))


async def test_an_executor_that_cannot_start_fails_the_cell_and_nothing_else_is_tried():
    """rule 1.6, EX-02, BEHAVIOURS 23."""
    async with bench(Unavailable()) as host:
        outcome = await run(host.runtime(), "return 1")
        assert (outcome.code, outcome.phase) == ("runtime_unavailable", "host")
        assert "no engine" in outcome.error
        assert host.executors_asked == ["quickjs"]
        assert [event.code for event in host.events.of(CellEnded)] == ["runtime_unavailable"]


async def test_an_executor_that_cannot_be_had_fails_the_cell():
    """rule 1.6, EX-02."""
    async with bench(Unavailable()) as host:
        runtime = host.runtime()

        async def none(name):
            message = f"executor {name!r} is not installed"
            raise RuntimeUnavailableError(message)

        ports = runtime._ports
        runtime = CodeModeRuntime(
            runtime._catalog,
            runtime.options,
            type(ports)(executors=none, spawner=ports.spawner, store=ports.store),
        )
        outcome = await run(runtime, "return 1")
        assert outcome.code == "runtime_unavailable"
        assert "'quickjs' is not installed" in outcome.error


async def test_a_slow_engine_start_counts_against_the_time():
    """EX-18."""
    async with bench(Hanging()) as host:
        with anyio.fail_after(1.8):
            outcome = await run(host.runtime(timeout_ms=300), "return 1")
        assert outcome.code == "timeout"
        assert Hanging.cancelled


async def test_an_abort_during_engine_start_is_quick():
    """EX-18."""
    async with bench(Hanging()) as host:
        runtime = host.runtime()
        async with anyio.create_task_group() as group:
            outcomes = await in_background(group, lambda: run(runtime, "return 1"))
            while not host.events.of(CellStarted):
                await anyio.lowlevel.checkpoint()
            with anyio.fail_after(1):
                await runtime.abort()
                await until(lambda: outcomes)
        assert outcomes[0].code == "aborted"


@pytest.mark.parametrize(("api", "code"), [("catalog", "aborted"), ("tools", None)])
async def test_an_abort_while_a_cell_is_made_ready_leaves_nothing_to_start(api, code):
    """rule 8.1: run-lifecycle checks cover preparation; rule 3.9: the code of each guest API."""
    async with quickjs() as host:
        runtime = host.runtime(guest_api=api)
        asked, ready = anyio.Event(), anyio.Event()
        give = runtime._ports.executors

        async def slow(name):
            asked.set()
            await ready.wait()
            return await give(name)

        runtime._ports = replace(runtime._ports, executors=slow)
        async with anyio.create_task_group() as group:
            outcomes = await in_background(group, lambda: run(runtime, "await yield_control()"))
            await asked.wait()
            await runtime.abort()
            ready.set()
        assert (outcomes[0].status, outcomes[0].code) == ("failed", code)
        assert outcomes[0].error == "code mode execution aborted"
        assert host.events.of(CellStarted) == []
        assert host.store.statistics()["slots"] == 0


async def test_a_crash_is_runtime_unavailable():
    """rule 3.9, BEHAVIOURS 111."""
    async with bench(Crashing()) as host:
        outcome = await run(host.runtime(), "return 1")
        assert outcome.code == "runtime_unavailable"
        assert "trap" in outcome.error


async def test_any_executor_of_the_contract_will_do():
    """rule 9.1: a scripted executor runs a cell through the same bridge."""

    def program():
        yield Say("hello")
        got = yield Ask("callValue", ["echo", {"v": 3}])
        return got["v"] + 1

    async with bench(ScriptedExecutor({"program": program})) as host:
        outcome = await run(host.runtime(), "program")
        assert outcome.value == 4
        assert outcome.output == ({"type": "text", "text": "hello"},)


async def test_unknown_functions_and_requests_are_refused():
    """SE-03, BEHAVIOURS 181: forged requests get an error, nothing runs."""
    answers = []

    def program():
        for ask in (
            Ask("callValue", ["openclaw:core:echo", {}]),
            Ask("callValue", ["__proto__", {}]),
            Ask("namespace", ["constructor", "x", {}]),
            Ask("describe", ["nope"]),
            Ask("internal", []),
        ):
            try:
                yield ask
            except ScriptError as error:
                answers.append(str(error))
        return 1

    async with bench(ScriptedExecutor({"program": program})) as host:
        outcome = await run(host.runtime(), "program")
        assert outcome.status == "completed", outcome
        assert answers[0] == "Unknown catalog function: echo."
        assert answers[1] == "Unknown catalog function: __proto__."
        assert "Unknown MCP function" in answers[2]
        assert answers[3] == "Unknown catalog function: nope."
        assert answers[4] == "Unknown bridge request: internal."
        assert host.fixture.ran == []


async def test_malformed_requests_are_refused():
    """rule 8.5: too few, oversized or odd arguments never reach a tool."""
    answers = []

    def program():
        for ask in (Ask("callValue", []), Ask("namespace", ["a"]), Ask("describe", []),
                    Ask("search", []), Ask("callValue", [{"a": 1}]), Ask("sleep", ["x"]),
                    Ask("callValue", ["echo", "y" * (5 << 20)])):  # fmt: skip
            try:
                answers.append((yield ask))
            except ScriptError as error:
                answers.append(type(error).__name__)
        return 1

    async with bench(ScriptedExecutor({"program": program})) as host:
        outcome = await run(host.runtime(), "program")
        assert outcome.status == "completed", outcome
        assert answers == ["ScriptError"] * 5 + [None, "ScriptError"]
        assert host.fixture.ran == []
        assert host.spawner.faults == []


async def test_a_fault_of_the_host_is_the_guests_plain_error_and_the_operators_report():
    """rule 3.10, BR-05: no host text crosses."""

    async def broken(_arguments, _cell):
        raise KeyError("/secret/path")

    script = GuestScript("broken", "(kit) => kit.define('broken', () => kit.request('broken', []))")
    extension = GuestExtension(name="broken", script=script, handlers={"broken": Calling(broken)})
    async with quickjs() as host:
        runtime = host.runtime(extra=(extension,))
        outcome = await run(runtime, "try { await broken() } catch (x) { return x.message }")
        assert "secret" not in outcome.value
        assert "host could not" in outcome.value
        assert [type(fault) for fault in host.spawner.faults] == [KeyError]


async def test_start_values_reach_an_extension_for_each_cell():
    """An extension may have values of the run, apart from the image."""
    script = GuestScript("run", "(kit) => kit.onStart((v) => kit.define('runValue', v))")
    extension = GuestExtension(name="run", script=script, start=lambda cell: cell.parent_id)
    async with quickjs() as host:
        runtime = host.runtime(extra=(extension,))
        for call_id in ("a", "b"):
            outcome = await runtime.exec({"code": "return runValue"}, call_id=call_id)
            assert outcome.value == call_id
        assert host.executor.statistics()["images_built"] == 1


def test_every_prelude_file_is_an_expression():
    for name in ("controller", "output", "timers", "encoding", "mcp", "catalog"):
        assert prelude(name).source.rstrip().endswith("})")


async def test_runs_over_one_catalog_share_its_image():
    """EX-15, rule 4.5: what is made per catalog is made once."""
    async with quickjs() as host:
        snapshot = host.snapshot()
        for _ in range(3):
            outcome = await run(host.runtime(snapshot=snapshot), "return 1")
            assert outcome.value == 1
        assert host.executor.statistics()["images_built"] == 1
        hidden = host.runtime(snapshot=snapshot, visible=lambda entry: entry.name != "echo")
        assert (await run(hidden, "return typeof echo")).value == "undefined"
        assert (
            await run(host.runtime(snapshot=snapshot), "return typeof echo")
        ).value == "function"


async def test_the_engine_is_compiled_once_for_many_cells():
    """EX-15."""
    async with quickjs() as host:
        runtime = host.runtime()
        for _ in range(20):
            await run(runtime, "return 1")
        for _ in range(5):
            waiting = await run(runtime, "await yield_control(); return 1")
            await runtime.wait({"runId": waiting.cell_id}, call_id="w")
        assert host.executor.statistics()["modules_compiled"] <= 1
        assert host.executor.statistics()["images_built"] == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("return await catalog.nosuch()", ", near: return await catalog.nosuch()\n"),
        ("const x = 1, y = 2;\n  x(y)", ", near: x(y)\n"),
        ("return catalog\n  .all()\n  .nosuch(1)", ", near: .nosuch(1)\n"),
        (f"/*{'-' * 99}*/ catalog.nosuch(1)", f", near: …{'-' * 49}*/ catalog.nosuch(1)\n"),
        ("throw new Error('not a function')", "\n"),
    ],
)
async def test_a_call_of_what_is_no_function_is_shown(code, told):
    """EX-03: QuickJS itself names neither the function nor its owner."""
    async with quickjs() as host:
        outcome = await run(host.runtime(), code)
    assert outcome.error.split("Error: not a function")[1].startswith(told)
