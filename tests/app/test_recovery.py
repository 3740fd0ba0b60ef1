"""A turn that a restart cut off during `wait` is rebuilt from the transcript, read-only."""

import pytest

from toolcell import tool
from toolcell.app.compacting import CompactingPorts, compacted
from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.recovery import can_be_rebuilt, rebuild
from toolcell.app.runtime import Parts, Runtime
from toolcell.base.jsontext import loads
from toolcell.config.parse import parse_config
from toolcell.errors import SessionError
from toolcell.protocol.events import MessageAdded, RunEnded
from toolcell.protocol.messages import Message
from toolcell.protocol.scope import RunScope
from toolcell.providers.registry import ProviderRegistry
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.sessions.taking_up import conversation_of

pytestmark = pytest.mark.anyio

CONFIG = {
    "tools": {"codeMode": {"enabled": True, "executor": "quickjs"}},
    "agents": {"defaults": {"model": "scripted/m"}},
}


class Cut(MemorySessions):
    """A record whose process dies before the end of a run is written."""

    def emit(self, event):
        if not isinstance(event, RunEnded):
            super().emit(event)


class Shop:
    def __init__(self):
        self.sold = 0

        @tool(replay_safe=True)
        async def stock() -> int:
            """How many there are."""
            return 7

        @tool
        async def sell() -> int:
            """Sell one."""
            self.sold += 1
            return self.sold

        self.tools = [stock, sell]


async def run(sessions, steps, shop, session_id="s", go=None):
    provider = ScriptedProvider(steps)
    runtime = Runtime(parse_config(CONFIG), Parts(tools=shop.tools, sinks=(sessions,)), Host())
    await runtime.start()
    try:
        runtime.providers.add("scripted", provider)
        scope = runtime.scope(session_id=session_id)
        if go is not None:
            return await go(runtime, sessions, scope), provider
        turn = Turn(scope=scope, prompt="how many are left?")
        return await converse(runtime, sessions, turn), provider
    finally:
        await runtime.aclose()


def parked(safe=True):
    """Turns of a model that parks a cell and then is cut off: the script ends."""
    return [tool_call("exec", {"code": "return await stock({})", "restartSafe": safe})]


async def test_the_turn_goes_on_from_the_transcript_with_read_only_tools():
    """rule 3.13: rebuilt from the transcript, audited read-only tools only, nothing sold."""
    sessions, shop = Cut(), Shop()
    await run(sessions, parked(), shop)
    assert await can_be_rebuilt(sessions, "s")

    def resume(request):
        return tool_call("wait", {"runId": loads(request.messages[-1].text)["runId"]})

    code = "return [typeof sell, catalog.all().length, await stock({})]"
    steps = [
        tool_call("exec", {"code": code}),
        resume,
        lambda request: f"there are {loads(request.messages[-1].text)['value']}",
    ]
    result, provider = await run(sessions, steps, shop, go=rebuild)
    assert result.status == "completed", result.error
    assert result.text == "there are ['undefined', 1, 7]"
    first = provider.requests[0]
    assert [message.role for message in first.messages] == ["user", "assistant", "tool"]
    assert [each.name for each in first.tools] == ["exec", "wait"]
    assert shop.sold == 0


@pytest.mark.parametrize(("safe", "stays"), [(True, True), (False, False)])
async def test_what_a_rebuilt_turn_needs_outlives_a_compaction_by_hand(safe, stays):
    """rule 3.13, BEHAVIOURS 358: of a run that was cut off, a restart-safe cell is still shown."""
    sessions, shop = Cut(), Shop()
    await run(sessions, parked(safe), shop)
    run_id = (await sessions.events("s", types=("run_started",)))[-1].run_id
    scope = RunScope(agent_id="main", session_id="s", session_key="k", run_id=run_id)
    for text in ("", "it takes long"):  # the last of its words stay in any case
        said = Message(role="assistant", text=text + "w" * 4000)
        sessions.emit(MessageAdded(scope=scope, at=1.0, message=said))
    assert await can_be_rebuilt(sessions, "s") is safe
    config = parse_config({"agents": {"defaults": {"compaction": {"keepRecentTokens": 500}}}})
    providers = ProviderRegistry({})
    providers.add("scripted", ScriptedProvider(["NOTES"]))
    ports = CompactingPorts(config=config, sessions=sessions, providers=providers, sink=sessions)
    done = await compacted(ports, session_id="s", model="scripted/m", channel="test")
    assert done["messages"] == (1 if stays else 3)
    left = await conversation_of(sessions, "s")
    assert any(call.name == "exec" for m in left.messages for call in m.tool_calls) is stays
    assert await can_be_rebuilt(sessions, "s") is safe


async def test_a_turn_that_was_not_restart_safe_or_ended_is_left_alone():
    """rule 3.13."""
    for sessions, safe in ((Cut(), False), (MemorySessions(), True)):
        shop = Shop()
        await run(sessions, parked(safe), shop)
        assert not await can_be_rebuilt(sessions, "s")
        with pytest.raises(SessionError, match="no turn to rebuild"):
            await run(sessions, [], shop, go=rebuild)
    assert not await can_be_rebuilt(MemorySessions(), "unknown")
