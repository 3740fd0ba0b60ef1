"""A level of thinking reaches the Anthropic wire, from a caller or a child agent (rule 11.1)."""

from contextlib import asynccontextmanager

import anyio
import pytest

from toolcell.app.conversation import Turn, converse
from toolcell.app.host import Host
from toolcell.app.routes import RunExtras
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

HIGH = RunExtras(options={"reasoning_effort": "high"})
BUSY = Refusal(status=503, headers={"retry-after-ms": "1", "x-should-retry": "false"})
THOUGHT = {"type": "thinking", "thinking": "One and two.", "signature": "signed:12"}


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def adding(number):
    call = tool_call("add", {"a": 1, "b": 2}, id=f"c{number}")
    return Answer(thinking="One and two.", calls=(call,))


@asynccontextmanager
async def agent(claude, other=(), *, row=None, model="claude/m", tools=None):
    async with (
        openai_server(ScriptedModel(claude)) as one,
        openai_server(ScriptedModel(other)) as two,
    ):
        config = parse_config(
            {
                "models": {
                    "providers": {
                        "claude": {
                            "api": "anthropic",
                            "baseUrl": one.root_url,
                            "models": [{"id": "m", **(row or {})}],
                        },
                        "other": {"baseUrl": two.base_url},
                    }
                },
                "agents": {"defaults": {"model": model, "fallbacks": ["claude/m"]}},
                "tools": tools or {},
            }
        )
        sessions = MemorySessions()
        parts = Parts(tools=[add], sinks=(sessions,), load_plugins=False)
        runtime = Runtime(config, parts, Host())
        await runtime.start()

        async def ask(prompt="go", extras=HIGH):
            scope = runtime.scope(session_id="s1")
            with anyio.fail_after(30):
                return await converse(
                    runtime, sessions, Turn(scope=scope, prompt=prompt, extras=extras)
                )

        try:
            yield ask, one.model
        finally:
            await runtime.aclose()


async def test_thinking_stays_with_its_calls_through_the_run_and_the_session():
    async with agent([adding(1), adding(2), "3", "yes"]) as (ask, model):
        assert (await ask()).text == "3"
        await ask("sure?")
        first, second, third, later = model.bodies
        assert first["thinking"] == {"type": "adaptive"}
        assert first["output_config"] == {"effort": "high"}
        for body, count in ((second, 1), (third, 2), (later, 2)):
            turns = [each for each in body["messages"] if each["role"] == "assistant"][:count]
            assert [turn["content"][0] for turn in turns] == [THOUGHT] * count
            assert [turn["content"][1]["type"] for turn in turns] == ["tool_use"] * count


async def test_a_model_may_want_a_budget():
    async with agent(["ok"], row={"compat": {"thinking": "budget"}}) as (ask, model):
        await ask()
        (body,) = model.bodies
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 16_384}
        assert body["max_tokens"] > 16_384


async def test_a_budget_fits_into_what_the_operator_allows():
    row = {"compat": {"thinking": "budget"}, "options": {"max_tokens": 3000, "temperature": 0.2}}
    async with agent(["ok"], row=row) as (ask, model):
        await ask()
        (body,) = model.bodies
        assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (3000, 1976)
        assert "temperature" not in body


async def test_nobody_thinks_unless_asked():
    async with agent(["ok"]) as (ask, model):
        await ask(extras=RunExtras())
        assert not {"thinking", "output_config"} & model.bodies[0].keys()


async def test_a_fallback_in_mid_turn_goes_on_without_a_budget():
    """The wire refuses a turn with a budget whose first call carries no signed thinking."""
    begun = tool_call("add", {"a": 1, "b": 2}, id="c1")
    row = {"compat": {"thinking": "budget"}}
    async with agent(["3", "yes"], [begun, BUSY], row=row, model="other/m") as (ask, model):
        assert (await ask()).text == "3"
        assert "thinking" not in model.bodies[0]


async def test_a_childs_thinking_reaches_the_wire():
    """rule 11.1: the option `thinking`."""
    cell = tool_call("exec", {"code": 'return agents.run("think", {thinking: "medium"})'}, id="c1")
    tools = {"codeMode": {"enabled": True, "executor": "quickjs"}, "swarm": {"enabled": True}}
    async with agent([cell, "thought", "done"], tools=tools) as (ask, model):
        assert (await ask(extras=RunExtras())).text == "done"
        parent, child, _ = model.bodies
        assert "thinking" not in parent
        assert child["thinking"] == {"type": "adaptive"}
        assert child["output_config"] == {"effort": "medium"}


def test_another_way_to_think_is_a_config_error():
    row = {"id": "m", "compat": {"thinking": "hard"}}
    with pytest.raises(ConfigError, match="thinking"):
        parse_config({"models": {"providers": {"a": {"models": [row]}}}})
