"""Images of clients, through the official client over a real socket (issue part 4)."""

import json

import openai
import pytest

from tests.gateway.kit import QUICKJS, config, gateway
from tests.pictures import png, text, url
from toolcell.agent.seeing import MAX_IMAGES
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio

SEES = {"providers": {"scripted": {"models": [{"id": "m", "input": ["text", "image"]}]}}}
PICTURE = {"type": "image_url", "image_url": {"url": url(), "detail": "low"}}
INPUT = {"type": "input_image", "image_url": url(), "detail": "auto"}
NOTE = "[image image/png 68 bytes omitted: m does not take images]"


def words(said):
    return {"type": "text", "text": said}


def asking(*parts):
    return [{"role": "user", "content": list(parts)}]


async def test_an_image_of_a_chat_request_reaches_a_model_that_sees(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["a cat"]) as g:
        messages = asking(words("what is "), PICTURE, words(" this?"))
        got = await g.openai.chat.completions.create(model="main", messages=messages)
        assert got.choices[0].message.content == "a cat"
        assert g.sent()["messages"] == asking(
            words("what is "),
            {"type": "image_url", "image_url": {"url": url()}},
            words(" this?"),
        )


async def test_an_image_of_a_responses_input_reaches_a_model_that_sees(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["a cat", "yes"]) as g:
        content = [{"type": "input_text", "text": "what?"}, INPUT]
        first = await g.openai.responses.create(
            model="main", input=[{"role": "user", "content": content}]
        )
        again = await g.openai.responses.create(
            model="main", input="sure?", previous_response_id=first.id
        )
        assert (first.output_text, again.output_text) == ("a cat", "yes")
        asked = [words("what?"), {"type": "image_url", "image_url": {"url": url()}}]
        assert g.sent()["messages"][0]["content"] == asked, "the session keeps it"


async def test_images_of_a_run_reach_a_model_that_sees_and_are_kept(tmp_path):
    """`POST /api/runs` takes what the wires take; the next run of the session has them too."""
    two = [url(), url(png(3, 3), kind="image/jpeg")]
    async with gateway(config(tmp_path, models=SEES), ["a cat", "two"]) as g:
        body = {"prompt": "what?", "images": two, "session": "s1"}
        run = (await g.post("/api/runs", body)).json()
        done = (await g.get(f"/api/runs/{run['id']}", params={"wait": 20})).json()
        assert (done["status"], done["text"]) == ("completed", "a cat")
        asked = [
            words("what?"),
            {"type": "image_url", "image_url": {"url": url()}},
            {"type": "image_url", "image_url": {"url": url(png(3, 3))}},
        ]
        assert g.sent()["messages"][0]["content"] == asked
        again = (await g.post("/api/runs", {"prompt": "how many?", "session": "s1"})).json()
        await g.get(f"/api/runs/{again['id']}", params={"wait": 20})
        assert g.sent()["messages"][0]["content"] == asked
        kept = (await g.get("/api/sessions/s1/messages")).json()["messages"]
        assert [each["mimeType"] for each in kept[0]["images"]] == ["image/png"] * 2


async def test_a_run_of_a_model_that_does_not_see_reads_that_there_is_an_image(tmp_path):
    async with gateway(config(tmp_path), ["no"]) as g:
        run = (await g.post(*run_of(url()))).json()
        await g.get(f"/api/runs/{run['id']}", params={"wait": 20})
        assert NOTE in str(g.sent()["messages"][0]["content"])


async def test_the_document_tells_of_the_images_of_a_run(tmp_path):
    async with gateway(config(tmp_path), []) as g:
        document = (await g.get("/api/openapi.json")).json()
    said = document["components"]["schemas"]["RunBody"]["properties"]["images"]
    assert said["maxItems"] == MAX_IMAGES
    assert "data URLs" in said["description"]


async def test_images_before_the_last_message_are_part_of_the_conversation(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["yes"]) as g:
        talk = [
            *asking(PICTURE),
            {"role": "assistant", "content": "a cat"},
            {"role": "user", "content": "sure?"},
        ]
        await g.openai.chat.completions.create(model="main", messages=talk)
        assert g.sent()["messages"][0]["content"][0]["type"] == "image_url"


async def test_a_model_that_does_not_see_reads_that_there_is_an_image(tmp_path):
    async with gateway(config(tmp_path), ["I cannot see it"]) as g:
        messages = asking(words("what?"), PICTURE)
        got = await g.openai.chat.completions.create(model="main", messages=messages)
        assert got.choices[0].message.content == "I cannot see it"
        assert g.sent()["messages"] == [{"role": "user", "content": f"what?\n{NOTE}"}]


async def test_a_session_is_shown_without_the_bytes(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["a cat"]) as g:
        large = url(png(extra=bytes(400_000)))
        parts = (words("what?"), {"type": "image_url", "image_url": {"url": large}})
        await g.openai.chat.completions.create(
            model="main", messages=asking(*parts), metadata={"session": "s1"}
        )
        paths = ("messages", "transcript", "calls")
        shown = [await g.get(f"/api/sessions/s1/{path}") for path in paths]
        found = [each for each in shown if each.status_code == 200]
        assert found
        assert all(len(each.content) < 4000 for each in found)
        messages = (await g.get("/api/sessions/s1/messages")).json()["messages"]
        (image,) = messages[0]["images"]
        assert image["mimeType"] == "image/png"
        assert image["bytes"] > 400_000


async def test_a_clients_tool_may_give_an_image_in_responses(tmp_path):
    """A screenshot that the client took: the same run goes on, and its model sees it."""
    tool = {"type": "function", "name": "shot", "description": "Screenshot.", "parameters": {}}
    steps = [tool_call("shot", {}), "a cat"]
    async with gateway(config(tmp_path, models=SEES), steps) as g:
        create = g.openai.responses.create
        first = await create(model="main", input="look", tools=[tool])
        (call,) = [item for item in first.output if item.type == "function_call"]
        brought = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": [{"type": "input_text", "text": "here"}, INPUT],
        }
        done = await create(model="main", input=[brought], tools=[tool])
        assert done.output_text == "a cat"
        result, carrier = g.sent()["messages"][-2:]
        assert "here" in result["content"]
        assert carrier["content"][1] == {"type": "image_url", "image_url": {"url": url()}}


async def test_a_clients_tool_may_give_an_image_alone_in_a_chat(tmp_path):
    function = {"name": "shot", "description": "Screenshot.", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": function}]
    steps = [tool_call("shot", {}), "I read"]
    async with gateway(config(tmp_path), steps) as g:
        first = await g.chat(tools=tools)
        (call,) = first.choices[0].message.tool_calls
        brought = {"role": "tool", "tool_call_id": call.id, "content": [PICTURE]}
        done = await g.openai.chat.completions.create(model="main", messages=[brought], tools=tools)
        assert done.choices[0].message.content == "I read"
        assert NOTE in g.sent()["messages"][-1]["content"]


async def test_a_program_gets_what_an_image_of_a_clients_tool_is(tmp_path):
    """rule 4.8: values are JSON; the picture does not cross the bridge."""
    function = {"name": "shot", "description": "Screenshot.", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": function}]
    steps = [tool_call("exec", {"code": "return await shot({})"}), "I read"]
    settings = config(tmp_path, models=SEES, tools={"codeMode": QUICKJS})
    async with gateway(settings, steps) as g:
        first = await g.chat(tools=tools)
        (call,) = first.choices[0].message.tool_calls
        brought = {"role": "tool", "tool_call_id": call.id, "content": [PICTURE]}
        await g.openai.chat.completions.create(model="main", messages=[brought], tools=tools)
        assert "[image image/png 68 bytes]" in g.sent()["messages"][-1]["content"]
        assert text(png()) not in json.dumps(g.sent())


def chat(part, role="user"):
    return "/v1/chat/completions", {"messages": [{"role": role, "content": [part]}]}


def responses(part):
    return "/v1/responses", {"input": [{"role": "user", "content": [part]}]}


def image(address):
    return {"type": "image_url", "image_url": {"url": address}}


def run_of(*images):
    return "/api/runs", {"prompt": "what?", "images": list(images)}


WHERE = "messages[0].content[0]"


@pytest.mark.parametrize(
    ("request_", "param", "says"),
    [
        (chat(image("https://example.com/a.png")), f"{WHERE}.image_url.url", "are not loaded"),
        (chat(image("https://x/a;base64,QUJD")), f"{WHERE}.image_url.url", "are not loaded"),
        (chat(image("file:///etc/passwd")), f"{WHERE}.image_url.url", "are not loaded"),
        (chat(image("data:image/png,abc")), f"{WHERE}.image_url.url", "must be base64"),
        (chat(image("data:image/png;base64,!!!!")), f"{WHERE}.image_url.url", "is no base64"),
        (chat(image(url(b"%PDF-1.7"))), f"{WHERE}.image_url.url", "no PNG, JPEG, GIF or WebP"),
        (chat(image(url(png()[:40]))), f"{WHERE}.image_url.url", "a broken image/png"),
        (chat(image(url(png(9000, 1)))), f"{WHERE}.image_url.url", "at most 8000"),
        (chat(image(url(bytes(4 << 20)))), f"{WHERE}.image_url.url", "at most 3932160"),
        (chat({"type": "image_url"}), f"{WHERE}.image_url", "is sent as a data URL"),
        (chat(PICTURE, "system"), WHERE, "from users and tools only"),
        (chat(PICTURE, "assistant"), WHERE, "from users and tools only"),
        (chat({"type": "input_audio"}), WHERE, "'input_audio' are not supported"),
        (responses({"type": "input_image", "file_id": "f"}), "input[0].content[0].image_url", ""),
        (
            responses({"type": "input_image", "image_url": "http://x/a.png"}),
            "input[0].content[0].image_url",
            "are not loaded",
        ),
        (run_of("https://example.com/a.png"), "images[0]", "are not loaded"),
        (run_of(text(png())), "images[0]", "send the image itself, as a data URL"),
        (run_of(""), "images[0]", "are not loaded"),
        (run_of("data:image/png,abc"), "images[0]", "must be base64"),
        (run_of("data:image/png;base64,!!!!"), "images[0]", "is no base64"),
        (run_of(url(), "data:image/png;base64,QUI"), "images[1]", "is no base64"),
        (run_of(url(b"%PDF-1.7")), "images[0]", "no PNG, JPEG, GIF or WebP"),
        (run_of(url(png()[:40])), "images[0]", "a broken image/png"),
        (run_of(url(png(9000, 1))), "images[0]", "at most 8000"),
        (run_of(url(bytes(4 << 20))), "images[0]", "at most 3932160"),
        (run_of(*[url()] * (MAX_IMAGES + 1)), f"images[{MAX_IMAGES}]", "has at most 20 images"),
        (run_of({"url": url()}), "images[0]", "valid string"),
        (("/api/runs", {"prompt": "what?", "images": url()}), "images", "valid list"),
        (("/api/runs", {"images": [url()]}), "prompt", "Field required"),
    ],
)
async def test_an_image_that_cannot_be_taken_is_refused_by_name(tmp_path, request_, param, says):
    path, body = request_
    async with gateway(config(tmp_path, models=SEES), ["no"]) as g:
        got = await g.post(path, body)
        error = got.json()["error"]
        assert (got.status_code, error["param"], g.model.bodies) == (400, param, [])
        assert says in error["message"]
        assert len(error["message"]) < 300


async def test_the_official_client_raises_what_was_wrong(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["no"]) as g:
        with pytest.raises(openai.BadRequestError) as caught:
            await g.openai.chat.completions.create(
                model="main", messages=asking(image("https://example.com/a.png"))
            )
    assert caught.value.param == f"{WHERE}.image_url.url"
    assert caught.value.code == "unsupported_parameter"


async def test_images_are_bounded_in_number_and_with_the_body(tmp_path):
    few = {"limits": {"maxRequestBytes": 20_000}}
    async with gateway(config(tmp_path, models=SEES, gateway=few), ["no"]) as g:
        many = await g.post(*chat_of([PICTURE] * (MAX_IMAGES + 1)))
        large = await g.post(*chat_of([image(url(png(extra=bytes(20_000))))]))
        for_a_run = await g.post(*run_of(url(png(extra=bytes(20_000)))))
    assert for_a_run.status_code == 413
    assert many.json()["error"]["param"] == f"messages[0].content[{MAX_IMAGES}]"
    assert large.status_code == 413


def chat_of(parts):
    return "/v1/chat/completions", {"messages": asking(*parts)}


async def test_a_lie_about_the_type_is_put_right(tmp_path):
    async with gateway(config(tmp_path, models=SEES), ["ok"]) as g:
        await g.openai.chat.completions.create(
            model="main", messages=asking(image(url(kind="image/jpeg")))
        )
        (part,) = g.sent()["messages"][0]["content"]
    assert part["image_url"]["url"] == f"data:image/png;base64,{text(png())}"
    assert json.dumps(part)
