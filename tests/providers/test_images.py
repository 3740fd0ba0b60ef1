"""Images on every wire: what is sent over HTTP, held to the types of the official SDKs."""

import pytest
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from tests.pictures import part, png, text
from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, complete
from toolcell.protocol.messages import ImagePart, Message, ModelRequest, ToolCall

pytestmark = pytest.mark.anyio

ONE, TWO = text(png(shade=1)), text(png(shade=2))
URLS = [f"data:image/png;base64,{data}" for data in (ONE, TWO)]
TALK = (
    Message(role="user", text="what is  this?", images=(part(1, at=8), part(2))),
    Message(
        role="assistant", tool_calls=(ToolCall("c1", "see", "{}"), ToolCall("c2", "see", "{}"))
    ),
    Message(role="tool", text="seen", tool_call_id="c1", images=(part(1), part(2))),
    Message(role="tool", text="plain", tool_call_id="c2"),
    Message(role="assistant", text="A cat."),
    Message(role="user", text="sure?"),
)


async def sent(wire, *messages):
    _, server = await complete(wire, ["ok"], ModelRequest(model="m1", messages=messages))
    return server.model.bodies[0]


def held(kind, value):
    """Hold a value to a type of an SDK, every key of it known."""
    TypeAdapter(kind).validate_python(value)
    return value


async def test_chat_has_image_urls_and_owes_those_of_results_behind_the_last_result():
    """TR-06: the one message that carries them holds their calls' ids and nothing else."""
    messages = held(
        list[ChatCompletionMessageParam],
        (await sent(CHAT, *TALK))["messages"],
    )
    images = [{"type": "image_url", "image_url": {"url": url}} for url in URLS]
    assert messages[0]["content"] == [
        {"type": "text", "text": "what is "},
        images[0],
        {"type": "text", "text": " this?"},
        images[1],
    ]
    assert [each["role"] for each in messages] == [
        *("user", "assistant", "tool", "tool", "user", "assistant", "user")
    ]
    assert [each["content"] for each in messages[2:4]] == ["seen", "plain"]
    assert messages[4]["content"] == [
        {"type": "text", "text": "[image 1 of tool result c1]"},
        images[0],
        {"type": "text", "text": "[image 2 of tool result c1]"},
        images[1],
    ]
    assert messages[6]["content"] == "sure?"


async def test_chat_puts_owed_images_into_the_users_next_words():
    """No endpoint wants two messages of the user in a row."""
    messages = (await sent(CHAT, *TALK[1:4], TALK[5]))["messages"]
    assert [each["role"] for each in messages] == ["assistant", "tool", "tool", "user"]
    assert [each["type"] for each in messages[-1]["content"]] == [
        *("text", "image_url", "text", "image_url", "text")
    ]
    assert messages[-1]["content"][-1]["text"] == "sure?"


async def test_chat_puts_owed_images_last_where_nobody_spoke_yet():
    messages = (await sent(CHAT, *TALK[1:4]))["messages"]
    assert [each["role"] for each in messages] == ["assistant", "tool", "tool", "user"]


async def test_responses_has_input_images_and_results_that_are_lists():
    items = held(list[ResponseInputItemParam], (await sent(RESPONSES, *TALK))["input"])
    images = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in URLS]
    assert items[0]["content"] == [
        {"type": "input_text", "text": "what is "},
        images[0],
        {"type": "input_text", "text": " this?"},
        images[1],
    ]
    outputs = [each for each in items if each.get("type") == "function_call_output"]
    assert outputs[0]["output"] == [{"type": "input_text", "text": "seen"}, *images]
    assert outputs[1]["output"] == "plain"


async def test_anthropic_has_image_blocks_within_results():
    turns = held(list[MessageParam], (await sent(ANTHROPIC, *TALK))["messages"])
    images = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        for data in (ONE, TWO)
    ]
    assert turns[0]["content"] == [
        {"type": "text", "text": "what is "},
        images[0],
        {"type": "text", "text": " this?"},
        images[1],
    ]
    first, second = turns[2]["content"]
    assert (first["tool_use_id"], first["content"]) == (
        "c1",
        [{"type": "text", "text": "seen"}, *images],
    )
    assert second["content"] == "plain"


async def test_anthropic_sends_text_alone_of_a_failed_call():
    failed = Message(role="tool", text="no", tool_call_id="c1", is_error=True, images=(part(),))
    turns = (await sent(ANTHROPIC, TALK[1], failed))["messages"]
    assert turns[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}
    ]


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, ANTHROPIC], ids=lambda wire: wire.name)
async def test_an_image_alone_has_no_empty_text_beside_it(wire):
    body = await sent(wire, Message(role="user", images=(part(),)))
    (message,) = body.get("messages") or body["input"]
    assert len(message["content"]) == 1


def test_parts_follow_one_another_whatever_the_places_say():
    images = tuple(ImagePart(f"{n}", "image/png", at) for n, at in enumerate((2, 1, 99, None)))
    pieces = list(Message(role="user", text="abcd", images=images).parts())
    assert pieces == ["ab", images[0], images[1], "cd", images[2], images[3]]


async def test_anthropic_has_no_blank_text_between_images():
    """The wire refuses blank text."""
    blank = Message(role="user", text="a \n b", images=(part(1, at=1), part(2, at=3)))
    turns = (await sent(ANTHROPIC, blank))["messages"]
    assert [each["type"] for each in turns[0]["content"]] == ["text", "image", "image", "text"]
