"""Finding messages in every session: parts of words in any language, by an index that is right."""

import random
import sqlite3

import pytest

from tests.sessions.events import said, scope
from toolcell.sessions import search as search_module
from toolcell.sessions.memory import MemorySessions
from toolcell.sessions.search import Wanted
from toolcell.sessions.store import SessionStore

pytestmark = pytest.mark.anyio

SAID = {
    "english": "The tide table is in the drawer",
    "german": "Größe und Straße, ein Maß",
    "chinese": "请把潮汐表放在抽屉里",
    "japanese": "テーブルの上に潮の表があります",
    "korean": "조석표는 서랍에 있어요",
    "russian": "Таблица приливов в ящике",
    "arabic": "جدول المد والجزر في الدرج",
    "thai": "ตารางน้ำขึ้นน้ำลง",
    "code": 'if (a["x"] != NULL) { return f(a) -- 1; } * OR "AND" NEAR( ^',
    "emoji": "done ✅🚀",
    "short": "ab",
    "odd": "nul \0 and \ud800 half",
}
QUERIES = {
    "tide": ["english"],
    "TABLE in": ["english"],
    "straße": ["german"],
    "STRASSE": ["german"],
    "maß": ["german"],
    "潮汐": ["chinese"],
    "潮汐表 抽屉": ["chinese"],
    "潮": ["chinese", "japanese"],
    "里": ["chinese"],
    "テーブル": ["japanese"],
    "ます": ["japanese"],
    "서랍에": ["korean"],
    "приЛИВ": ["russian"],
    "الجزر": ["arabic"],
    "น้ำลง": ["thai"],
    '"AND"': ["code"],
    "NEAR(": ["code"],
    '*  OR "': ["code"],
    "🚀": ["emoji"],
    "ab": ["english", "short"],
    "b": ["english", "short"],
    "tide 潮": [],
    "zzz": [],
    "qq": [],
}


def never():
    return False


async def found(store, query, *, limit=100, agent="main", up=never, enough=never):
    wanted = Wanted(
        words=query.casefold().split(),
        agent_id=agent,
        limit=limit,
        time_is_up=up,
        indexed_enough=enough,
    )
    return await store.search(wanted)


@pytest.fixture(params=["index", "no index", "memory"])
async def store(request, tmp_path, monkeypatch):
    if request.param == "no index":
        # What a SQLite without the tokenizer says to it.
        monkeypatch.setattr(
            search_module, "_MAKE", search_module._MAKE.replace("trigram", "no_such_tokenizer")
        )
    if request.param == "memory":
        yield MemorySessions()
        return
    async with SessionStore(tmp_path / "s.db") as opened:
        yield opened


@pytest.mark.parametrize("query", list(QUERIES))
async def test_any_part_of_a_word_is_found_in_any_language(store, query):
    """rule 7.4: messages that hold all words, casefolded; so it was without an index."""
    for name, text in SAID.items():
        store.emit(said(text, where=scope(name, name)))
    got = await found(store, query)
    assert sorted(got.session_ids) == sorted(QUERIES[query])
    assert (got.searched, got.complete) == (len(SAID), True)


async def test_what_is_said_later_is_found_and_the_last_used_session_comes_first(store):
    for n in range(5):
        store.emit(said("tide", where=scope(f"s{n}", f"r{n}")))
    assert list((await found(store, "tide")).session_ids) == ["s4", "s3", "s2", "s1", "s0"]
    store.emit(said("another thing", where=scope("s1", "r9")))
    store.emit(said("neap tide", where=scope("new", "r10")))
    assert list((await found(store, "tide", limit=3)).session_ids) == ["new", "s1", "s4"]
    assert list((await found(store, "neap")).session_ids) == ["new"]
    assert list((await found(store, "tide", agent="other")).session_ids) == []


async def test_all_words_are_in_one_message(store):
    store.emit(said("one", where=scope("apart", "r1")))
    store.emit(said("two", where=scope("apart", "r1")))
    store.emit(said("one and two", where=scope("together", "r2")))
    assert list((await found(store, "two one")).session_ids) == ["together"]


async def test_a_deleted_session_is_found_no_more(tmp_path):
    """The index is as it would be without it."""
    path = tmp_path / "s.db"
    async with SessionStore(path) as store:
        store.emit(said("kept tide", where=scope("kept", "r1")))
        store.emit(said("gone tide", where=scope("gone", "r2")))
        await found(store, "tide")
        store.emit(said("not indexed yet", where=scope("gone", "r2")))
        await store.delete("gone")
        assert list((await found(store, "tide")).session_ids) == ["kept"]
        assert list((await found(store, "gone")).session_ids) == []
    check = sqlite3.connect(path)
    check.execute("INSERT INTO message_index (message_index) VALUES ('integrity-check')")
    terms = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'message_index', 'row')"
    check.execute(terms)
    left = {term for (term,) in check.execute("SELECT term FROM temp.terms")}
    check.close()
    assert "kep" in left
    assert "gon" not in left


async def test_a_search_that_has_no_time_says_that_it_is_not_complete(tmp_path):
    async with SessionStore(tmp_path / "s.db") as store:
        for n in range(1000):
            store.emit(said("tide", where=scope(f"s{n}", "r")))
        late = await found(store, "tide", up=lambda: True)
        assert list((await found(store, "neap", enough=lambda: True)).session_ids) == []
        store.emit(said("neap 潮", where=scope("new", "r")))
        for query in ("neap", "潮", "ea ne"):
            unindexed = await found(store, query, enough=lambda: True)
            assert (list(unindexed.session_ids), unindexed.complete) == (["new"], True)
        whole = await found(store, "tide", limit=2000)
    assert not late.complete
    assert len(late.session_ids) < 1000
    assert (len(whole.session_ids), whole.complete) == (1000, True)


async def test_an_index_answers_as_reading_everything_does(tmp_path):
    """A thousand random messages and queries, some of whose words are in one another."""
    random_ = random.Random(7)
    letters = "abc 潮汐ß"
    memory = MemorySessions()
    async with SessionStore(tmp_path / "s.db") as store:
        for n in range(400):
            text = "".join(random_.choices(letters, k=random_.randrange(1, 12)))
            event = said(text, where=scope(f"s{n % 60}", "r"))
            store.emit(event)
            memory.emit(event)
            if n % 40 == 0 and n < 300:
                await found(store, "a")
        for _ in range(300):
            query = "".join(random_.choices(letters, k=random_.randrange(1, 7)))
            if query.strip():
                expected = (await found(memory, query)).session_ids
                partly = await found(store, query, enough=lambda: True)
                assert list(partly.session_ids) == list(expected), query
        for _ in range(300):
            query = "".join(random_.choices(letters, k=random_.randrange(1, 7)))
            if query.strip():
                expected = (await found(memory, query)).session_ids
                assert list((await found(store, query)).session_ids) == list(expected), query


async def test_a_search_among_many_sessions_reads_few_messages(tmp_path, monkeypatch):
    """Costs grow with what is found, not with what there is."""
    read = []
    folded = search_module._folded
    monkeypatch.setattr(search_module, "_folded", lambda body: read.append(1) or folded(body))
    async with SessionStore(tmp_path / "s.db") as store:
        for n in range(2000):
            store.emit(said(f"message number {n} of many", where=scope(f"s{n}", "r")))
        await found(store, "many")
        assert len(read) >= 2000
        read.clear()
        assert list((await found(store, "number 1234 of")).session_ids) == ["s1234"]
        assert (await found(store, "34 message", limit=3)).session_ids[0] == "s1934"
    assert len(read) <= 8
