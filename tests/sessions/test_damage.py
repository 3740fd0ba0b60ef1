"""Records that something else changed in the file: told, and no harm to what is beside them."""

import sqlite3

import pytest

from tests.sessions.events import run_ended, run_started, said, scope
from toolcell.errors import SessionError
from toolcell.sessions.store import SessionStore

pytestmark = pytest.mark.anyio

OTHER = [run_started(where=scope("s2", "r2")), said("there", where=scope("s2", "r2"))]


@pytest.mark.parametrize(
    "body",
    [
        "{nope",
        "null",
        "[]",
        "{}",
        b"\xff\xfe",
        '{"message":7}',
        '{"message":{"text":"no role"}}',
        '{"message":{"role":"user","toolCalls":[1]}}',
        '{"message":{"role":"user","images":[{}]}}',
        "[" * 50_000,
    ],
)
async def test_a_damaged_message_is_told_and_the_session_can_still_be_shown_and_deleted(
    tmp_path, body
):
    path = tmp_path / "sessions.db"
    async with SessionStore(path) as store:
        for event in (run_started(), said("hello"), said("again"), run_ended(), *OTHER):
            store.emit(event)
        await store.flush()
    with sqlite3.connect(path) as file:
        file.execute("update events set body = ? where seq = 2", (body,))
    file.close()
    async with SessionStore(path) as store:
        with pytest.raises(SessionError, match=r"record 2 \(message\) of session 's1' is damaged"):
            await store.history("s1")
        shown = await store.show("s1")
        damaged, whole = [each for each in shown["transcript"] if each["type"] == "message"]
        assert "damaged" in damaged["damaged"]
        assert whole["text"] == "again"
        assert [each.data() for each in await store.events("s1")][1].keys() == {"damaged"}
        assert [each.text for each in await store.history("s2")] == ["there"]
        assert list(await store.delete("s1")) == ["s1"]
