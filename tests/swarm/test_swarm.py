"""Groups of children over a runner that ends them by hand."""

import anyio
import pytest

from tests.swarm.kit import Runner, opened, scope, swarm_of
from toolcell.errors import ToolcellError
from toolcell.protocol.events import ChildChanged, Diagnostic, SwarmNote
from toolcell.swarm.request import SpawnRequest, read_request
from toolcell.swarm.swarm import MAX_IDLE_GROUPS, Refusal

pytestmark = pytest.mark.anyio


async def never(_prompt, _request):
    await anyio.sleep_forever()


def ask(prompt="t", **options):
    return SpawnRequest(prompt=prompt, **options)


async def test_no_more_run_than_may_and_the_first_asked_for_is_the_first_to_run():
    """rule 11.2: maxConcurrent; BEHAVIOURS 374."""
    runner = Runner(max_concurrent=2)
    async with swarm_of(runner) as (swarm, _):
        children = [swarm.spawn(scope(), ask(name)) for name in "abcd"]
        await runner.finish("a")
        await children[0].over()
        await runner.at_work(lambda: len(runner.begun) == 3)
        assert runner.begun == ["a", "b", "c"]
        assert swarm.statistics() == {"groups": 1, "running": 2, "queued": 1, "over": 1}


async def test_a_group_that_is_full_refuses_and_says_which_limit():
    """rule 11.2, BEHAVIOURS 375, SW-03: no other cap refuses before the group's own."""
    runner = Runner(max_concurrent=60)
    async with swarm_of(runner) as (swarm, _):
        taken = [swarm.spawn(scope(), ask(str(n))) for n in range(50)]
        assert not any(isinstance(child, Refusal) for child in taken)
        refused = swarm.spawn(scope(), ask("51"))
        assert refused == Refusal(
            "sessions_spawn reached tools.swarm.maxChildrenPerGroup (50/50).", "forbidden"
        )
        assert not isinstance(swarm.spawn(scope("other"), ask("1")), Refusal)


async def test_a_group_has_a_limit_over_its_life():
    """rule 11.2, BEHAVIOURS 375."""
    runner = Runner(max_total_per_group=2)
    async with swarm_of(runner) as (swarm, _):
        for name in "ab":
            child = swarm.spawn(scope(), ask(name))
            await runner.finish(name)
            await child.over()
        refused = swarm.spawn(scope(), ask("c"))
        assert refused.message == "sessions_spawn reached tools.swarm.maxTotalPerGroup (2/2)."


async def test_the_depth_limit_wins_over_the_limits_of_the_group():
    """BEHAVIOURS 375."""
    runner = Runner(max_children_per_group=1)
    async with swarm_of(runner) as (swarm, _):
        child = swarm.spawn(scope(), ask("a"))
        refused = swarm.spawn(scope(child.run_id), ask("b"))
        assert "maxSpawnDepth (1/1)" in refused.message
        assert refused.status == "forbidden"


async def test_nothing_starts_while_swarm_is_off_or_without_a_run():
    """BEHAVIOURS 376."""
    runner = Runner(enabled=False)
    async with swarm_of(runner) as (swarm, events):
        refused = swarm.spawn(scope(), ask())
        assert refused.status == "forbidden"
        assert "tools.swarm.enabled=true" in refused.message
        assert events.events == []
    async with swarm_of(Runner()) as (swarm, events):
        assert swarm.spawn(scope(""), ask()).status == "error"
        assert events.events == []


async def test_the_id_of_a_group_names_the_session_and_the_run():
    """BEHAVIOURS 372."""
    async with swarm_of(Runner()) as (swarm, _):
        child = swarm.spawn(scope("parent-run", session="main"), ask())
        assert child.group_id == "swarm:agent:main:main:parent-run"


async def test_the_same_request_under_a_key_finds_its_child_again():
    """BEHAVIOURS 373: no double spawn on replay; another request under the key is refused."""
    async with swarm_of(Runner()) as (swarm, events):
        key = "cm_replay_0:bridge:agentSpawn:1"
        first = swarm.spawn(scope(), ask("a"), key=key)
        assert swarm.spawn(scope(), ask("a"), key=key) is first
        assert len(events.of(ChildChanged)) == 1
        assert first.fingerprint.startswith("sha256:")
        assert len(first.fingerprint) == 7 + 64
        other = swarm.spawn(scope(), ask("b"), key=key)
        assert other.message == (
            "agents.run replay request does not match the persisted collector."
        )


async def test_a_wait_returns_with_the_first_child_that_is_over_and_may_be_asked_again():
    """BEHAVIOURS 378, SW-06: completed by time, pending in the order asked for."""
    runner = Runner()
    async with swarm_of(runner) as (swarm, _):
        a, b, c = (swarm.spawn(scope(), ask(name)) for name in "abc")
        ids = [a.run_id, b.run_id, c.run_id]
        await runner.finish("c")
        answer = await swarm.wait(scope(), ids, 5)
        assert [child.run_id for child in answer.completed] == [c.run_id]
        assert answer.pending == (a.run_id, b.run_id)
        await runner.finish("a")
        await a.over()
        answer = await swarm.wait(scope(), ids, 5)
        assert [child.run_id for child in answer.completed] == [c.run_id, a.run_id]
        again = await swarm.wait(scope(), [a.run_id], 5)
        assert [child.record() for child in again.completed] == [a.record()]


async def test_a_wait_whose_time_is_over_says_what_is_pending():
    """SW-06: no error."""
    async with swarm_of(Runner()) as (swarm, _):
        child = swarm.spawn(scope(), ask())
        answer = await swarm.wait(scope(), [child.run_id], 0)
        assert (answer.completed, answer.pending, answer.errors) == ((), (child.run_id,), ())


async def test_children_of_others_are_told_apart_from_unknown_ones():
    """BEHAVIOURS 378."""
    async with swarm_of(Runner()) as (swarm, _):
        child = swarm.spawn(scope(), ask())
        answer = await swarm.wait(scope("x", session="s2"), [child.run_id, "run_none"], 5)
        assert answer.errors == ((child.run_id, "not_owner"), ("run_none", "not_found"))
        later = await swarm.wait(scope("next turn"), [child.run_id], 0)
        assert later.pending == (child.run_id,)


async def test_cancelling_a_run_reaches_running_and_queued_children_and_no_others():
    """SW-07: the queued never start."""
    runner = Runner(max_concurrent=1)
    async with swarm_of(runner) as (swarm, events):
        mine = [swarm.spawn(scope(), ask(name)) for name in "abc"]
        other = swarm.spawn(scope("r2"), ask("other"))
        await runner.at_work(lambda: len(runner.begun) == 2)
        await swarm.cancel_run(scope())
        assert [child.state for child in mine] == ["cancelled"] * 3
        assert runner.begun == ["a", "other"]
        assert runner.cancelled == ["a"]
        assert other.state == "running"
        started = [e.child_run_id for e in events.of(ChildChanged) if e.state == "running"]
        assert started == [mine[0].run_id, other.run_id]


async def test_closing_ends_what_runs_and_starts_nothing_that_is_queued():
    """REPORTS SW-07: a runtime that closes leaves no child behind, and no error."""
    async with opened(swarm={"enabled": True, "maxConcurrent": 1}, child=never) as open_:
        swarm = open_.runtime.swarming.swarm
        open_.runtime.swarming.runner.parent_model("r1", "s/m")
        children = [swarm.spawn(scope(), ask(name)) for name in "abc"]
        await anyio.wait_all_tasks_blocked()
        assert [child.state for child in children] == ["running", "queued", "queued"]
        await open_.runtime.aclose()
        assert [child.state for child in children] == ["cancelled"] * 3
        begun = [e.child_run_id for e in open_.events.of(ChildChanged) if e.state == "running"]
        assert begun == [children[0].run_id]
        assert not open_.events.of(Diagnostic)


async def test_a_swarm_that_is_closed_takes_no_further_child():
    """SW-07: a cell that is not over yet when its runtime closes leaves no child open on record."""
    async with swarm_of(Runner(max_concurrent=1)) as (swarm, events):
        swarm.close()
        refused = swarm.spawn(scope(), ask("late"))
        assert isinstance(refused, Refusal)
        assert "the runtime is closing" in refused.message
        assert events.events == []
        assert swarm.statistics() == {"groups": 0, "running": 0, "queued": 0, "over": 0}


async def test_a_child_that_is_cancelled_before_its_task_ran_never_begins():
    """SW-07."""
    runner = Runner()
    async with swarm_of(runner) as (swarm, events):
        child = swarm.spawn(scope(), ask())
        swarm.cancel(child)
        await child.over()
        assert runner.begun == []
        assert [e.state for e in events.of(ChildChanged)] == ["queued", "cancelled"]


async def test_agents_that_may_not_be_started_are_refused_with_those_that_may():
    """SW-09."""
    async with swarm_of(Runner()) as (swarm, events):
        refused = swarm.spawn(scope(), ask(agent_id="ghost"))
        assert refused.message == "agentId 'ghost' is not allowed here (allowed: main, worker)."
        assert events.events == []
        assert swarm.spawn(scope(), ask(agent_id="worker")).task.agent_id == "worker"


async def test_a_model_that_is_not_configured_is_an_error_before_anything_starts():
    async with swarm_of(Runner()) as (swarm, events):
        assert swarm.spawn(scope(), ask(model="x/y")).status == "error"
        assert events.events == []


async def test_a_note_of_the_run_precedes_its_child():
    """BEHAVIOURS 380."""
    async with swarm_of(Runner()) as (swarm, events):
        swarm.note(scope(), "phase", "Plan")
        swarm.note(scope(), "log", "two to go")
        child = swarm.spawn(scope(), ask("a", label="first"))
        kinds = [type(event) for event in events.events]
        assert kinds == [SwarmNote, SwarmNote, SwarmNote, ChildChanged]
        phase, log, run = events.of(SwarmNote)
        assert (phase.kind, phase.text, log.text) == ("phase", "Plan", "two to go")
        assert (run.kind, run.text, run.reason) == ("run", "first", "swarm-note")
        assert run.scope.session_key == "agent:main:s1"
        assert run.group_id == child.group_id
        assert child.phase == "Plan"


async def test_a_child_whose_runner_fails_is_failed_with_the_reason():
    """BEHAVIOURS 371."""

    class Broken(Runner):
        async def run(self, _task):
            raise ToolcellError("no model")

    async with swarm_of(Broken()) as (swarm, _):
        child = swarm.spawn(scope(), ask())
        await child.over()
        assert child.failure() == f"Swarm agent {child.run_id} failed: no model"


async def test_old_groups_are_archived_and_live_ones_are_not():
    """rule 11.1: results are kept until the group is archived."""
    runner = Runner()
    async with swarm_of(runner) as (swarm, _):
        live = swarm.spawn(scope("live"), ask("live"))
        first = swarm.spawn(scope("first"), ask("first"))
        await runner.finish("first")
        await first.over()
        for number in range(MAX_IDLE_GROUPS):
            swarm.note(scope(f"idle{number}"), "log", "x")
        ids = [live.run_id, first.run_id]
        answer = await swarm.wait(scope("live"), ids, 0)
        assert answer.pending == (live.run_id,)
        assert answer.errors == ((first.run_id, "not_found"),)


async def test_a_session_that_is_over_takes_its_groups_along():
    runner = Runner()
    async with swarm_of(runner) as (swarm, _):
        child = swarm.spawn(scope(), ask())
        await swarm.archive_session("s1")
        assert child.state == "cancelled"
        assert swarm.statistics()["groups"] == 0


@pytest.mark.parametrize(
    ("prompt", "options", "problem"),
    [
        ("", {}, "agents.run prompt must be a non-empty string"),
        ("  ", {}, "agents.run prompt must be a non-empty string"),
        ("t", [], "agents.run options must be an object"),
        ("t", {"phase": ""}, "agents.run phase must be a non-empty string"),
        ("t", {"thinking": "much"}, "agents.run thinking must be one of"),
        ("t", {"schema": []}, "agents.run schema must be a JSON Schema object"),
        ("t", {"schema": {"type": "nope"}}, "agents.run schema cannot be used"),
    ],
)
async def test_forged_requests_are_judged_by_the_host_too(prompt, options, problem):
    """BEHAVIOURS 370."""
    assert read_request("agents.run", prompt, options).startswith(problem)
