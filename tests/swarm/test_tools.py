"""`sessions_spawn` and `agents_wait` as tools: for agent loops without code mode."""

import anyio
import pytest

from tests.swarm.kit import opened
from toolcell.base.jsontext import dumps, loads
from toolcell.protocol.events import ChildChanged
from toolcell.providers.scripted import tool_call
from toolcell.swarm.toolset import swarm_tools
from toolcell.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

OFF = {"enabled": False}
TWO = {"main": {"subagents": {"allowAgents": ["*"]}}, "worker": {}}


class Run:
    """A run whose tools are called by name, as its model would."""

    def __init__(self, open_, session="s1"):
        self._run = open_.runtime.run(open_.runtime.scope(session_id=session))
        self._runner = open_.runtime.swarming.runner
        self._runner.parent_model(self._run.scope.run_id, "s/m")

    async def call(self, name, **arguments):
        with anyio.fail_after(20):
            return await self._run.call(name, arguments)

    def shown(self, name):
        return next(t for t in self._run.surface().plan.visible if t.name == name).sourced.tool


async def test_a_loop_without_code_mode_spawns_and_collects():
    """rule 11.1, BEHAVIOURS 378."""
    async with opened(code=OFF) as open_:
        arguments = {"task": "a", "collect": True, "label": "first"}
        open_.model.parent[:] = [tool_call("sessions_spawn", arguments)]
        result = await open_.go()
        receipt = loads(result.text)
        assert receipt["status"] == "accepted"
        run = Run(open_)
        waited = await run.call("agents_wait", runIds=[receipt["runId"]])
        (record,) = waited.details["completed"]
        assert (record["status"], record["result"], record["label"]) == (
            "completed",
            "did a",
            "first",
        )
        again = await run.call("agents_wait", runIds=[receipt["runId"]])
        assert again.details == waited.details


async def test_a_receipt_says_how_to_collect_and_promises_nothing():
    """SW-04: neither the receipt nor the child's own prompt speaks of an announcement."""
    async with opened(code=OFF) as open_:
        run = Run(open_)
        receipt = (await run.call("sessions_spawn", task="t", collect=True)).details
        assert "agents_wait" in receipt["note"]
        assert "await agents.run" in receipt["note"]
        await run.call("agents_wait", runIds=[receipt["runId"]])
        (request,) = open_.model.of_children()
        told = dumps(receipt) + " ".join(message.text for message in request.messages)
        for word in ("announce", "notif", "automatic", "push"):
            assert word not in told.lower()


async def test_a_wait_gives_pending_at_its_own_time_out_and_then_the_result():
    """SW-06, BEHAVIOURS 378."""
    go = anyio.Event()

    async def child(_prompt, _request):
        await go.wait()
        return "late"

    async with opened(child, code=OFF) as open_:
        run = Run(open_)
        run_id = (await run.call("sessions_spawn", task="t")).details["runId"]
        first = await run.call("agents_wait", runIds=[run_id], timeoutSeconds=0.05)
        assert not first.is_error
        assert first.details == {"success": True, "completed": [], "pending": [run_id]}
        go.set()
        second = await run.call("agents_wait", runIds=[run_id], timeoutSeconds=10)
        assert [each["result"] for each in second.details["completed"]] == ["late"]


async def test_a_wait_is_no_longer_than_may_be():
    """rule 11.2, BEHAVIOURS 378: waitTimeoutSecondsMax clamps."""
    never = anyio.Event()

    async def child(_prompt, _request):
        await never.wait()

    swarm = {"enabled": True, "waitTimeoutSecondsMax": 1}
    async with opened(child, code=OFF, swarm=swarm) as open_:
        run = Run(open_)
        run_id = (await run.call("sessions_spawn", task="t")).details["runId"]
        with anyio.fail_after(5):
            waited = await run.call("agents_wait", runIds=[run_id], timeoutSeconds=9999)
        assert waited.details["pending"] == [run_id]
        assert (
            "At most 1"
            in run.shown("agents_wait").parameters["properties"]["timeoutSeconds"]["description"]
        )


async def test_only_when_no_id_is_authorised_a_wait_fails():
    """BEHAVIOURS 378."""
    async with opened(code=OFF) as open_:
        run = Run(open_)
        none = await run.call("agents_wait", runIds=["run_x"])
        assert none.is_error
        assert none.details == {
            "success": False,
            "completed": [],
            "pending": [],
            "errors": [{"runId": "run_x", "error": "not_found"}],
        }
        run_id = (await run.call("sessions_spawn", task="t")).details["runId"]
        some = await run.call("agents_wait", runIds=["run_x", run_id])
        assert some.details["success"] is True
        for ids in ([], [f"run_{n}" for n in range(1001)]):
            refused = await run.call("agents_wait", runIds=ids)
            assert refused.details["code"] == "input_contract"


@pytest.mark.parametrize("more", [{"mode": "session"}, {"thread": True}])
async def test_children_that_would_be_sessions_are_refused(more):
    """BEHAVIOURS 376: nothing is launched."""
    async with opened(code=OFF) as open_:
        refused = await Run(open_).call("sessions_spawn", task="t", collect=True, **more)
        assert refused.is_error
        assert "mode=run and thread=false" in refused.details["error"]
        assert open_.events.of(ChildChanged) == []


async def test_children_that_nobody_collects_are_refused():
    async with opened(code=OFF) as open_:
        refused = await Run(open_).call("sessions_spawn", task="t", collect=False)
        assert "pass collect: true" in refused.details["error"]


async def test_the_spawn_tool_of_an_agent_without_swarm_is_forbidden():
    """BEHAVIOURS 376: should one be left from before, it says what to set."""
    async with opened(code=OFF, swarm=False) as open_:
        spawn, _ = swarm_tools(open_.runtime.swarming.swarm, "main")
        run = open_.runtime.run(open_.runtime.scope())
        assert run.surface().plan.resolve("sessions_spawn") is None
        context = ToolContext(
            scope=run.scope, call_id="c", parent_id=None, deadline=None, update=print
        )
        result = await spawn.tool.execute({"task": "t", "collect": True}, context)
        assert result.is_error
        assert result.details["status"] == "forbidden"
        assert "tools.swarm.enabled=true" in result.details["error"]
        assert open_.events.of(ChildChanged) == []


async def test_invented_agents_are_rejected_and_the_allowed_ones_are_told():
    """SW-09: by the tool and by agents.run."""
    async with opened(agents={"entries": TWO}) as open_:
        code = """
            const said = [];
            for (const agentId of ["ghost", "worker"]) {
              try { said.push(await agents.run("x", {agentId})) } catch (e) { said.push(e.message) }
            }
            return said;
        """
        said = await open_.value(code)
        assert said == ["agentId 'ghost' is not allowed here (allowed: main, worker).", "did x"]
        assert {event.child_agent_id for event in open_.events.of(ChildChanged)} == {"worker"}
        spawn, _ = swarm_tools(open_.runtime.swarming.swarm, "main")
        assert "main, worker" in spawn.tool.description
        agent_id = spawn.tool.parameters["properties"]["agentId"]
        assert agent_id["description"] == "One of: main, worker. Default: main."


async def test_an_empty_list_lets_an_agent_start_itself_only():
    """SW-09."""
    entries = {"main": {"subagents": {"allowAgents": []}}, "worker": {}}
    async with opened(code=OFF, agents={"entries": entries}) as open_:
        run = Run(open_)
        refused = await run.call("sessions_spawn", task="t", agentId="worker")
        assert refused.details["status"] == "forbidden"
        assert (await run.call("sessions_spawn", task="t")).details["status"] == "accepted"


async def test_the_default_agent_of_children_can_be_set():
    """rule 11.2: defaultAgentId."""
    swarm = {"enabled": True, "defaultAgentId": "worker"}
    async with opened(code=OFF, swarm=swarm, agents={"entries": {"worker": {}}}) as open_:
        await Run(open_).call("sessions_spawn", task="t")
        assert open_.events.of(ChildChanged)[0].child_agent_id == "worker"
