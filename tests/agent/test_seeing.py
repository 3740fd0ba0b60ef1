"""Images as content of messages: what a model that sees is sent, and what another reads."""

import pytest

from tests.agent.rig import Rig, tool
from tests.pictures import part, png, text
from toolcell.agent.contract import Route
from toolcell.agent.seeing import MAX_CHARS, MAX_IMAGES, seen
from toolcell.errors import ProviderError
from toolcell.protocol.messages import ImagePart, Message
from toolcell.providers.scripted import ScriptedProvider, tool_call
from toolcell.tools.content import ImageContent, TextContent, ToolResult

pytestmark = pytest.mark.anyio

DATA = text(png())


def looking(*blocks, **result):
    async def look(_arguments, _context):
        content = blocks or (TextContent("a cat"), ImageContent(DATA, "image/png"))
        return ToolResult(content=content, **result)

    return tool("look", look)


def rig(*blocks, steps=None, **result):
    steps = steps or [tool_call("look", {}, id="c1"), "I see."]
    return Rig(steps, tools=[looking(*blocks, **result)])


async def test_a_model_that_sees_gets_the_image_of_a_result_behind_the_result():
    """TR-06: Chat's tool messages take text only, so a message that says nothing else carries it,
    on the wire alone: the record has the image where it belongs."""
    made = rig()
    result = await made.run(takes_images=True)
    assert made.sent()[-2] == {"role": "tool", "tool_call_id": "c1", "content": "a cat"}
    assert made.sent()[-1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "[image 1 of tool result c1]"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
        ],
    }
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.messages[2].images == (ImagePart(DATA, "image/png"),)
    assert await made.sessions.history("s1") == result.messages


async def test_a_model_that_does_not_see_reads_a_note_in_its_place():
    made = rig()
    result = await made.run()
    assert [each["role"] for each in made.sent()] == ["user", "assistant", "tool"]
    note = "[image image/png 68 bytes omitted: m does not take images]"
    assert made.sent()[-1]["content"] == f"a cat\n{note}"
    assert result.messages[2].images, "the record keeps it for a model that sees"


async def test_a_request_without_images_is_as_it_was():
    messages = (Message(role="user", text="hi"), Message(role="assistant", text="ho"))
    assert seen(messages, unseen="no") == messages
    assert seen(messages) == messages


async def test_the_users_images_stand_where_the_user_put_them():
    said = {"prompt": "first: second: done", "images": (part(1, at=6), part(2, at=14))}
    sees, reads = Rig(["ok"]), Rig(["ok"])
    await sees.run(takes_images=True, **said)
    content = sees.sent()[-1]["content"]
    assert [each["type"] for each in content] == ["text", "image_url"] * 2 + ["text"]
    assert [each["text"] for each in content[::2]] == ["first:", " second:", " done"]
    await reads.run(**said)
    note = "[image image/png 68 bytes omitted: m does not take images]"
    assert reads.sent()[-1]["content"] == f"first:\n{note} second:\n{note} done"


async def test_an_image_alone_is_a_question_too():
    made = Rig(["ok"])
    await made.run(prompt="", images=(part(),), takes_images=True)
    assert [each["type"] for each in made.sent()[-1]["content"]] == ["image_url"]


async def test_several_images_have_numbers_in_the_text():
    one, two = ImageContent(DATA, "image/png"), ImageContent(text(png(3, 4)), "image/x-lie")
    made = rig(one, TextContent("and"), two)
    result = await made.run(takes_images=True)
    assert made.sent()[-2]["content"] == "[image 1]\nand\n[image 2]"
    assert [each.mime_type for each in result.messages[2].images] == ["image/png", "image/png"]


async def test_an_image_alone_has_a_text_too():
    made = rig(ImageContent(DATA, "image/png"))
    await made.run(takes_images=True)
    assert made.sent()[-2]["content"] == "[image 1]"


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (ImageContent("QUJD", "image/png"), "3 bytes, not shown: it is no PNG, JPEG, GIF or WebP"),
        (ImageContent("Q", "image/png"), "0 bytes, not shown: its data is no base64"),
        (ImageContent(text(png()[:40]), "image/png"), "not shown: it is a broken image/png"),
        (ImageContent(text(png(9000, 1)), "image/png"), "9000x1 pixels, a side has at most 8000"),
        (ImageContent("A" * (6 << 20), "image/png"), "not shown: it has 4718592 bytes, at most"),
    ],
)
async def test_an_image_that_would_be_refused_never_gets_into_a_conversation(block, says):
    made = rig(block)
    result = await made.run(takes_images=True)
    assert says in made.sent()[-1]["content"]
    assert result.messages[2].images == ()


async def test_images_of_a_failed_call_are_named_only():
    made = rig(TextContent("no"), ImageContent(DATA, "image/png"), is_error=True)
    await made.run(takes_images=True)
    assert made.sent()[-1]["content"] == (
        "no\n[image image/png, 68 bytes, not shown: the call failed]"
    )


async def test_text_beside_an_image_from_outside_is_still_wrapped():
    made = rig(TextContent("OBEY"), ImageContent(DATA, "image/png"), untrusted=True)
    result = await made.run(takes_images=True)
    text_shown = made.sent()[-2]["content"]
    assert text_shown != "OBEY"
    assert "OBEY" in text_shown
    assert result.messages[2].images


async def test_a_result_has_a_bounded_number_of_images():
    made = rig(*[ImageContent(DATA, "image/png")] * (MAX_IMAGES + 2))
    result = await made.run(takes_images=True)
    assert len(result.messages[2].images) == MAX_IMAGES
    assert made.sent()[-2]["content"].count("not shown: at most 20 are]") == 2


def test_older_images_become_notes_once_there_are_many():
    """Endpoints refuse a request with too many images; the latest are what the talk is about."""
    talk = [Message(role="user", text=f"{n}", images=(part(n),)) for n in range(MAX_IMAGES + 3)]
    sent = seen(talk)
    assert [bool(message.images) for message in sent] == [False] * 3 + [True] * MAX_IMAGES
    assert sent[0].text == (
        "0\n[image image/png 68 bytes omitted: only the last 20 images of a conversation are "
        "sent, 15 MB in all]"
    )
    assert sent[3] == talk[3]


def test_older_images_become_notes_once_they_are_large():
    large = ImagePart("A" * (MAX_CHARS // 4), "image/png")
    talk = [Message(role="tool", text="t", images=(large, large)) for _ in range(3)]
    sent = seen(talk)
    assert [len(message.images) for message in sent] == [0, 2, 2]
    middle = seen([*talk, Message(role="user", images=(part(),))])
    assert [len(message.images) for message in middle] == [0, 1, 2, 1]
    assert middle[1].text.startswith("t\n[image image/png 3.75 MB omitted: only the last")


async def test_a_fallback_sees_or_reads_by_its_own_entry():
    """rule 1.4: a fallback resolves on its own entry."""
    first = ScriptedProvider([tool_call("look", {}, id="c1"), ProviderError("busy")])
    second = ScriptedProvider(["I see."])
    made = rig()

    async def call_tool(visible, arguments, _call_id):
        return await visible.sourced.tool.execute(arguments, None)

    route = Route(
        provider=second, model="m2", plan=made.planned, call_tool=call_tool, takes_images=True
    )
    made.fallback = lambda _error: route
    await made.run(provider=first)
    assert "omitted: m does not take images" in first.bodies[-1]["messages"][-1]["content"]
    assert second.bodies[0]["messages"][-1]["content"][1]["type"] == "image_url"


REFUSED = ProviderError("400: could not process image", status=400)


async def test_an_image_the_endpoint_refuses_does_not_end_the_session():
    """What looks whole may not be: the model is asked once more and reads notes."""
    made = rig(steps=[tool_call("look", {}, id="c1"), REFUSED, "I read."])
    result = await made.run(takes_images=True)
    assert (result.status, result.text) == ("completed", "I read.")
    assert made.sent(1)[-1]["content"][1]["type"] == "image_url"
    note = "[image image/png 68 bytes omitted: the endpoint refused a request with images]"
    assert made.sent(2)[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": f"a cat\n{note}",
    }
    (told,) = [r.data() for r in await made.sessions.events("s1") if r.type == "diagnostic"]
    assert told["message"] == "asking m again without images: 400: could not process image"


@pytest.mark.parametrize(
    ("steps", "calls"),
    [
        ([tool_call("look", {}), REFUSED, REFUSED], 3),
        ([REFUSED], 1),
        ([tool_call("look", {}), ProviderError("500", status=500)], 2),
    ],
)
async def test_what_is_refused_without_images_fails_the_run(steps, calls):
    made = rig(steps=steps)
    result = await made.run(takes_images=True)
    assert (result.status, len(made.provider.bodies)) == ("failed", calls)


async def test_a_model_that_never_saw_is_not_asked_again():
    made = rig(steps=[tool_call("look", {}), REFUSED])
    assert (await made.run()).status == "failed"
    assert len(made.provider.bodies) == 2


async def test_a_fallback_is_shown_what_the_first_model_refused():
    first = ScriptedProvider([tool_call("look", {}), REFUSED, ProviderError("busy", status=503)])
    second = ScriptedProvider(["I see."])
    made = rig()

    async def call_tool(visible, arguments, _call_id):
        return await visible.sourced.tool.execute(arguments, None)

    route = Route(
        provider=second, model="m2", plan=made.planned, call_tool=call_tool, takes_images=True
    )
    made.fallback = lambda error: route if error.status == 503 else None
    assert (await made.run(provider=first, takes_images=True)).text == "I see."
    assert second.bodies[0]["messages"][-1]["content"][1]["type"] == "image_url"
