"""Reports RS: parked cells."""

import re

import anyio
import pytest

from tests.reports.rig import World, agent, cell, cells
from toolcell import Completed, Host, Waiting
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.providers.scripted import tool_call
from toolcell.tools.tool import core_tool

pytestmark = pytest.mark.anyio
HOLD = (
    "const k = setTimeout(() => text('late'), 90000); await yield_control('hold');"
    " clearTimeout(k); return 'done'"
)


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_runs_that_are_aborted_leave_no_parked_cells(tmp_path, api):
    """RS-01."""
    async with agent(tmp_path, enabled=True, guestApi=api) as made:
        runtime = made.runtime
        runs = [runtime.run(runtime.scope(session_id=f"s{n}")) for n in range(64)]
        for each in runs:
            assert isinstance(await each.exec({"code": HOLD}), Waiting)
        full = runtime.run(runtime.scope())
        assert (await full.exec({"code": HOLD})).code == "invalid_input"
        for each in runs:
            await each.abort("stopped")
            await runtime.end(each)
        parked = await full.exec({"code": HOLD})
        assert isinstance(parked, Waiting)
        assert runtime.statistics()["continuations"]["parked"] == 1
        assert runtime.statistics()["quickjs"]["parked"] == 1
        done = await full.wait({"runId": parked.cell_id})
        assert (done.value, done.output) == ("done", ())


async def test_a_cell_may_park_again_when_every_place_is_taken(guest):
    """RS-02, rule 3.8."""
    async with cells(guest) as open_:
        code = "await yield_control(); await yield_control(); return 'end'"
        parked = [await open_.exec(code) for _ in range(64)]
        again = await open_.cm.wait(parked[0].cell_id)
        assert isinstance(again, Waiting)
        refused = await open_.failed(code)
        assert refused.code == "invalid_input"
        assert "too many suspended code mode runs." in refused.error
        for each in (again, *parked[1:]):
            assert (await open_.finish(each)).value == "end"


async def test_a_shell_session_id_is_told_apart_from_a_run(guest):
    """RS-04, rule 3.7."""
    async with cells(guest) as open_:
        result = await open_.cm.call("wait", {"runId": "s1"})
    assert result.details["status"] == "failed"
    assert result.details["code"] == "invalid_input"
    assert "runId" in result.details["error"]
    assert "process" in result.details["error"] or "shell" in result.details["error"]


async def test_the_time_to_live_does_not_run_while_somebody_waits(guest):
    """RS-06: idle cells expire and are freed."""
    async with cells(guest, snapshotTtlSeconds=1, timeoutMs=400) as open_:
        outcome = await open_.exec("return await slow({ms: 1600, tag: 'x'})", "slow")
        done = await open_.finish(outcome)
        assert isinstance(done, Completed), done
        assert done.value == {"tag": "x"}
        idle = await open_.exec("await yield_control(); return 1")
        with anyio.fail_after(4):
            while open_.cm.statistics()["continuations"]["parked"]:  # noqa: ASYNC110 - a count
                await anyio.sleep(0.05)
        gone = await open_.cm.wait(idle.cell_id)
        assert gone.code == "invalid_input"
        assert "unavailable or expired" in gone.error


async def test_ten_awaited_calls_are_one_turn_of_the_model(tmp_path):
    """RS-07, rule 3.5."""
    code = "for (let i = 0; i < 10; i++) await count({}); return 'ok'"
    async with agent(tmp_path, enabled=True) as made:
        result = await made.turn(cell(code), "done")
        assert '"status":"completed"' in made.results()[0]
        assert made.world.count("count") == 10
    assert result.turns == 2


async def test_two_waits_deliver_once(any_guest):
    """RS-08, rule 3.7."""
    async with cells(any_guest, timeoutMs=1500) as open_:
        code = "await yield_control(); await count({}); await slow({ms: 500}); return 'once'"
        parked = await open_.exec(code, "count", "slow")
        got = []

        async def wait():
            got.append(await open_.cm.wait(parked.cell_id))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
        refused, done = sorted(got, key=lambda each: each.status == "completed")
        assert done.value == "once"
        assert refused.code == "invalid_input"
        assert "already being resumed" in refused.error
        third = await open_.cm.wait(parked.cell_id)
        assert third.code == "invalid_input"
        assert "unavailable or expired" in third.error
        assert open_.world.count("count") == 1


class Shrinking:
    """A source whose tools can be taken away."""

    def __init__(self):
        self.version = 1
        self._tools = [core_tool(each) for each in World().tools()]

    def take_away(self, name):
        self._tools = [each for each in self._tools if each.tool.name != name]
        self.version += 1

    def tools(self):
        return self._tools

    def unavailable(self):
        return ()

    async def start(self):
        pass

    async def aclose(self):
        pass


@pytest.mark.parametrize("api", ["catalog", "tools"])
async def test_a_tool_that_went_away_rejects_and_is_never_undefined(tmp_path, api):
    """RS-09."""
    source = Shrinking()
    call = "echo" if api == "catalog" else "tools.echo"
    code = (
        f"await yield_control(); const r = await {call}({{v: 1}});"
        " return r === undefined ? 'UNDEF' : r"
    )

    def resume(request):
        source.take_away("echo")
        cell_id = re.search(r'"runId":"([^"]+)"', request.messages[-1].text).group(1)
        return tool_call("wait", {"runId": cell_id})

    made = agent(tmp_path, tools=[], sources=(source,), enabled=True, guestApi=api)
    async with made as open_:
        await open_.turn(cell(code), resume, "done")
        said = open_.results()[-1]
    assert '"status":"failed"' in said
    assert "UNDEF" not in said
    assert "available" in said


async def test_a_slow_shell_command_yields_before_the_cell_must(tmp_path):
    """RS-10: the cell gets a handle, not a `waiting`."""
    rules = {"rules": [{"tool": "exec", "decision": "allow"}]}
    code_mode = {"enabled": True, "executor": "quickjs", "timeoutMs": 1500}
    config = parse_config({"tools": {"approvals": rules, "codeMode": code_mode}})
    runtime = Runtime(config, Parts(workspace=tmp_path, load_plugins=False), Host())
    await runtime.start()
    try:
        run = runtime.run(runtime.scope())
        outcome = await run.exec({"code": "return await exec({command: 'sleep 4'})"})
        assert isinstance(outcome, Completed), outcome
        assert outcome.value["status"] == "running"
        assert outcome.value["sessionId"]
        quick = await run.exec({"code": "return await exec({command: 'sleep 4', yieldMs: 50})"})
        assert isinstance(quick, Completed), quick
        assert quick.value["status"] == "running"
    finally:
        await runtime.aclose()


async def test_a_failed_wait_leaves_the_next_cell_everything(guest):
    """RS-11, rule 3.11: output before the failure is kept."""
    async with cells(guest, timeoutMs=600) as open_:
        code = "const r = await slow({ms: 700, tag: 't'}); json(r); undefinedHelper();"
        outcome = await open_.finish(await open_.exec(code, "slow"))
        assert outcome.status == "failed"
        assert "ReferenceError" in outcome.error
        assert [dict(each) for each in outcome.output] == [{"type": "json", "value": {"tag": "t"}}]
        assert await open_.value("return await echo({v: 2})", "echo") == {"v": 2}
