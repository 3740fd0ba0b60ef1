"""Reports TR: what is on record."""

import json
import re

import pytest

from tests.reports.rig import agent, cell, cells
from toolcell import Host
from toolcell.protocol.events import CallEnded, CallStarted
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio


def wait_for(request):
    """A model that resumes the cell of the last result."""
    cell_id = re.search(r'"runId":"([^"]+)"', request.messages[-1].text).group(1)
    return tool_call("wait", {"runId": cell_id}, id="w1")


async def test_nested_calls_survive_a_reload_under_the_exec_that_made_them(tmp_path):
    """TR-01, rule 8.3: the next request holds only the model's own calls."""
    code = "await echo({v: 1}); await echo({v: 1}); await yield_control(); await echo({v: 2});"
    async with agent(tmp_path, enabled=True) as made:
        await made.turn(cell(code), wait_for, "done")
        outer, resumed = await made.reloaded_tree()
        await made.turn("more")
        messages = made.provider.bodies[-1]["messages"]
    assert (outer.call_id, resumed.call_id) == ("c1", "w1")
    assert [c.to_dict()["arguments"] for c in outer.children] == [{"v": 1}, {"v": 1}, {"v": 2}]
    assert len({c.call_id for c in outer.children}) == 3
    assert list(resumed.children) == []
    pairs = [m.get("tool_call_id") or [c["id"] for c in m["tool_calls"]] for m in messages[1:5]]
    assert pairs == [["c1"], "c1", ["w1"], "w1"]
    assert [m["role"] for m in messages[5:]] == ["assistant", "user"]


async def test_a_call_that_outlives_its_cell_is_shown_from_start_to_end(catalog_guest):
    """TR-03."""
    events = []

    class Kept:
        def emit(self, event):
            events.append(event)

    async with cells(catalog_guest, host=Host(sink=Kept()), timeoutMs=200) as open_:
        parked = await open_.exec("slow({ms: 500}); await yield_control(); return 1")
        started = [e for e in events if isinstance(e, CallStarted)]
        assert [e.tool_name for e in started] == ["exec", "slow"]
        exec_id = started[0].call_id
        assert started[1].parent_id == exec_id
        outcome = await open_.finish(parked)
        assert outcome.value == 1
    slow_id = started[1].call_id
    ends = [e for e in events if isinstance(e, CallEnded) and e.call_id == slow_id]
    starts = [e for e in events if isinstance(e, CallStarted) and e.call_id == slow_id]
    assert (len(starts), len(ends)) == (1, 1)


async def test_a_cell_that_fails_half_way_leaves_its_calls_on_record(tmp_path):
    """TR-04."""
    code = 'for (let i = 0; i < 5; i++) await count({}); throw new Error("stop")'
    async with agent(tmp_path, enabled=True) as made:
        await made.turn(cell(code), "sorry")
        (outer,) = await made.reloaded_tree()
        assert made.world.count("count") == 5
    assert '"status":"failed"' in made.results()[0]
    nested = [child.to_dict() for child in outer.children]
    assert [each["status"] for each in nested] == ["completed"] * 5
    assert [n for each in nested for n in re.findall(r'"n": (\d)', json.dumps(each))] == list(
        "12345"
    )


async def test_a_failure_adds_no_message_that_nobody_wrote(tmp_path):
    """TR-06."""
    config = {"agents": {"defaults": {"systemPrompt": "Be brief."}}}
    async with agent(tmp_path, config=config, enabled=True) as made:
        await made.turn(cell('throw new Error("x")'), "I see")
        first, second = made.provider.bodies
        assert first["tools"] == second["tools"]
        roles = [m["role"] for m in second["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert second["messages"][0]["content"] == "Be brief."


async def test_counters_run_on_over_wait_and_hold_no_values(guest):
    """TR-07, rule 8.4."""
    search = "catalog.search" if guest[1] == "catalog" else "tools.search"
    describe = (
        "await (await catalog.search('echo'))[0].describe();"
        if guest[1] == "catalog"
        else "await tools.search('echo'); await tools.describe('openclaw:core:echo');"
    )
    code = (
        f"await {search}('add'); {describe} await echo({{v: 'CANARY-1'}}); await yield_control();"
        " await echo({v: 2}); try { await boom({why: 'x'}) } catch {} return 1"
    )
    async with cells(guest) as open_:
        parked = await open_.exec(code, "echo", "boom")
        done = await open_.finish(parked)
    before, after = parked.telemetry, done.telemetry
    counts = (after["searchCount"], after["describeCount"], after["callCount"])
    assert counts == (2, 1, 3)
    assert before["callCount"] == 1
    assert before["counterScope"] == after["counterScope"]
    assert after["catalogSize"] == 7
    assert after["sources"] == {"openclaw": 7, "mcp": 0, "client": 0}
    assert "CANARY" not in str(after)
