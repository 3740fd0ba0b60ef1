"""Models that stand in for one that cannot answer, over real HTTP."""

from contextlib import asynccontextmanager

import anyio
import pytest

from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, RawStream, Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

BUSY = Refusal(status=503, headers={"retry-after-ms": "1", "x-should-retry": "false"})


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@asynccontextmanager
async def two_models(first, second, *, fallbacks=("b/backup",), **more):
    """A first model and its stand-in, which has another wire; code mode is on for the first."""
    async with (
        openai_server(ScriptedModel(first)) as one,
        openai_server(ScriptedModel(second)) as two,
    ):
        providers = {
            "a": {"baseUrl": one.base_url},
            "b": {"api": "anthropic", "baseUrl": two.root_url, **more},
        }
        models = {"a/main": {"codeMode": True}, "b/backup": {"codeMode": False}}
        defaults = {"model": "a/main", "fallbacks": list(fallbacks), "models": models}
        config = parse_config(
            {
                "models": {"providers": providers},
                "agents": {"defaults": defaults},
                "tools": {"codeMode": {"executor": "quickjs"}},
            }
        )
        sessions = MemorySessions()
        parts = Parts(tools=[add], sinks=(sessions,), load_plugins=False)
        runtime = Runtime(config, parts, Host())
        await runtime.start()

        async def ask(**options):
            scope = runtime.scope(session_id="s1")
            with anyio.fail_after(30):
                return await converse(runtime, sessions, Turn(scope=scope, prompt="go"), **options)

        try:
            yield ask, one.model, two.model, sessions
        finally:
            await runtime.aclose()


def shown(body):
    return [tool.get("function", tool)["name"] for tool in body["tools"]]


async def test_a_fallback_resolves_code_mode_on_its_own_row():
    """rule 1.4: the first model has exec and wait, its stand-in the tools themselves; CF-01."""
    async with two_models([BUSY], ["here"]) as (ask, one, two, sessions):
        result = await ask()
        assert (result.status, result.text) == ("completed", "here")
        assert shown(one.bodies[0]) == ["exec", "wait"]
        assert shown(two.bodies[0]) == ["add"]
        (note,) = [r.data() for r in await sessions.events("s1") if r.type == "diagnostic"]
        assert "a/main cannot answer, going on with b/backup" in note["message"]


async def test_what_was_done_before_a_fallback_is_not_done_again():
    """The stand-in gets the whole conversation, calls and answers included."""
    cell = tool_call("exec", {"code": "return await add({a: 1, b: 2})"}, id="c1")
    async with two_models([cell, BUSY], ["three"]) as (ask, one, two, sessions):
        result = await ask()
        assert result.text == "three"
        assert len(one.bodies) == 2
        use, answer = two.bodies[0]["messages"][1:]
        assert use["content"][0]["name"] == "exec"
        assert '"value":3' in answer["content"][0]["content"]
        calls = [n.tool_name for n in await sessions.tree("s1")]
        assert calls == ["exec"]


@pytest.mark.parametrize("status", [401, 403, 404, 429])
async def test_refusals_another_endpoint_may_not_share_are_tried_elsewhere(status):
    refusal = Refusal(status=status, headers={"x-should-retry": "false"})
    async with two_models([refusal], ["here"]) as (ask, _, _, _):
        assert (await ask()).text == "here"


async def test_a_request_that_is_wrong_anywhere_fails_at_once():
    async with two_models([Refusal(status=400)], ["never"]) as (ask, _, two, _):
        result = await ask()
        assert result.status == "failed"
        assert "answered 400" in result.error.message
        assert two.bodies == []


async def test_the_last_failure_is_told_when_no_model_answers():
    async with two_models([BUSY], [BUSY]) as (ask, _, two, _):
        result = await ask()
        assert result.status == "failed"
        assert "503" in result.error.message
        assert len(two.bodies) == 1


async def test_words_already_passed_on_are_not_said_twice():
    """A stream that breaks after its first words ends the run: a listener cannot unhear them."""
    begun = {"choices": [{"index": 0, "delta": {"content": "Hal"}}]}
    heard: list[str] = []
    async with two_models([RawStream(lines=(begun,))], ["never"]) as (ask, _, two, _):
        result = await ask(on_text=heard.append)
        assert result.status == "failed"
        assert heard == ["Hal"]
        assert two.bodies == []


async def test_an_unknown_fallback_is_a_config_error():
    async with two_models([BUSY], [], fallbacks=("nope/m",)) as (ask, _, _, _):
        with pytest.raises(ConfigError, match=r"models\.providers\.nope"):
            await ask()


async def test_options_of_a_model_go_with_its_requests_only():
    rows = [{"id": "backup", "options": {"max_tokens": 77, "temperature": 0.5}}]
    async with two_models([BUSY], [Answer(text="ok")], models=rows) as (ask, one, two, _):
        assert (await ask()).text == "ok"
        assert (two.bodies[0]["max_tokens"], two.bodies[0]["temperature"]) == (77, 0.5)
        assert "temperature" not in one.bodies[0]
