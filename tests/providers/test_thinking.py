"""Thinking on the Anthropic wire: asked for, kept, and handed back in its place."""

import json
from dataclasses import replace

import pytest
from anthropic.types import MessageParam, OutputConfigParam, ThinkingConfigParam
from pydantic import TypeAdapter

from tests.providers.wires import ANTHROPIC, ASK, complete
from toolcell.protocol.messages import Message, ModelRequest, Reasoning, ToolCall
from toolcell.providers.anthropic_body import DEFAULT_MAX_TOKENS, messages_body
from toolcell.providers.request_options import options_for
from toolcell.testing.scripted_model import Answer, RawBody

pytestmark = pytest.mark.anyio

CALL = ToolCall("c1", "exec", '{"code":"1"}')
LEVELS = ["minimal", "low", "medium", "high", "xhigh", "max"]


def body(options, *messages):
    made = messages_body(
        ModelRequest(
            model="m", messages=messages or (Message(role="user", text="hi"),), options=options
        )
    )
    if "thinking" in made:
        TypeAdapter(ThinkingConfigParam).validate_python(made["thinking"])
    if "output_config" in made:
        TypeAdapter(OutputConfigParam).validate_python(made["output_config"])
    return made


def asked(level, **more):
    return options_for("anthropic", {"reasoning_effort": level, **more.pop("given", {})}, **more)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_an_effort_of_adaptive_thinking(level):
    made = body(asked(level))
    assert made["thinking"] == {"type": "adaptive"}
    assert made["output_config"] == {"effort": "low" if level == "minimal" else level}
    assert made["max_tokens"] > DEFAULT_MAX_TOKENS, "thinking counts towards it"


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_a_budget_where_the_model_wants_one(level):
    made = body(asked(level, thinking="budget"))
    budget = made["thinking"]["budget_tokens"]
    assert made["thinking"]["type"] == "enabled"
    assert budget >= 1024
    assert made["max_tokens"] == DEFAULT_MAX_TOKENS + budget
    assert "output_config" not in made


@pytest.mark.parametrize("style", ["adaptive", "budget"])
def test_off_is_off(style):
    made = body(asked("none", thinking=style))
    assert (made["thinking"], made["max_tokens"]) == ({"type": "disabled"}, DEFAULT_MAX_TOKENS)


def test_a_budget_leaves_room_below_a_bound_that_somebody_set():
    of_client = body(asked("high", thinking="budget", given={"max_tokens": 4000}))
    assert (of_client["max_tokens"], of_client["thinking"]["budget_tokens"]) == (4000, 2976)
    configured = {"max_tokens": 6000}
    options = {**configured, **asked("high", thinking="budget", configured=configured)}
    assert (body(options)["max_tokens"], body(options)["thinking"]["budget_tokens"]) == (6000, 4976)


def test_where_there_is_no_room_for_the_smallest_budget_nothing_is_thought():
    made = body(asked("high", thinking="budget", given={"max_tokens": 2047}))
    assert (made["max_tokens"], made["thinking"]) == (2047, {"type": "disabled"})
    assert body(asked("high", thinking="budget", given={"max_tokens": 2048}))["thinking"] == {
        "type": "enabled",
        "budget_tokens": 1024,
    }


@pytest.mark.parametrize("style", ["adaptive", "budget"])
def test_what_the_wire_refuses_beside_thinking_is_left_out(style):
    sampled = {"temperature": 0.5, "top_p": 0.5}
    on = body({**asked("low", thinking=style, given=sampled), "top_k": 3})
    assert not {"temperature", "top_p", "top_k"} & on.keys()
    off = body(asked("none", thinking=style, given=sampled))
    assert (off["temperature"], off["top_p"]) == (0.5, 0.5)


def test_an_effort_leaves_the_rest_of_the_configured_output_alone():
    shape = {"type": "json_schema", "schema": {}}
    configured = {"output_config": {"format": shape, "effort": "max"}}
    options = {**configured, **asked("low", configured=configured)}
    assert body(options)["output_config"] == {"format": shape, "effort": "low"}


def test_other_wires_know_nothing_of_it():
    given = {"reasoning_effort": "low"}
    assert options_for("openai-chat", given, thinking="budget") == given
    assert options_for("openai-responses", given)["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("stream", [False, True])
async def test_thinking_goes_back_with_the_calls_it_led_to(stream):
    """The endpoint refuses results whose calls come back without their signed thinking."""
    thought = Answer(text="Look.", thinking="Let me see what there is.", calls=(CALL,))
    reply, _ = await complete(ANTHROPIC, [thought], stream=stream)
    assert reply.message.reasoning == Reasoning(
        "anthropic",
        (
            {
                "type": "thinking",
                "thinking": "Let me see what there is.",
                "signature": "signed:25",
            },
        ),
    )
    result = Message(role="tool", text="2", tool_call_id="c1")
    going_on = replace(
        ASK,
        messages=(*ASK.messages, reply.message, result),
        options=options_for("anthropic", {"reasoning_effort": "low"}, thinking="budget"),
    )
    _, server = await complete(ANTHROPIC, ["ok"], going_on)
    made = server.model.bodies[0]
    assert made["thinking"]["type"] == "enabled"
    turns = made["messages"]
    TypeAdapter(list[MessageParam]).validate_python(turns)
    assert [block["type"] for block in turns[1]["content"]] == ["thinking", "text", "tool_use"]
    assert turns[1]["content"][0] == dict(reply.message.reasoning.items[0])


def thinking(text):
    return {"type": "thinking", "thinking": text, "signature": f"s-{text}"}


BLOCKS = [
    thinking("a"),
    {"type": "text", "text": "one "},
    {"type": "redacted_thinking", "data": "zz"},
    {"type": "tool_use", "id": "c1", "name": "see", "input": {}},
    thinking("b"),
    {"type": "text", "text": "two"},
    {"type": "tool_use", "id": "c2", "name": "see", "input": {"v": 1}},
]


async def interleaved():
    answer = {"type": "message", "content": BLOCKS, "stop_reason": "tool_use", "usage": {}}
    reply, _ = await complete(ANTHROPIC, [RawBody(body=json.dumps(answer))], stream=False)
    return reply.message


async def test_thinking_between_text_and_calls_goes_back_between_them():
    message = await interleaved()
    assert message.text == "one two"
    assert body({}, Message(role="user", text="x"), message)["messages"][1]["content"] == BLOCKS


async def test_ids_of_our_own_and_masked_text_do_not_disturb_the_order():
    message = await interleaved()
    calls = tuple(replace(call, id=f"own-{call.id}") for call in message.tool_calls)
    changed = replace(message, tool_calls=calls, text="one [redacted]")
    blocks = body({}, Message(role="user", text="x"), changed)["messages"][1]["content"]
    assert [block["type"] for block in blocks] == [block["type"] for block in BLOCKS]
    assert (blocks[3]["id"], blocks[6]["id"]) == ("own-c1", "own-c2")
    assert blocks[1]["text"] + blocks[5]["text"] == "one [redacted]"
    shorter = replace(changed, text="one")
    left = body({}, Message(role="user", text="x"), shorter)["messages"][1]["content"]
    assert [b["text"] for b in left if b["type"] == "text"] == ["one"]
    assert [b["type"] for b in left if b["type"] != "text"] == [
        b["type"] for b in BLOCKS if b["type"] != "text"
    ]


def turn(*, thought):
    kept = Reasoning("anthropic", (thinking("a"),)) if thought else None
    return (
        Message(role="user", text="go"),
        Message(role="assistant", tool_calls=(CALL,), reasoning=kept),
        Message(role="tool", text="2", tool_call_id="c1"),
        Message(role="assistant", tool_calls=(replace(CALL, id="c2"),)),
        Message(role="tool", text="3", tool_call_id="c2"),
    )


def test_a_turn_that_another_model_began_ends_without_a_budget():
    """A fallback may take over in mid-turn; the endpoint wants the turn to begin with thinking."""
    options = asked("low", thinking="budget")
    assert body(options, *turn(thought=True))["thinking"]["type"] == "enabled"
    began = body(options, *turn(thought=False))
    assert ("thinking" in began, began["max_tokens"]) == (False, DEFAULT_MAX_TOKENS)
    later = (*turn(thought=False), Message(role="user", text="and?"))
    assert body(options, *later)["thinking"]["type"] == "enabled"
    assert body(asked("low"), *turn(thought=False))["thinking"] == {"type": "adaptive"}
