"""A request that is too long is recognised on every wire, in the words endpoints really use."""

import json

import pytest

from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, WIRES, complete
from toolcell.errors import ProviderError
from toolcell.testing.scripted_model import RawBody, RawStream, Refusal

pytestmark = pytest.mark.anyio


def said(message, kind="invalid_request_error", **more):
    return {"error": {"message": message, "type": kind, **more}}


OPENAI = said(
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 "
    "tokens. Please reduce the length of the messages.",
    param="messages",
    code="context_length_exceeded",
)
RESPONSES_SAID = said(
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    param="input",
    code="context_length_exceeded",
)
VLLM = {
    "object": "error",
    "message": "This model's maximum context length is 8192 tokens. However, you requested 8203 "
    "tokens (7691 in the messages, 512 in the completion). Please reduce the length of the "
    "messages or completion.",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
OPENROUTER = said(
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 "
    "tokens (42832 of text input). Please reduce the length of either one, or use the "
    '"middle-out" transform to compress your prompt automatically.',
    code=400,
)
LLAMA = said(
    "the request exceeds the available context size, try increasing it",
    "exceed_context_size_error",
    code=400,
    n_prompt_tokens=9000,
    n_ctx=8192,
)
LM_STUDIO = {
    "error": "The number of tokens to keep from the initial prompt is greater than the context "
    "length. Try to load the model with a larger context length, or provide a shorter input"
}
CLAUDE = {"type": "error", **said("prompt is too long: 202095 tokens > 200000 maximum")}
CLAUDE_MAX = {
    "type": "error",
    **said(
        "input length and `max_tokens` exceed context limit: 198214 + 8192 > 200000, decrease "
        "input length or `max_tokens` and try again"
    ),
}
CLAUDE_BYTES = {
    "type": "error",
    **said("Request exceeds the maximum size", "request_too_large"),
}


async def refused(wire, step, **settings):
    with pytest.raises(ProviderError) as caught:
        await complete(wire, [step], max_retries=0, **settings)
    return caught.value


@pytest.mark.parametrize(
    ("wire", "status", "body"),
    [
        (CHAT, 400, OPENAI),
        (CHAT, 400, VLLM),
        (CHAT, 400, OPENROUTER),
        (CHAT, 400, LLAMA),
        (CHAT, 400, LM_STUDIO),
        (CHAT, 413, said("Payload Too Large")),
        (RESPONSES, 400, RESPONSES_SAID),
        (ANTHROPIC, 400, CLAUDE),
        (ANTHROPIC, 400, CLAUDE_MAX),
        (ANTHROPIC, 413, CLAUDE_BYTES),
        (CHAT, 400, CLAUDE["error"]),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_refusal_because_of_length_says_so(wire, status, body, stream):
    error = await refused(wire, Refusal(status=status, body=json.dumps(body)), stream=stream)
    assert (error.too_long, error.code, error.status) == (True, "context_length", status)
    assert not error.retryable


async def test_it_is_recognised_in_the_middle_of_a_stream():
    chat = RawStream(lines=(OPENAI,))
    failed = {"type": "response.failed", "response": {"status": "failed", **RESPONSES_SAID}}
    event = {**RESPONSES_SAID["error"], "type": "error", "sequence_number": 1}
    claude = RawStream(lines=(f"event: error\ndata: {json.dumps(CLAUDE)}\n\n",))
    for wire, step in (
        (CHAT, chat),
        (RESPONSES, RawStream(lines=(failed,))),
        (RESPONSES, RawStream(lines=(event,))),
        (ANTHROPIC, claude),
    ):
        error = await refused(wire, step, stream=True)
        assert (error.too_long, error.retryable) == (True, False), (wire.name, error.message)


async def test_it_is_recognised_in_a_response_that_came_in_one_piece():
    body = {"object": "response", "status": "failed", "output": [], **RESPONSES_SAID}
    error = await refused(RESPONSES, RawBody(body=json.dumps(body)), stream=False)
    assert error.too_long


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("messages.0: text content blocks must be non-empty")),
        (429, said("This request would exceed your limit of 30,000 input tokens per minute")),
        (413, said("Request too large: tokens per minute", code="rate_limit_exceeded")),
        (401, said("maximum context length")),
        (500, said("overloaded", code={"odd": ["shape"]})),
        (400, {"error": {"message": "no", "code": ["odd"], "type": {}}}),
    ],
)
async def test_other_refusals_do_not_say_so(wire, status, body):
    error = await refused(wire, Refusal(status=status, body=json.dumps(body)))
    assert (error.too_long, error.code) == (False, "provider")
