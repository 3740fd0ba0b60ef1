"""The public face: what a program with an agent loop of its own does."""

from typing import TypedDict

import anyio
import pytest

from toolcell import (
    Ask,
    Block,
    CodeMode,
    Completed,
    ConfigError,
    Failed,
    Hooks,
    Host,
    Tool,
    ToolcellError,
    ToolResult,
    Waiting,
    define_tool_plugin,
    tool,
)
from toolcell.protocol.approvals import ApprovalAnswer, NoApprover

pytestmark = pytest.mark.anyio


class Sum(TypedDict):
    sum: float


@tool
async def add(a: float, b: float) -> Sum:
    """Add two numbers."""
    return {"sum": a + b}


@tool
async def slow(ms: int, tag: str = "") -> str:
    """Wait, then give the tag back."""
    await anyio.sleep(ms / 1000)
    return tag


class Counter:
    """A tool with a side effect that can be counted."""

    def __init__(self):
        self.ran = 0
        self.tool = tool(name="count")(self._count)

    async def _count(self) -> int:
        """Count up."""
        self.ran += 1
        return self.ran


def code_mode(*tools, **options):
    return CodeMode(tools=tools or (add,), executor="quickjs", **options)


async def test_the_first_program_of_the_readme():
    async with code_mode() as cm:
        outcome = await cm.exec("return await add({a: 1, b: 2})")
    assert isinstance(outcome, Completed)
    assert outcome.value == {"sum": 3}
    assert outcome.to_dict()["status"] == "completed"


async def test_a_model_sees_exactly_exec_wait_and_direct_only_tools():
    """rule 2.2, BEHAVIOURS 28, BEHAVIOURS 29, PP-02."""

    @tool(catalog_mode="direct-only")
    async def view_image(path: str) -> str:
        """Look at an image."""
        return path

    async with code_mode(add, view_image) as cm:
        names = [each["function"]["name"] for each in cm.definitions("openai")]
        assert names == ["exec", "wait", "view_image"]
        assert [each["name"] for each in cm.definitions("anthropic")] == names
        assert [each["name"] for each in cm.definitions("openai-responses")] == names
        assert [each["name"] for each in cm.definitions("mcp")] == names
        direct = await cm.call("view_image", {"path": "x.png"})
        assert (direct.details, direct.is_error) == ("x.png", False)
        hidden = await cm.call("add", {"a": 1, "b": 2})
        assert hidden.is_error
        assert "unknown tool 'add'" in hidden.content[0].text
        outcome = await cm.exec("return catalog.all().map((handle) => handle.toolName)")
        assert outcome.value == ["add"]


async def test_the_outcome_and_the_details_of_the_call_agree():
    """DESIGN: `outcome` and `result.details` agree."""
    async with code_mode() as cm:
        result = await cm.call("exec", {"code": "text('hi'); return await add({a: 1, b: 1})"})
        assert isinstance(result, ToolResult)
        assert result.details["value"] == {"sum": 2}
        assert result.details["output"] == [{"type": "text", "text": "hi"}]
        assert result.details["telemetry"]["visibleTools"] == ["exec", "wait"]
        failed = await cm.call("exec", {"code": ""})
        assert failed.is_error
        assert failed.details["code"] == "invalid_input"


async def test_slow_work_suspends_and_wait_resumes_it():
    """rule 3.5, rule 3.6."""
    config = {"tools": {"codeMode": {"timeoutMs": 100}}}
    async with code_mode(slow, config=config) as cm:
        outcome = await cm.exec("text('before'); return await slow({ms: 300, tag: 'late'})")
        assert isinstance(outcome, Waiting)
        assert outcome.reason == "pending_tools"
        pieces = list(outcome.output)
        while isinstance(outcome, Waiting):
            outcome = await cm.wait(outcome.cell_id)
            pieces.extend(outcome.output)
        assert outcome.value == "late"
        assert pieces == [{"type": "text", "text": "before"}]


async def test_sessions_do_not_share_cells_and_a_refused_wait_changes_nothing():
    """rule 2.5, rule 3.7, BEHAVIOURS 197, BEHAVIOURS 198."""
    async with code_mode() as cm:
        parked = await cm.exec("await yield_control(); return 'mine'")
        other = await cm.session("another").wait(parked.cell_id)
        assert isinstance(other, Failed)
        assert other.error.startswith("code mode run belongs to a different session.")
        assert (await cm.wait(parked.cell_id)).value == "mine"


async def test_a_plugin_and_plain_tools_stand_side_by_side():
    """rule 4.1: core before plugins."""
    plugin = define_tool_plugin(
        id="ship", name="Ship", description="Ships.", tools=lambda _: [slow]
    )
    async with code_mode(plugin, add) as cm:
        handles = (await cm.exec("return catalog.all()")).value
        assert [each["toolName"] for each in handles] == ["add", "slow"]


async def test_hooks_block_rewrite_and_see_the_outer_call():
    """rule 3.12, rule 8.1, BEHAVIOURS 73, BEHAVIOURS 75, PO-03, PO-06."""
    counter = Counter()
    seen = []

    def before(call):
        seen.append((call.tool_name, call.tool_kind, call.tool_input_kind, call.parent_id))
        if call.tool_name == "count":
            return Block(reason="no counting today")
        return None

    host = Host(hooks=Hooks(before=[before]))
    async with code_mode(counter.tool, host=host) as cm:
        outcome = await cm.exec("try { await count({}) } catch (e) { return e.message }")
        assert "no counting today" in outcome.value
        assert counter.ran == 0
        outer, nested = seen
        assert outer[:3] == ("exec", "code_mode_exec", "javascript")
        assert nested[:3] == ("count", None, None)
        assert outer[3] is None
        assert nested[3] is not None


async def test_a_blocked_exec_is_a_failed_outcome():
    """rule 3.12: a hook may refuse the cell itself."""
    host = Host(hooks=Hooks(before=[lambda _: Block(reason="not now")]))
    async with code_mode(host=host) as cm:
        outcome = await cm.exec("return 1")
        assert isinstance(outcome, Failed)
        assert "not now" in outcome.error
        result = await cm.call("exec", {"code": "return 1"})
        assert result.is_error


class Answers:
    def __init__(self, answer, delay=0.0):
        self.answer, self.delay, self.asked = answer, delay, []

    async def request(self, request):
        self.asked.append(request)
        await anyio.sleep(self.delay)
        return ApprovalAnswer(approved=self.answer, reason="said no")


async def test_an_approval_is_asked_once_and_the_cell_finishes_through_wait():
    """rule 3.5, PO-07: the reply deadline runs on while a person thinks; nothing runs twice."""
    counter = Counter()
    approver = Answers(True, delay=0.4)
    host = Host(
        approver=approver,
        hooks=Hooks(before=[lambda call: Ask(reason="pay") if call.tool_name == "count" else None]),
    )
    config = {"tools": {"codeMode": {"timeoutMs": 150}}}
    async with code_mode(add, counter.tool, host=host, config=config) as cm:
        code = "const a = await add({a: 1, b: 1}); return [a.sum, await count({})]"
        outcome = await cm.exec(code)
        assert isinstance(outcome, Waiting)
        while isinstance(outcome, Waiting):
            outcome = await cm.wait(outcome.cell_id)
        assert outcome.value == [2, 1]
        assert (len(approver.asked), counter.ran) == (1, 1)
        assert approver.asked[0].tool_id == "openclaw:core:count"


@pytest.mark.parametrize("approver", [Answers(False), None])
async def test_no_yes_means_no(approver):
    """PO-07: denied, or nobody there to ask: the call fails and never ran."""
    counter = Counter()
    hooks = Hooks(before=[lambda call: Ask(reason="pay") if call.tool_name == "count" else None])
    host = Host(hooks=hooks) if approver is None else Host(hooks=hooks, approver=approver)
    async with code_mode(counter.tool, host=host) as cm:
        outcome = await cm.exec("try { await count({}) } catch (e) { return e.code }")
        assert outcome.value == "blocked"
        assert counter.ran == 0


async def test_denied_tools_are_nowhere():
    """rule 4.4, PO-01, BEHAVIOURS 35."""
    counter = Counter()
    for deny in (["count"], ["cou*"], ["openclaw:core:count"]):
        async with code_mode(add, counter.tool, config={"tools": {"deny": deny}}) as cm:
            code = (
                "return [typeof count, catalog.all().length,"
                " (await catalog.search('count')).length]"
            )
            assert (await cm.exec(code)).value == ["undefined", 1, 0]
            assert "count" not in str(cm.definitions())
    assert counter.ran == 0


async def test_an_empty_allow_list_leaves_nothing_to_run():
    """rule 2.3, BEHAVIOURS 25."""
    async with code_mode(config={"tools": {"allow": []}}) as cm:
        assert cm.definitions() == []
        outcome = await cm.exec("return 1")
        assert isinstance(outcome, Failed)
        assert "policy leaves no tools" in outcome.error


async def test_a_missing_executor_fails_and_nothing_else_is_tried():
    """rule 1.6, EX-02, BEHAVIOURS 23."""
    denied = {"plugins": {"deny": ["code-mode-quickjs"]}}
    async with CodeMode(tools=[add], config=denied, executor="quickjs") as cm:
        outcome = await cm.exec("return 1")
        assert isinstance(outcome, Failed)
        assert outcome.code == "runtime_unavailable"
        assert "code-mode-quickjs" in outcome.error
        assert [each["function"]["name"] for each in cm.definitions()] == ["exec", "wait"]


async def test_config_errors_name_their_path_and_misuse_says_what_to_do():
    with pytest.raises(ConfigError, match=r"tools.codeMode.timeoutMs"):
        CodeMode(config={"tools": {"codeMode": {"timeoutMs": "soon"}}})
    cm = code_mode()
    with pytest.raises(ToolcellError, match="async with"):
        await cm.exec("return 1")
    async with cm:
        pass
    with pytest.raises(ToolcellError, match="async with"):
        await cm.exec("return 1")


async def test_closing_ends_parked_cells_and_running_calls():
    """rule 3.8: dropped on session end; each call ends."""
    ended = anyio.Event()

    @tool
    async def forever() -> None:
        """Never come back."""
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    config = {"tools": {"codeMode": {"timeoutMs": 100}}}
    with anyio.fail_after(10):
        async with code_mode(forever, config=config) as cm:
            assert isinstance(await cm.exec("await forever({})"), Waiting)
        assert ended.is_set()


async def test_a_cancelled_exec_aborts_its_calls_and_the_session_goes_on():
    aborted = anyio.Event()

    @tool
    async def forever() -> None:
        """Never come back."""
        try:
            await anyio.sleep_forever()
        finally:
            aborted.set()

    async with code_mode(forever, add) as cm:
        with anyio.move_on_after(0.3):
            await cm.exec("await forever({})")
        with anyio.fail_after(5):
            await aborted.wait()
        assert (await cm.exec("return await add({a: 2, b: 2})")).value == {"sum": 4}


async def test_tools_that_misbehave_are_told_apart_and_harm_nobody():
    """Bad input of the first issue: tools that raise, return NaN, bytes, cycles or 50 MB."""

    def odd(name, make):
        async def execute(_arguments, _context):
            return ToolResult(details=make())

        return Tool(name=name, description=name, parameters={"type": "object"}, execute=execute)

    cycle = []
    cycle.append(cycle)

    def raising():
        msg = "the disk is on fire"
        raise RuntimeError(msg)

    tools = [
        odd("nan", lambda: float("nan")),
        odd("raw", lambda: b"bytes"),
        odd("circle", lambda: cycle),
        odd("huge", lambda: "x" * 50_000_000),
        odd("raising", raising),
    ]
    code = """
    const said = {};
    for (const [name, call] of Object.entries({nan, raw, circle, huge, raising})) {
      try { said[name] = await call({}) } catch (error) { said[name] = error.message }
    }
    return said;
    """
    async with code_mode(*tools) as cm:
        outcome = await cm.exec(code)
        assert isinstance(outcome, Completed), outcome
        assert "disk is on fire" in outcome.value["raising"]
        for name in ("nan", "raw", "circle", "huge"):
            assert isinstance(outcome.value[name], str)
            assert len(outcome.value[name]) < 2000
        assert (await cm.exec("return 1")).value == 1


async def test_sixty_four_cells_wait_and_the_next_is_refused():
    """rule 3.8, RS-02, BEHAVIOURS 200."""
    async with code_mode() as cm:
        parked = [await cm.exec("await yield_control(); return 1") for _ in range(64)]
        assert all(isinstance(each, Waiting) for each in parked)
        refused = await cm.exec("await yield_control(); return 1")
        assert isinstance(refused, Failed)
        assert "too many suspended code mode runs." in refused.error
        assert (await cm.exec("return 5")).value == 5
        done = [await cm.wait(each.cell_id) for each in parked]
        assert [each.value for each in done] == [1] * 64


async def test_configured_secrets_are_masked_in_what_is_kept():
    """SE-08, rule 8.4: the guest sees the data; events and telemetry never hold the value."""
    events = []

    class Kept:
        def emit(self, event):
            events.append(event)

    @tool
    async def leak() -> str:
        """Give away the key."""
        return "the key is S3CR3T-CANARY-0001"

    providers = {"p": {"apiKey": "S3CR3T-CANARY-0001"}}
    config = {"models": {"providers": providers}}
    async with code_mode(leak, config=config, host=Host(sink=Kept())) as cm:
        outcome = await cm.exec("return await leak({})")
        assert "CANARY" in outcome.value
        assert "CANARY" not in str(outcome.telemetry)
    assert events
    assert "CANARY" not in str(events)


async def test_a_sink_that_raises_fails_no_call():
    class Broken:
        def emit(self, event):
            raise ValueError(event)

    async with code_mode(host=Host(sink=Broken())) as cm:
        assert (await cm.exec("return await add({a: 1, b: 1})")).value == {"sum": 2}


async def test_hooks_that_could_not_be_had_fail_closed():
    """SE-07."""
    async with code_mode(host=Host(hooks=None)) as cm:
        outcome = await cm.exec("return await add({a: 1, b: 1})")
        assert isinstance(outcome, Failed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hooks": [print]}, r"Host\(hooks=...\) must be Hooks\(before=.*not list"),
        ({"hooks": Hooks(before=print)}, "must hold lists of functions"),
        ({"hooks": Hooks(after=["mask"])}, "must hold functions, not str"),
        ({"approver": print}, "needs `async def request"),
        ({"approver": NoApprover}, "not the class NoApprover"),
        ({"sink": []}, "needs `def emit"),
    ],
)
def test_a_host_of_the_wrong_shape_is_refused_where_it_is_made(given: dict, words: str) -> None:
    """Not in the middle of the first call that needs it."""
    with pytest.raises(ConfigError, match=words):
        Host(**given)


async def test_a_reranker_of_the_host_orders_the_hits():
    """An optional hook for embeddings; the exact name still comes alone (BEHAVIOURS 180)."""

    @tool
    async def note_find(query: str) -> str:
        """Find a note."""
        return query

    @tool
    async def note_list() -> str:
        """List notes."""
        return ""

    asked = []

    def reranker(query, hits):
        asked.append(query)
        return sorted(hits, key=lambda hit: hit.entry.name, reverse=True)

    code = "return (await catalog.search('note')).map((handle) => handle.toolName)"
    async with code_mode(note_find, note_list, host=Host(reranker=reranker)) as cm:
        assert (await cm.exec(code)).value == ["note_list", "note_find"]
        assert asked == ["note"]
        exact = "return (await catalog.search('note_find')).map((handle) => handle.toolName)"
        assert (await cm.exec(exact)).value == ["note_find"]

    def broken(_query, _hits):
        msg = "model not loaded"
        raise RuntimeError(msg)

    async with code_mode(note_find, host=Host(reranker=broken)) as cm:
        outcome = await cm.exec(code)
        assert isinstance(outcome, Failed)
        assert "the search reranker failed: model not loaded" in outcome.error
        assert (await cm.exec("return 1")).value == 1


async def test_a_node_that_is_not_there_fails_and_names_the_remedy():
    """EX-02, rule 1.6: no other executor is tried."""
    config = {"tools": {"codeMode": {"nodePath": "/nonexistent/node"}}}
    async with CodeMode([add], executor="node", config=config) as cm:
        outcome = await cm.exec("return 1")
        assert isinstance(outcome, Failed)
        assert outcome.code == "runtime_unavailable"
        assert "/nonexistent/node" in outcome.error
        assert "quickjs" not in cm.statistics()


async def test_the_default_executor_is_node():
    """rule 1.3, BEHAVIOURS 20."""
    async with CodeMode([add]) as cm:
        assert (await cm.exec("return await add({a: 1, b: 2})")).value == {"sum": 3}
        assert "node" in cm.statistics()
    async with CodeMode([add], guest_api="tools") as cm:
        assert (await cm.exec("return await tools.add({a: 1, b: 2})")).value == {"sum": 3}
        assert "quickjs" in cm.statistics()


async def test_an_ended_session_gives_its_cells_up():
    """rule 3.8: dropped on session end."""
    async with code_mode() as cm:
        session = cm.session("short")
        parked = await session.exec("await yield_control(); return 1")
        await cm.end_session("short")
        await cm.end_session("never-was")
        with pytest.raises(ToolcellError):
            await session.wait(parked.cell_id)
        again = await cm.session("short").wait(parked.cell_id)
        assert isinstance(again, Failed)
        assert cm.statistics()["continuations"]["parked"] == 0
