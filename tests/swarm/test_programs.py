"""`agents.run`, `phase` and `log` in programs, over real agent runs of a scripted model."""

import anyio
import pytest

from tests.swarm.kit import opened
from toolcell.errors import ProviderError
from toolcell.protocol.events import ChildChanged, RunStarted, SwarmNote
from toolcell.providers.scripted import tool_call
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool

pytestmark = pytest.mark.anyio

GUESTS = [(executor, api) for executor in ("quickjs", "node") for api in ("catalog", "tools")]
TYPES = "return [typeof agents, typeof phase, typeof log]"


@pytest.fixture(params=GUESTS, ids="-".join)
def guest(request):
    return request.param


async def test_children_give_their_text_and_with_a_schema_their_value(guest):
    """rule 11.1, BEHAVIOURS 369: on both executors, with both guest APIs."""

    async def child(prompt, request):
        if prompt == "count" and request.messages[-1].role == "user":
            return tool_call("structured_output", {"n": 3})
        return f"did {prompt}"

    schema = '{type: "object", properties: {n: {type: "integer"}}, required: ["n"]}'
    async with opened(child, guest=guest) as open_:
        value = await open_.value(
            f'return [await agents.run("a"), await agents.run("count", {{schema: {schema}}})]'
        )
        assert value == ["did a", {"n": 3}]
        history = await open_.sessions.history(open_.events.of(ChildChanged)[0].child_session_id)
        assert [message.text for message in history] == ["a", "did a"]


async def test_a_fan_out_a_gate_and_a_collection_are_ordinary_javascript(guest):
    """rule 11.1, rule 11.2: the links of the seed's Swarm text."""

    async def child(prompt, _request):
        return "no" if prompt == "judge draft 2" else f"<{prompt}>"

    code = """
        phase("Draft");
        const draft = (n) => agents.run("draft " + n, {label: "d" + n});
        const drafts = await Promise.all([1, 2, 3].map(draft));
        phase("Judge");
        const kept = [];
        for (let n = 1; n <= drafts.length; n++) {
          if (await agents.run("judge draft " + n) !== "no") kept.push(drafts[n - 1]);
        }
        log(kept.length + " kept");
        return agents.run("merge " + kept.join(" "), {phase: "Merge"});
    """
    async with opened(child, guest=guest) as open_:
        assert await open_.value(code) == "<merge <draft 1> <draft 3>>"
        phases = {e.phase for e in open_.events.of(ChildChanged)}
        assert phases == {"Draft", "Judge", "Merge"}
        notes = [(e.kind, e.text) for e in open_.events.of(SwarmNote) if e.kind != "run"]
        assert notes == [("phase", "Draft"), ("phase", "Judge"), ("log", "2 kept")]


async def test_the_first_to_finish_wins_and_the_rest_is_given_up_with_the_cell(guest):
    """SW-07: what the program no longer waits for does not run on for nothing."""
    never = anyio.Event()

    async def child(prompt, _request):
        if prompt == "slow":
            await never.wait()
        return prompt

    async with opened(child, guest=guest) as open_:
        code = 'return Promise.race([agents.run("slow"), agents.run("quick")])'
        assert await open_.value(code) == "quick"
        ends = {}
        for event in open_.events.of(ChildChanged):
            ends[event.child_run_id] = event.state
        assert sorted(ends.values()) == ["cancelled", "completed"]


async def test_a_failed_child_rejects_with_a_swarm_agent_error(guest):
    """rule 11.1, BEHAVIOURS 371."""

    async def child(_prompt, _request):
        raise ProviderError("the model is down")

    code = """
        try { await agents.run("a") }
        catch (e) { return [e instanceof Error, e.name, e.status, e.runId, e.message] }
    """
    async with opened(child, guest=guest) as open_:
        is_error, name, status, run_id, message = await open_.value(code)
        assert (is_error, name, status) == (True, "SwarmAgentError", "failed")
        assert message == f"Swarm agent {run_id} failed: the model is down"
        assert run_id.startswith("run_")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('agents.run("")', "agents.run prompt must be a non-empty string"),
        ("agents.run()", "agents.run prompt must be a non-empty string"),
        ('agents.run("a", [])', "agents.run options must be an object"),
        ('agents.run("a", "b")', "agents.run options must be an object"),
        ('agents.run("a", {phase: " "})', "agents.run phase must be a non-empty string"),
        ('agents.run("a", {label: 1})', "agents.run label must be a non-empty string"),
        ('phase("")', "phase title must be a non-empty string"),
    ],
)
async def test_bad_arguments_are_type_errors_and_start_nothing(call, message):
    """BEHAVIOURS 370."""
    async with opened() as open_:
        code = f"try {{ await {call} }} catch (e) {{ return [e.name, e.message] }}"
        assert await open_.value(code) == ["TypeError", message]
        assert open_.events.of(ChildChanged) == []


async def test_an_unknown_option_and_a_schema_that_is_none_are_told():
    """rule 11.1: a misspelt option is not silently ignored."""
    async with opened() as open_:
        code = """
            const said = [];
            for (const o of [{agent: "x"}, {schema: {type: "nope"}}]) {
              try { await agents.run("a", o) } catch (e) { said.push(e.message) }
            }
            return said;
        """
        first, second = await open_.value(code)
        assert "agents.run has no option agent" in first
        assert second.startswith("agents.run schema cannot be used")


@pytest.mark.parametrize("swarm", [False, {"maxConcurrent": 4}, None])
async def test_without_swarm_there_are_no_globals_no_declarations_and_no_words(guest, swarm):
    """rule 11.1, BEHAVIOURS 367, 368, SW-10: limits alone do not enable."""
    async with opened(guest=guest, swarm=swarm or False, tools=[look]) as open_:
        assert await open_.value(TYPES) == ["undefined"] * 3
        listed = await open_.value(
            'try { return await API.read("agents.d.ts") } catch { return 0 }'
        )
        assert listed == 0
        told = open_.model.requests[0].tools[0].description
        assert "agents.run" not in told
        assert "sessions_spawn" not in told


def look() -> int:
    """Look."""
    return 1


async def test_an_agent_says_no_for_itself():
    """BEHAVIOURS 367: an agent-level false wins over the global setting."""
    entries = {"main": {"tools": {"swarm": False}}}
    async with opened(agents={"entries": entries}, tools=[look]) as open_:
        assert await open_.value(TYPES) == ["undefined"] * 3


async def test_a_remote_tool_of_the_same_name_does_not_switch_it_on():
    """SW-10, BEHAVIOURS 368: the native tool is denied and a look-alike is there."""

    async def never(_arguments, _context):
        raise AssertionError

    class LookAlike:
        version = 1

        def tools(self):
            tool = Tool(name="sessions_spawn", description="", parameters={}, execute=never)
            origin = McpOrigin(server="srv", tool=tool.name)
            return (SourcedTool(tool=tool, source="mcp", owner="srv", group=Group.MCP, mcp=origin),)

        def unavailable(self):
            return ()

        async def start(self):
            pass

        async def aclose(self):
            pass

    policy = {"deny": ["openclaw:core:sessions_spawn"]}
    async with opened(sources=(LookAlike(),), more_tools=policy) as open_:
        assert await open_.value(TYPES) == ["undefined"] * 3


async def test_with_swarm_the_declarations_can_be_read_and_the_model_is_told(guest):
    """BEHAVIOURS 368: agents.d.ts, and the hint in the description of exec."""
    async with opened(guest=guest) as open_:
        assert await open_.value(TYPES) == ["object", "function", "function"]
        text = await open_.value('return await API.read("agents.d.ts")')
        assert "SwarmAgentError" in text
        (shown,) = [t for t in open_.model.requests[0].tools if t.name == "exec"]
        assert "agents.run(prompt" in shown.description
        assert "Agents: main." in shown.description


@pytest.mark.parametrize("slots", [16, 2, 1])
async def test_a_fan_out_larger_than_the_bridge_queues(slots):
    """SW-01, rule 11.2: 48 spawns, none twice, never more at once than may."""
    code = """
        const jobs = [...Array(24).keys()].map(async (n) => {
          const d = await agents.run("draft " + n, {label: "d" + n});
          return agents.run("check " + d);
        });
        return (await Promise.allSettled(jobs)).filter((j) => j.status === "fulfilled").length;
    """
    async with opened(code={"maxPendingToolCalls": slots}) as open_:
        assert await open_.value(code) == 24
        assert len(open_.model.asked) == len(set(open_.model.asked)) == 48
        assert open_.model.most <= 8


async def test_ordinary_calls_have_their_own_slots_beside_queued_children():
    """SW-02: a child's follow-up call finds its slot."""
    counted = 0

    def count() -> int:
        """Count."""
        nonlocal counted
        counted += 1
        return counted

    code = """
        const all = [...Array(30).keys()].map((i) => agents.run("t" + i).then(() => count({})));
        return (await Promise.allSettled(all)).filter((j) => j.status === "fulfilled").length;
    """
    async with opened(tools=[count]) as open_:
        assert await open_.value(code) == 30
        assert counted == 30


async def test_the_group_limit_is_a_catchable_error_that_names_it():
    """SW-03, BEHAVIOURS 375."""
    code = """
        const all = await Promise.allSettled([...Array(51).keys()].map((i) => agents.run("t" + i)));
        const bad = all.filter((j) => j.status === "rejected");
        return [bad.length, bad[0].reason.name, bad[0].reason.status, bad[0].reason.message];
    """
    async with opened() as open_:
        assert await open_.value(code) == [
            1,
            "SwarmAgentError",
            "forbidden",
            "sessions_spawn reached tools.swarm.maxChildrenPerGroup (50/50).",
        ]


async def test_two_hundred_children_queue_and_finish(guest):
    """rule 11.2: agents.run queues outside the ordinary bridge queue of 128."""
    swarm = {"enabled": True, "maxChildrenPerGroup": 200}
    async with opened(guest=guest, swarm=swarm, code={"timeoutMs": 30_000}) as open_:
        code = """
            const all = [...Array(200).keys()].map((i) => agents.run("t" + i));
            return (await Promise.all(all)).length;
        """
        assert await open_.value(code) == 200
        assert open_.model.most == 8


async def test_stopping_the_parent_stops_its_children():
    """SW-07, BEHAVIOURS 374: the running one is cancelled, the queued ones never start."""
    begun, never = anyio.Event(), anyio.Event()

    async def child(_prompt, _request):
        begun.set()
        await never.wait()

    async with opened(child, swarm={"enabled": True, "maxConcurrent": 1}) as open_:
        code = "return Promise.all([1, 2, 3].map((i) => agents.run('t' + i)))"
        async with anyio.create_task_group() as group:
            group.start_soon(open_.outcome, code)
            await begun.wait()
            group.cancel_scope.cancel()
        states = {}
        for event in open_.events.of(ChildChanged):
            states.setdefault(event.child_run_id, []).append(event.state)
        assert sorted(states.values()) == [
            ["queued", "cancelled"],
            ["queued", "cancelled"],
            ["queued", "running", "cancelled"],
        ]
        assert len(open_.events.of(RunStarted)) == 2


async def test_a_restart_safe_cell_that_is_run_again_finds_its_children(guest):
    """BEHAVIOURS 373: the key is the cell's replay id and the request."""
    async with opened(guest=guest) as open_:
        run = open_.runtime.run(open_.runtime.scope(session_id="s1"))
        open_.runtime.swarming.runner.parent_model(run.scope.run_id, "s/m")
        arguments = {"code": 'return await agents.run("a")', "restartSafe": True}
        told = []
        for _ in range(2):
            outcome = await run.exec(arguments, call_id="c1")
            while outcome.status == "waiting":
                outcome = await run.wait({"runId": outcome.cell_id})
            told.append(outcome.value)
        assert told == ["did a", "did a"]
        assert open_.model.asked == ["a"]


async def test_a_cell_parked_on_children_alone_lives_four_windows():
    """BEHAVIOURS 203."""
    never = anyio.Event()

    async def child(_prompt, _request):
        await never.wait()

    async def slow() -> int:
        """Wait."""
        await never.wait()
        return 1

    async with opened(
        child, tools=[slow], code={"timeoutMs": 150, "snapshotTtlSeconds": 100}
    ) as open_:
        run = open_.runtime.run(open_.runtime.scope(session_id="s1"))
        open_.runtime.swarming.runner.parent_model(run.scope.run_id, "s/m")
        lives = []
        for work in ('agents.run("a")', 'Promise.all([agents.run("b"), slow({})])'):
            outcome = await run.exec({"code": f"return await {work}"})
            assert outcome.status == "waiting"
            cell = open_.runtime._store.claim(outcome.cell_id, run.scope)
            lives.append(cell.life.remaining)
            await cell.give_up("seen")
        assert 390 < lives[0] <= 400
        assert 90 < lives[1] <= 100


async def test_a_flood_of_children_is_refused_one_by_one_and_holds_nobody_up():
    """rule 11.2: hostile programs; the host stays free and the group is what it may be."""
    code = """
        let refused = 0;
        const all = [...Array(5000).keys()].map((i) => agents.run("t" + i));
        for (const one of all) one.catch(() => { if (++refused === 4950) log("refused") });
        const ended = await Promise.allSettled(all);
        return ended.filter((one) => one.status === "fulfilled").length;
    """
    longest = 0.0

    async def beat():
        nonlocal longest
        while True:
            before = anyio.current_time()
            await anyio.sleep(0.01)
            longest = max(longest, anyio.current_time() - before)

    async def child(prompt, _request):
        # One that ended before all were asked for would leave its place to another.
        while not any(note.text == "refused" for note in open_.events.of(SwarmNote)):  # noqa: ASYNC110 - no event tells of it
            await anyio.sleep(0.01)
        return prompt

    async with opened(child, code={"timeoutMs": 30_000}) as open_:
        async with anyio.create_task_group() as group:
            group.start_soon(beat)
            kept = await open_.value(code)
            group.cancel_scope.cancel()
        assert kept == 50
        assert len(open_.model.asked) == 50
        assert longest < 1
