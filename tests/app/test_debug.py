"""The debug variables, with a real runtime over real HTTP."""

import json
from contextlib import asynccontextmanager

import pytest

from tests.pictures import png, text
from toolcell.app.conversation import Turn, converse
from toolcell.app.debug import MAX_SNAPSHOT_BYTES, _without_images
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.env import DebugSwitches, debug_switches
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError
from toolcell.protocol.messages import ImagePart
from toolcell.providers.scripted import tool_call
from toolcell.sessions.memory import MemorySessions
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Answer, Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

CANARY = "S3CR3T-CANARY-0001"
NAMES = ("CODE_MODE", "MODEL_TRANSPORT", "MODEL_PAYLOAD", "SSE")


def look_up(key: str) -> str:
    """Look something up."""
    if key == "boom":
        message = f"no {CANARY} here"
        raise ValueError(message)
    return f"{key} is {CANARY}"


@pytest.fixture
def debugging(monkeypatch, capsys):
    for name in NAMES:
        monkeypatch.delenv(f"OPENCLAW_DEBUG_{name}", raising=False)

    @asynccontextmanager
    async def running(steps, *, prompt="go", hosted=None, images=(), **variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"OPENCLAW_DEBUG_{name}", value)
        async with openai_server(ScriptedModel(steps)) as server:
            provider = {"baseUrl": server.base_url, "apiKey": CANARY}
            row = {"id": "m", "options": hosted or {}, "input": ["text", "image"]}
            provider["models"] = [row] if hosted or images else []
            config = parse_config(
                {
                    "models": {"providers": {"v": provider}},
                    "agents": {"defaults": {"model": "v/m"}},
                    "tools": {"codeMode": {"enabled": True, "executor": "quickjs"}},
                }
            )
            runtime = Runtime(config, Parts(tools=[look_up], load_plugins=False), Host())
            await runtime.start()
            scope = runtime.scope()
            turn = Turn(scope=scope, prompt=prompt, images=images)
            result = await converse(runtime, MemorySessions(), turn, on_text=lambda _: None)
            await runtime.aclose()
        lines = capsys.readouterr().err.splitlines()
        yield result, [line for line in lines if line.startswith("toolcell.debug: ")]

    return running


CELL = tool_call("exec", {"code": "text(await look_up({key: 'a'})); return look_up({key: 'boom'})"})


async def test_nothing_is_logged_unless_it_is_asked_for(debugging):
    """rule 12.1"""
    async with debugging(["ok"]) as (result, lines):
        assert result.status == "completed"
        assert lines == []


async def test_the_tools_of_an_active_run_are_exec_and_wait(debugging):
    """rule 12.1: one line each; the tool names are `exec` and `wait` when active."""
    steps = [Refusal(status=503, headers={"retry-after-ms": "1"}), CELL, "done"]
    variables = {"CODE_MODE": "1", "MODEL_TRANSPORT": "1", "MODEL_PAYLOAD": "tools"}
    async with debugging(steps, **variables) as (_, lines):
        text = "\n".join(lines)
    assert text.count("model.transport v/m sent=") == 3
    assert text.count("model.payload v/m tools=exec,wait") == 3
    assert "model.transport v/m status=503" in text
    assert "attempt=2 tools=exec,wait" in text
    assert "code-mode" in text
    assert "model=m tools=exec,wait" in text
    assert "started executor=quickjs" in text
    assert "tool=openclaw:core:look_up" in text
    assert CANARY not in text
    assert "key: 'a'" not in text


async def test_full_payloads_are_redacted_and_capped(debugging):
    """rule 12.1, SE-08: keys, tokens and configured secrets are masked before the cut."""
    other = "sk-abcdefghijklmnopqrstu"
    prompt = f"use {CANARY} and {other}; password = 'hunter22'" + " and so on" * 20_000
    async with debugging([CELL, "done"], prompt=prompt, MODEL_PAYLOAD="full-redacted") as (
        _,
        lines,
    ):
        assert len(lines) == 2
    for line in lines:
        assert '"name":"exec"' in line or "[cut:" in line
        assert len(line) < MAX_SNAPSHOT_BYTES + 300
        assert "password = '[redacted]'" in line
        for secret in (CANARY, other, "hunter22"):
            assert secret not in line


async def test_stream_events_are_named_or_shown_without_words(debugging):
    """rule 12.1: peek shows the first five redacted events."""
    steps = [Answer(text=f"It says {CANARY} " * 3, piece=4)]
    async with debugging(steps, SSE="events") as (_, lines):
        assert len(lines) > 10
        assert all("model.sse v/m event=" in line for line in lines)
        assert not any("{" in line for line in lines)
    async with debugging(steps, SSE="peek") as (_, lines):
        assert len(lines) == 5
        assert '"content":"<4 chars>"' in lines[1]
        assert "S3CR" not in "".join(lines)
        json.loads(lines[1].partition("event=2 ")[2])


async def test_tools_that_did_not_pass_are_named(debugging):
    """BEHAVIOURS 40, rule 2.6: `client:<name>` and `hosted:<type>`."""
    hosted = {"web_search_options": {}}
    async with debugging(["never"], hosted=hosted, MODEL_PAYLOAD="tools") as (result, lines):
        assert result.status == "failed"
        assert "refused, not sent: hosted:web_search_options" in lines[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("CODE_MODE", "loud"), ("MODEL_PAYLOAD", "everything"), ("SSE", "1")],
)
async def test_a_value_that_means_nothing_is_an_error(name, value):
    """rule 12.1"""
    with pytest.raises(ConfigError, match=f"OPENCLAW_DEBUG_{name}.*{value}"):
        debug_switches({f"OPENCLAW_DEBUG_{name}": value})


async def test_switches_are_read_from_the_environment():
    """rule 12.1"""
    assert not debug_switches({}).any
    assert debug_switches(
        {
            "OPENCLAW_DEBUG_CODE_MODE": "1",
            "OPENCLAW_DEBUG_MODEL_TRANSPORT": "0",
            "OPENCLAW_DEBUG_MODEL_PAYLOAD": "full-redacted",
            "OPENCLAW_DEBUG_SSE": "peek",
        }
    ) == DebugSwitches(code_mode=True, payload="full-redacted", sse="peek")


async def test_a_payload_has_images_by_their_length(debugging):
    """rule 12.1: the lines are for people, and the bound is spent on what they can read."""
    data = text(png(extra=bytes(200_000)))
    seen = (ImagePart(data, "image/png"),)
    async with debugging(["ok"], images=seen, MODEL_PAYLOAD="full-redacted") as (_, lines):
        (line,) = [each for each in lines if "model.payload" in each]
    assert f'"url":"data:image/png;base64,<{len(data)} chars>"' in line
    assert len(line) < 5000
    assert '"text":"go"' in line


def test_images_of_the_anthropic_wire_are_told_by_their_length_too():
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD" * 100}
    body = {"messages": [{"content": [{"type": "image", "source": source}]}], "model": "m"}
    shown = _without_images(body)
    assert shown["messages"][0]["content"][0]["source"]["data"] == "<400 chars>"
    assert shown["model"] == "m"
