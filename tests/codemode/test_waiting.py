"""Parking and resuming on the real engine: who may, for how long, and exactly once."""

from dataclasses import replace

import anyio
import pytest

from tests.codemode.support import SCOPE, mcp_tool, quickjs, remote_echo, run, until, value_of
from toolcell.calls.gate import Gate
from toolcell.codemode.continuations.store import TOO_MANY
from toolcell.policy.approvals import ApprovalRule, ApprovalRules
from toolcell.protocol.approvals import ApprovalAnswer
from toolcell.protocol.events import CallEnded, CellEnded, CellParked
from toolcell.testing.clock import FakeClock

pytestmark = pytest.mark.anyio

ASKED = ApprovalRules((ApprovalRule(tool="count", decision="ask"),))
YIELD = "await yield_control('r'); return 'done'"


async def resume(runtime, waiting):
    return await runtime.wait({"runId": waiting.cell_id}, call_id="w")


async def test_a_yield_parks_and_wait_goes_on():
    """rule 3.5, rule 3.6, BEHAVIOURS 136, BEHAVIOURS 137, BEHAVIOURS 194, BEHAVIOURS 201."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(
            runtime,
            "await count({}); text('before'); const r = await yield_control('why');"
            "text('after'); return [r, await yield_control(), (await count({})).n]",
        )
        document = waiting.to_dict()
        assert document["status"] == "waiting"
        assert document["reason"] == "yield"
        assert document["pendingToolCalls"] == []
        assert document["runId"].startswith("cm_")
        assert document["output"] == [{"type": "text", "text": "before"}]
        again = await resume(runtime, waiting)
        assert (again.status, again.cell_id) == ("waiting", waiting.cell_id)
        assert again.output == ({"type": "text", "text": "after"},)
        done = await resume(runtime, again)
        assert done.value == [
            {"status": "yielded", "reason": "why"},
            {"status": "yielded", "reason": None},
            2,
        ]
        gone = await resume(runtime, waiting)
        assert gone.error == "code mode run is unavailable or expired."
        assert gone.code == "invalid_input"
        parked = host.events.of(CellParked)
        assert [event.reason for event in parked] == ["yield", "yield"]
        assert all(event.bytes_at_rest > 0 for event in parked)
        assert len(host.events.of(CellEnded)) == 1


async def test_a_slow_call_outlives_exec_and_wait_gets_its_result():
    """rule 3.5, BEHAVIOURS 138, BEHAVIOURS 190, BEHAVIOURS 206."""
    async with quickjs() as host:
        runtime = host.runtime(timeout_ms=150)
        waiting = await run(runtime, "await echo({v:1}); return (await hold({key:'k'})).key")
        assert waiting.reason == "pending_tools"
        assert waiting.pending == ({"id": "bridge:callValue:2", "method": "callValue"},)
        again = await resume(runtime, waiting)
        assert (again.status, again.cell_id) == ("waiting", waiting.cell_id)
        host.fixture.gate_of("k").set()
        assert (await resume(runtime, again)).value == "k"
        assert host.fixture.ran == ["echo", "hold:k"]


async def test_a_call_that_ends_while_parked_is_there_for_wait():
    """BEHAVIOURS 190, TR-03."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(
            runtime, "const p = hold({key:'k'}); await yield_control(); return (await p).key"
        )
        assert waiting.reason == "pending_tools"
        host.fixture.gate_of("k").set()
        await until(lambda: len(host.events.of(CallEnded)) == 1)
        assert (await resume(runtime, waiting)).value == "k"


async def test_a_rebuilt_catalog_of_the_same_run_may_resume_and_the_record_is_whole():
    """rule 3.6: the cell keeps its own catalog, counters and record."""
    async with quickjs() as host:
        first = host.runtime()
        waiting = await run(
            first, "await echo({v:1}); await yield_control(); return await echo({v:2})"
        )
        second = host.runtime()
        outcome = await resume(second, waiting)
        assert outcome.value == {"v": 2}
        assert outcome.telemetry["callCount"] == 2
        assert [event.status for event in host.events.of(CellEnded)] == ["completed"]
        await first.aclose()
        assert len(host.events.of(CellEnded)) == 1


async def test_wait_is_refused_to_others_and_kept_for_the_owner():
    """rule 3.7, rule 2.5, BEHAVIOURS 195 to 198."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, YIELD)
        for change, message in (
            ({"run_id": "r-2"}, "code mode run belongs to a different agent run."),
            ({"session_id": "s-2"}, "code mode run belongs to a different session."),
            ({"session_key": "k"}, "code mode run belongs to a different session."),
            ({"agent_id": "other"}, "code mode run belongs to a different session."),
        ):
            other = host.runtime(scope=replace(SCOPE, **change))
            refused = await resume(other, waiting)
            assert (refused.error, refused.code) == (message, "invalid_input")
        unknown = await runtime.wait({"runId": "cm_nope"}, call_id="w")
        assert unknown.error == "code mode run is unavailable or expired."
        assert (await resume(runtime, waiting)).value == "done"


async def test_a_shell_sessions_id_gets_advice():
    """RS-04."""
    async with quickjs() as host:
        refused = await host.runtime().wait({"runId": "s1"}, call_id="w")
        assert refused.error.startswith("code mode run is unavailable or expired.")
        assert "top-level runId" in refused.error
        assert "process tool" in refused.error


async def test_of_two_waits_one_gets_the_value():
    """rule 3.7, RS-08, BEHAVIOURS 199."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, "await yield_control(); await hold({key:'k'}); return 'v'")
        outcomes = []

        async def one():
            outcomes.append(await resume(runtime, waiting))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            await host.fixture.start_of("k").wait()
            second = await resume(runtime, waiting)
            assert second.error == "code mode run is already being resumed."
            assert second.code == "invalid_input"
            host.fixture.gate_of("k").set()
        assert outcomes[0].value == "v"
        assert (await resume(runtime, waiting)).error == "code mode run is unavailable or expired."
        assert host.fixture.count("hold:k") == 1


async def test_the_cap_refuses_a_new_park_and_never_a_resumed_one():
    """rule 3.8, RS-02, BEHAVIOURS 200."""
    async with quickjs(cap=3) as host:
        runtime = host.runtime()
        parked = [await run(runtime, "await yield_control();" + YIELD) for _ in range(3)]
        refused = await run(runtime, YIELD)
        assert (refused.error, refused.code) == (TOO_MANY, "invalid_input")
        assert await value_of(runtime, "return 1") == 1
        again = await resume(runtime, parked[0])
        assert (again.status, again.cell_id) == ("waiting", parked[0].cell_id)
        assert host.store.statistics() == {"parked": 3, "claimed": 0, "slots": 3}
        for waiting in parked[1:]:
            assert (await resume(runtime, waiting)).status == "waiting"
        assert (await resume(runtime, parked[0])).value == "done"
        assert (await run(runtime, YIELD)).status == "waiting"


async def test_aborting_owners_frees_every_slot_and_timer():
    """RS-01, rule 3.8."""
    async with quickjs(cap=8) as host:
        code = "const k=setTimeout(()=>text('late'),90000); await yield_control('hold'); clearTimeout(k); return 'done'"  # noqa: E501 - a program on one line
        runtimes = [host.runtime(scope=replace(SCOPE, run_id=f"r{i}")) for i in range(8)]
        for runtime in runtimes:
            assert (await run(runtime, code)).status == "waiting"
        for runtime in runtimes:
            await runtime.abort()
        assert host.store.statistics() == {"parked": 0, "claimed": 0, "slots": 0}
        runtime = host.runtime()
        waiting = await run(runtime, code)
        assert (await resume(runtime, waiting)).value == "done"
        assert host.spawner.live == 0
        assert len(host.events.of(CellEnded)) == 9


async def test_a_parked_cell_expires_by_itself_and_its_calls_are_aborted():
    """EX-15, RS-06, rule 3.8, BEHAVIOURS 202, BEHAVIOURS 207."""
    async with quickjs() as host:
        runtime = host.runtime(snapshot_ttl_seconds=1)
        waiting = await run(runtime, "hold({key:'k'}); await yield_control(); return 1")
        await until(lambda: host.fixture.aborted)
        assert host.store.statistics()["slots"] == 0
        assert host.fixture.aborted == ["hold:k"]
        assert (await resume(runtime, waiting)).error == "code mode run is unavailable or expired."
        ended = host.events.of(CellEnded)
        assert [(event.status, event.code) for event in ended] == [("failed", "aborted")]
        assert host.executor.statistics()["parked"] == 0


async def test_expiry_goes_by_the_clock_and_waiting_holds_it():
    """RS-06, BEHAVIOURS 107: the TTL counts while nobody waits, on a monotonic clock."""
    clock = FakeClock()
    async with quickjs(clock=clock) as host:
        runtime = host.runtime(snapshot_ttl_seconds=10)
        waiting = await run(runtime, "await yield_control(); await yield_control(); return 1")
        clock.advance(9)
        waiting = await resume(runtime, waiting)
        clock.advance(9)
        await host.store.expire_due()
        assert (await resume(runtime, waiting)).status == "completed"
        waiting = await run(runtime, YIELD)
        clock.advance(11)
        refused = await resume(runtime, waiting)
        assert refused.error == "code mode run is unavailable or expired."
        await host.store.expire_due()
        assert host.store.statistics()["slots"] == 0


async def test_an_active_run_completes_under_a_short_ttl():
    """RS-06."""
    async with quickjs() as host:
        runtime = host.runtime(snapshot_ttl_seconds=1, timeout_ms=300)
        outcome = await run(runtime, "return (await slow({ms:1300, tag:'t'})).tag")
        for _ in range(20):
            if outcome.status != "waiting":
                break
            outcome = await resume(runtime, outcome)
        assert outcome.value == "t"


async def test_a_state_over_the_snapshot_limit_fails_instead_of_parking():
    """rule 9.4, BEHAVIOURS 205."""
    async with quickjs() as host:
        runtime = host.runtime(max_snapshot_bytes=1024)
        outcome = await run(
            runtime, "const s='x'.repeat(100000); await yield_control(); return s.length"
        )
        assert outcome.code == "snapshot_limit_exceeded"
        assert "code mode snapshot limit exceeded" in outcome.error
        assert host.store.statistics()["slots"] == 0


async def test_a_failed_wait_keeps_its_output_and_the_run_its_tools():
    """RS-11."""
    async with quickjs() as host:
        runtime = host.runtime(timeout_ms=150)
        waiting = await run(runtime, "const r=await hold({key:'k'}); json(r); undefinedHelper();")
        host.fixture.gate_of("k").set()
        failed = await resume(runtime, waiting)
        assert "ReferenceError" in failed.error
        assert failed.output == ({"type": "json", "value": {"key": "k"}},)
        assert await value_of(runtime, "return (await echo({v:2})).v") == 2


async def test_the_executor_stays_pinned_through_waits():
    """rule 1.5, BEHAVIOURS 24."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, YIELD)
        assert (await resume(host.runtime(executor="node"), waiting)).value == "done"
        assert host.executors_asked == ["quickjs"]


class SlowApprover:
    """Answers when the test says so."""

    def __init__(self):
        self.asked = []
        self.answer = anyio.Event()
        self.approved = True

    async def request(self, request):
        self.asked.append((request.tool_name, dict(request.arguments)))
        await self.answer.wait()
        return ApprovalAnswer(approved=self.approved, reason="because")


@pytest.mark.parametrize("approved", [True, False])
async def test_an_open_approval_holds_the_budget_and_not_the_reply(approved):
    """rule 3.5, PO-07, BEHAVIOURS 27."""
    approver = SlowApprover()
    approver.approved = approved
    async with quickjs() as host:
        gate = Gate(approver=approver, approvals=ASKED, sink=host.events)
        runtime = host.runtime(gate=gate, timeout_ms=200)
        waiting = await run(
            runtime,
            "const a=await echo({v:1}); try { return await count({amt:5}) }"
            "catch (x) { return [x.code, x.message] }",
        )
        assert (waiting.status, waiting.reason) == ("waiting", "pending_tools")
        waiting = await resume(runtime, waiting)
        assert waiting.status == "waiting"
        assert approver.asked == [("count", {"amt": 5})]
        approver.answer.set()
        outcome = await resume(runtime, waiting)
        assert host.fixture.count("echo") == 1
        if approved:
            assert outcome.value == {"n": 1}
        else:
            assert outcome.value[0] == "blocked"
            assert "because" in outcome.value[1]
            assert host.fixture.count("count") == 0
        assert len(approver.asked) == 1


async def test_a_cell_does_not_expire_while_a_person_thinks():
    """rule 3.5: an open approval holds the time to live; once it is answered, time goes on."""
    approver = SlowApprover()
    async with quickjs() as host:
        gate = Gate(approver=approver, approvals=ASKED, sink=host.events)
        runtime = host.runtime(gate=gate, timeout_ms=200, snapshot_ttl_seconds=1)
        code = "const a = await count({amt: 5}); await yield_control(); return a"
        waiting = await run(runtime, code)
        assert waiting.reason == "pending_tools"
        await anyio.sleep(2)
        approver.answer.set()
        waiting = await resume(runtime, waiting)
        assert (waiting.status, waiting.reason) == ("waiting", "yield")
        await anyio.sleep(2)
        outcome = await resume(runtime, waiting)
        assert outcome.error == "code mode run is unavailable or expired."


async def test_an_approval_within_the_reply_gives_its_time_back():
    """rule 3.5: time spent asking is not the program's."""
    approver = SlowApprover()
    async with quickjs() as host:
        gate = Gate(approver=approver, approvals=ASKED, sink=host.events)
        runtime = host.runtime(gate=gate, timeout_ms=1000)

        async def answer():
            await anyio.sleep(0.7)
            approver.answer.set()

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            outcome = await run(
                runtime,
                "await count({}); const t = Date.now(); while (Date.now() - t < 500); return 'ok'",
            )
        assert outcome.status == "completed", outcome


async def test_restart_safe_runs_refuse_side_effects_and_never_drain():
    """rule 3.13, BEHAVIOURS 210 to 215."""
    async with quickjs() as host:
        runtime = host.runtime()
        waiting = await run(runtime, "return (await echo({v:1})).v", restartSafe=True)
        document = waiting.to_dict()
        assert document["status"] == "waiting"
        assert document["replaySafe"] is True
        assert document["replayId"].startswith("cm_replay_")
        assert len(document["replayId"]) == len("cm_replay_") + 24
        assert (await resume(runtime, waiting)).value == 1
        again = await run(runtime, "return (await echo({v:1})).v", restartSafe=True)
        assert again.replay_id == waiting.replay_id
        other = await run(runtime, "return (await echo({v:2})).v", restartSafe=True)
        assert other.replay_id != waiting.replay_id
        outcome = await run(runtime, "return await count({})", restartSafe=True)
        assert (outcome.status, outcome.code) == ("failed", "invalid_input")
        assert "replay-safe" in outcome.error
        assert host.fixture.count("count") == 0


async def test_restart_safe_runs_call_no_namespaces():
    """BEHAVIOURS 211."""
    async with quickjs() as host:
        runtime = host.runtime(mcp_tool("fx", "list", remote_echo))
        outcome = await runtime.exec(
            {"code": "return await MCP.fx.list({})"}, call_id="c", force_restart_safe=True
        )
        assert "restart-safe code mode cannot call namespace tools." in outcome.error
        assert outcome.code == "invalid_input"
