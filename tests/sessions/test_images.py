"""Images in the record: kept for the model, described for people (issue part 4)."""

import json
from dataclasses import replace

import pytest

from tests.pictures import part, png, text
from tests.sessions.events import answered, run_ended, run_started, said
from tests.sessions.test_stores import opened, put  # noqa: F401 - a fixture
from toolcell.base.masking import Masker
from toolcell.protocol.messages import ImagePart, Message
from toolcell.sessions.records import Record, to_message, to_record
from toolcell.sessions.trajectory import trajectory

pytestmark = pytest.mark.anyio

LARGE = ImagePart(text(png(extra=b"x" * 300_000)), "image/png", 4)
RESULT = answered("c1", "a picture")
TALK = [
    run_started(),
    said("look", images=(LARGE, part(2))),
    replace(RESULT, message=replace(RESULT.message, images=(part(3),))),
    run_ended(),
]


async def test_images_come_back_to_the_model_as_they_were(opened):  # noqa: F811
    async with opened() as store:
        await put(store, TALK)
        asked, result = await store.history("s1")
    assert asked == Message(role="user", text="look", images=(LARGE, part(2)))
    assert result.images == (part(3),)


async def test_people_and_feeds_get_their_kind_and_size(opened):  # noqa: F811
    async with opened() as store:
        await put(store, TALK)
        shown = json.dumps(await store.show("s1"))
        records = json.dumps([record.data() for record in await store.events("s1")])
    for told in (shown, records):
        assert len(told) < 4000
        assert LARGE.data[:40] not in told
        assert '{"mimeType": "image/png", "bytes": 68}' in told


async def test_a_bundle_says_that_there_was_an_image_and_has_none(opened):  # noqa: F811
    """SE-08: a bundle is masked, and what a picture shows cannot be."""
    async with opened() as store:
        await put(store, TALK)
        bundle = trajectory(await store.trace("s1"), Masker(), at=0.0)
    everything = b"".join(bundle.files.values())
    assert len(everything) < 10_000
    for name in ("events.jsonl", "transcript.jsonl", "prompts.jsonl"):
        assert b'"images":[{"mimeType":"image/png","bytes":' in bundle.files[name]
    assert bundle.omitted == {}


def test_a_message_stored_before_there_were_images_is_read():
    body = '{"message":{"role":"user","text":"hi"}}'
    record = Record(type="message", at=1.0, body=body, session_id="s1")
    assert to_message(record) == Message(role="user", text="hi")
    assert record.data() == json.loads(body)


def test_a_message_without_images_is_stored_as_before():
    assert to_record(said("hi"), 1000).body == '{"message":{"role":"user","text":"hi"}}'
