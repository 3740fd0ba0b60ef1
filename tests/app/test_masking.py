"""What is masked before it is recorded (SE-08)."""

import json

import pytest

from tests.pictures import part
from tests.sessions.events import said, scope
from tests.sessions.test_compactions import compacted
from toolcell.app.masking import Masking
from toolcell.base.jsontext import dumps
from toolcell.calls.redaction import MASK, Redactor
from toolcell.protocol.events import CellStarted, CellStepped, ChildChanged, SwarmNote
from toolcell.protocol.messages import Reasoning, ToolCall


class Kept:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


def test_images_keep_their_place_in_a_text_whose_secrets_are_masked():
    """SE-08: the masked text has another length."""
    kept = Kept()
    message = said("key S3CR3T-CANARY-0001: here, there", images=(part(1, at=23), part(2)))
    Masking(kept, Redactor(["S3CR3T-CANARY-0001"])).emit(message)
    (event,) = kept.events
    pieces = [each if isinstance(each, str) else "IMAGE" for each in event.message.parts()]
    assert pieces == ["key [redacted]:", "IMAGE", " here, there", "IMAGE"]


SECRET = "S3CR3T-CANARY-0001"


@pytest.mark.parametrize(
    "event",
    [
        SwarmNote(scope=scope(), at=1.0, group_id="g", kind="run", text=f"use {SECRET}"),
        ChildChanged(
            scope=scope(),
            at=1.0,
            group_id="g",
            child_run_id="r2",
            child_session_id="s2",
            child_agent_id="main",
            state="failed",
            label=f"label {SECRET}",
            phase=f"phase {SECRET}",
            error=f"error {SECRET}",
        ),
        said("fine", role="assistant", reasoning=Reasoning("anthropic", ({"thinking": SECRET},))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_programs_and_models_say_beside_their_messages_is_masked_too(event):
    """SE-08: a prompt that holds a secret is also the label of its child."""
    kept = Kept()
    Masking(kept, Redactor([SECRET])).emit(event)
    assert "CANARY" not in repr(kept.events)


KEY = '-----BEGIN KEY-----\nCANARY "quoted\\\\" \u00e4\n-----END KEY-----'
ESCAPED = "".join(f"\\u{ord(each):04x}" for each in SECRET)


def call(arguments, *, name="t", number="c1"):
    return said("", role="assistant", tool_calls=(ToolCall(number, name, arguments),))


@pytest.mark.parametrize("write", [dumps, json.dumps], ids=["dumps", "ascii"])
@pytest.mark.parametrize(
    "made",
    [
        lambda text, write: said(write({"key": text})),
        lambda text, write: call(write({"code": f"const key = {write(text)}"})),
        lambda text, write: CellStarted(
            scope=scope(), at=1.0, call_id="c", cell_id="m", executor="node", code=write(text)
        ),
        lambda text, write: CellStepped(
            scope=scope(),
            at=1.0,
            call_id="c",
            cell_id="m",
            number=1,
            start=None,
            image=None,
            answers=({"id": 1, "value": write({"details": {"text": write(text)}})},),
            requests=({"id": 1, "args": write([text])},),
            withdrawn=(),
            output=({"text": write(text)},),
            end={"value": write(text)},
        ),
    ],
    ids=["result", "arguments", "program", "step"],
)
def test_a_secret_with_quotes_and_lines_is_masked_in_json_text_too(made, write):
    """SE-08: a key in PEM form, as results, arguments and programs write it."""
    kept = Kept()
    Masking(kept, Redactor([KEY])).emit(made(KEY, write))
    assert "CANARY" not in repr(kept.events)
    assert MASK in repr(kept.events)


def test_what_a_call_is_named_and_numbered_is_masked_alike_everywhere():
    """SE-08: a model may put a secret there, and the pair stays one."""
    kept = Kept()
    masking = Masking(kept, Redactor([SECRET]))
    masking.emit(call(f'{{"key":"{ESCAPED}"}}', name=f"use-{SECRET}", number=f"id-{SECRET}"))
    masking.emit(said("ok", role="tool", tool_call_id=f"id-{SECRET}"))
    masking.emit(
        CellStarted(
            scope=scope(), at=1.0, call_id=f"id-{SECRET}", cell_id="m", executor="node", code="1"
        )
    )
    asked, answer, cell = kept.events
    (made,) = asked.message.tool_calls
    assert made == ToolCall(f"id-{MASK}", f"use-{MASK}", f'{{"key":"{MASK}"}}')
    assert made.id == answer.message.tool_call_id == cell.call_id


def test_reasoning_without_a_secret_stays_as_it_is():
    """It is signed."""
    kept = Kept()
    message = said("x", role="assistant", reasoning=Reasoning("anthropic", ({"thinking": "hm"},)))
    Masking(kept, Redactor([SECRET])).emit(message)
    assert kept.events == [message]


def test_a_summary_is_masked_like_the_messages_it_stands_for():
    """SE-08."""
    kept = Kept()
    Masking(kept, Redactor(["S3CR3T-CANARY-0001"])).emit(compacted("the S3CR3T-CANARY-0001 key"))
    assert kept.events[0].summary == "the [redacted] key"
