"""The agent against an OpenAI-compatible endpoint on a real socket, kept in a real file."""

import anyio
import pytest

from tests.agent.rig import ECHO, Rig, scope, tool
from tests.surface.tools import CONTROLS
from toolcell.calls.invocation import Invocation
from toolcell.providers.openai_chat import OpenAIChatProvider
from toolcell.providers.registry import Endpoint, ProviderRegistry
from toolcell.providers.scripted import tool_call
from toolcell.providers.wire import WireSettings
from toolcell.sessions.store import SessionStore
from toolcell.surface.plan import plan_code_mode
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, RawStream, ScriptedModel
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio


async def test_a_run_through_the_official_client_is_stored_with_its_sizes(tmp_path):
    script = ScriptedModel(
        [
            [tool_call("echo", {"v": 1}, id="a"), tool_call("echo", {"v": 2}, id="b")],
            lambda body: "got " + " ".join(m["content"] for m in body["messages"][-2:]),
        ]
    )
    async with openai_server(script) as server, SessionStore(tmp_path / "s.db") as store:
        registry = ProviderRegistry({"local": Endpoint(base_url=server.base_url)})
        provider, ref = registry.resolve("local/scripted")
        rig = Rig([], sessions=store)
        result = await rig.run(provider=provider)
        await registry.aclose()
        records = await store.events("s1")
    assert ref.model == "scripted"
    assert result.text == 'got {"v":1} {"v":2}'
    assert result.usage.input_tokens == 20
    sizes = [r.data()["request_bytes"] for r in records if r.type == "model_called"]
    assert sizes == [len(raw) for raw in server.raw]


async def test_code_mode_shows_the_endpoint_exec_and_wait_only():
    """rule 2.2, rule 2.6"""
    async with openai_server(ScriptedModel(["ok"])) as server:
        provider = OpenAIChatProvider(WireSettings(base_url=server.base_url))
        result = await Rig([], plan=plan_code_mode([ECHO], CONTROLS)).run(provider=provider)
        await provider.aclose()
    assert result.status == "completed"
    shown = [t["function"]["name"] for t in server.model.bodies[0]["tools"]]
    assert shown == ["exec", "wait"]


async def test_nested_calls_never_reach_the_endpoint(tmp_path):
    """TR-01, TR-06, BEHAVIOURS 357: after a reload the next request holds only pairs of the model's
    own calls."""

    async def cell(_arguments, context):
        for n in range(3):
            await rig.gate.call(nested(n, context))
        return ToolResult(details={"status": "completed"})

    def nested(n, context):
        return Invocation(
            sourced=ECHO,
            arguments={"n": n},
            scope=context.scope,
            call_id=f"{context.call_id}:{n}",
            parent_id=context.call_id,
        )

    script = ScriptedModel([tool_call("cell", {}, id="c1"), "one", "two"])
    async with openai_server(script) as server, SessionStore(tmp_path / "s.db") as store:
        provider = OpenAIChatProvider(WireSettings(base_url=server.base_url))
        rig = Rig([], tools=[tool("cell", cell)], sessions=store)
        await rig.run(provider=provider)
        await store.flush()
        async with SessionStore(tmp_path / "s.db") as reloaded:
            history = await reloaded.history("s1")
            (node,) = await reloaded.tree("s1")
        await rig.run("more", where=scope("r2"), history=history, provider=provider)
        await provider.aclose()
    assert [child.call_id for child in node.children] == ["c1:0", "c1:1", "c1:2"]
    roles = [message["role"] for message in server.model.bodies[2]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_cancelling_in_mid_stream_ends_the_request_and_the_run(tmp_path):
    piece = {"choices": [{"index": 0, "delta": {"content": "Hal"}}]}
    script = ScriptedModel([RawStream(lines=(piece,), hold=True)])
    async with openai_server(script) as server, SessionStore(tmp_path / "s.db") as store:
        settings = WireSettings(base_url=server.base_url, stream=True)
        provider = OpenAIChatProvider(settings)
        rig = Rig([], sessions=store)

        async def go():
            await rig.run(provider=provider)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(go)
                await server.streaming.wait()
                tasks.cancel_scope.cancel()
            await server.disconnected.wait()
        await provider.aclose()
        last = (await store.events("s1"))[-1]
    assert (last.type, last.data()["status"]) == ("run_ended", "aborted")


async def test_an_endpoint_that_breaks_off_fails_the_run_and_keeps_what_was_done(tmp_path):
    script = ScriptedModel([tool_call("echo", {"v": 1}, id="c1"), RawStream(lines=(), cut=True)])
    async with openai_server(script) as server, SessionStore(tmp_path / "s.db") as store:
        settings = WireSettings(base_url=server.base_url, stream=True, max_retries=0)
        provider = OpenAIChatProvider(settings)
        result = await Rig([], sessions=store).run(provider=provider)
        await provider.aclose()
        assert len(await store.tree("s1")) == 1
        assert len(await store.history("s1")) == 3
    assert result.status == "failed"
    assert result.error.retryable


async def test_the_same_script_gives_the_same_run_streaming_or_not():
    answers = [Answer(text="Hm.", calls=(tool_call("echo", {"v": "é" * 40}, id="c1"),)), "done é"]
    seen = []
    for stream in (False, True):
        async with openai_server(ScriptedModel(answers)) as server:
            settings = WireSettings(base_url=server.base_url, stream=stream)
            provider = OpenAIChatProvider(settings)
            result = await Rig([]).run(provider=provider)
            await provider.aclose()
            seen.append((result.messages, server.model.bodies[1]["messages"]))
    assert seen[0] == seen[1]
