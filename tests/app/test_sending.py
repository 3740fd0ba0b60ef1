"""`sessions_send` begins real runs in other sessions (DESIGN knot 2; rule 7.4, rule 8.1)."""

import anyio
import pytest

from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import ProviderError
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.sessions.memory import MemorySessions

pytestmark = pytest.mark.anyio


def send(**arguments):
    return tool_call("sessions_send", {"sessionId": "helper", "message": "count", **arguments})


@pytest.fixture
async def talk(tmp_path):
    config = parse_config({"agents": {"defaults": {"model": "scripted/m"}}})
    sessions = MemorySessions()
    parts = Parts(workspace=tmp_path, sessions=sessions, sinks=(sessions,), load_plugins=False)
    runtime = Runtime(config, parts, Host())
    await runtime.start()

    async def ask(session, steps):
        runtime.providers.add("scripted", ScriptedProvider(steps))
        with anyio.fail_after(20):
            return await converse(
                runtime, sessions, Turn(scope=runtime.scope(session_id=session), prompt="go")
            )

    ask.sessions = sessions
    try:
        yield ask
    finally:
        await runtime.aclose()


async def test_a_session_asks_another_and_reads_its_answer(talk):
    await talk("helper", ["ready"])
    result = await talk("boss", [send(), "forty-two", "it said forty-two"])
    assert result.text == "it said forty-two"
    (call,) = await talk.sessions.tree("boss")
    assert call.tool_name == "sessions_send"
    assert call.result["status"] == "replied"
    assert call.result["reply"] == "forty-two"
    there = await talk.sessions.history("helper")
    assert [message.text for message in there] == ["go", "ready", "count", "forty-two"]


async def test_a_run_that_answers_a_message_cannot_pass_it_on(talk):
    """No loop: what one session sends is answered, and goes no further."""
    await talk("helper", ["ready"])
    await talk("third", ["ready"])
    onward = tool_call("sessions_send", {"sessionId": "third", "message": "psst"})
    await talk("boss", [send(), onward, "I could not", "done"])
    calls = await talk.sessions.tree("helper")
    assert [(c.tool_name, c.status) for c in calls] == [("sessions_send", "failed")]
    assert "cannot send one" in calls[0].error
    assert len(await talk.sessions.history("third")) == 2


async def test_a_run_that_fails_there_is_told_here(talk):
    await talk("helper", ["ready"])
    for wrong, why in ((ProviderError("model is down"), "model is down"), (broken, "broke off")):
        await talk("boss", [send(), wrong, "done"])
        call = (await talk.sessions.tree("boss"))[-1]
        assert call.result["status"] == "failed"
        assert why in call.result["error"]


def broken(_request):
    raise ZeroDivisionError


async def test_a_session_answers_one_message_at_a_time(talk):
    await talk("helper", ["ready"])
    calls = [send(waitMs=5000), send(waitMs=5000)]
    await talk("boss", [calls, "one", "done"])
    results = [(c.status, c.error) for c in await talk.sessions.tree("boss")]
    assert sorted(status for status, _ in results) == ["completed", "failed"]
    assert any("answering another message" in (error or "") for _, error in results)
