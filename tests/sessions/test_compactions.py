"""A compaction on record: nothing is deleted, and the next run takes up what is left (rule 8.3)."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

import toolcell
from tests.sessions.events import answered, asked, run_ended, run_started, said, scope
from toolcell.base.masking import Masker
from toolcell.protocol.events import Compacted, ModelCalled
from toolcell.protocol.messages import Usage
from toolcell.sessions.database import MIGRATIONS
from toolcell.sessions.memory import MemorySessions
from toolcell.sessions.store import SessionStore
from toolcell.sessions.taking_up import conversation_of
from toolcell.sessions.tool_use import tool_use
from toolcell.sessions.trajectory import trajectory

pytestmark = pytest.mark.anyio

ROOT = Path(toolcell.__file__).resolve().parents[1]
TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["sqlite", "memory"])
def opened(request, tmp_path):
    @asynccontextmanager
    async def opening(**options):
        if request.param == "memory":
            yield MemorySessions(**options)
        else:
            async with SessionStore(tmp_path / "sessions.db", **options) as store:
                yield store

    return opening


def compacted(summary="NOTES", *, where=None, through=0, own=0, kept=(), kept_own=()):
    return Compacted(
        scope=where or scope(),
        at=5.0,
        model="m",
        trigger="window",
        summary=summary,
        messages=3,
        tokens_before=900,
        tokens_after=90,
        through=through,
        own=own,
        kept=kept,
        kept_own=kept_own,
    )


async def put(store, *events):
    for event in events:
        store.emit(event)
    await store.flush()


def words(conversation):
    return [message.text for message in conversation.messages]


async def test_without_a_compaction_all_of_it_is_taken_up(opened):
    async with opened() as store:
        await put(store, run_started(), said("a"), said("b", role="assistant"))
        taken = await conversation_of(store, "s1")
        assert (await conversation_of(store, "nobody")).messages == ()
    assert (taken.summary, words(taken)) == (None, ["a", "b"])
    assert taken.through == taken.places[-1]


async def test_the_latest_summary_stands_for_what_it_covers_and_the_record_keeps_all(opened):
    async with opened() as store:
        await put(store, said("a"), said("b", role="assistant"), asked(("c1", "exec")))
        await put(store, answered("c1", "parked"), said("d"))
        past = await conversation_of(store, "s1")
        second = scope(run="r2")
        kept = past.places[2:4]
        await put(store, said("e", where=second), said("f", role="assistant", where=second))
        await put(store, compacted(through=past.through, own=2, kept=kept, kept_own=(1,)))
        # The event is of the run that compacted.
        await put(
            store,
            compacted("LATER", where=second, through=past.through, own=2, kept=kept, kept_own=(1,)),
        )
        await put(store, said("g", where=second), said("h", where=scope(run="r3")))
        taken = await conversation_of(store, "s1")
        everything = await store.history("s1")
        shown = (await store.show("s1"))["transcript"]
    assert (taken.summary, words(taken)) == ("LATER", ["", "parked", "f", "g", "h"])
    assert taken.messages[0].tool_calls[0].name == "exec"
    assert len(everything) == 9
    entries = [entry for entry in shown if entry["type"] == "compacted"]
    assert [entry["summary"] for entry in entries] == ["NOTES", "LATER"]
    assert (entries[0]["messages"], entries[0]["tokensBefore"]) == (3, 900)


async def test_what_another_run_added_behind_its_back_is_not_covered(opened):
    """Runs of one session may overlap; no word of one is lost to the summary of another."""
    one, two = scope(run="one"), scope(run="two")
    async with opened() as store:
        await put(store, said("before"))
        past = await conversation_of(store, "s1")
        await put(store, said("1a", where=one), said("2a", where=two), said("1b", where=one))
        await put(store, compacted(where=one, through=past.through, own=2, kept_own=(1,)))
        await put(store, said("2b", where=two), said("1c", where=one))
        taken = await conversation_of(store, "s1")
    assert sorted(words(taken)) == ["1b", "1c", "2a", "2b"]


async def test_a_compaction_of_a_history_from_elsewhere_is_shown_and_not_taken_up(opened):
    async with opened() as store:
        await put(store, said("a"), compacted(through=None, own=1))
        taken = await conversation_of(store, "s1")
        (entry,) = [e for e in (await store.show("s1"))["transcript"] if e["type"] != "message"]
    assert (taken.summary, words(taken)) == (None, ["a"])
    assert entry["type"] == "compacted"


async def test_a_summary_is_kept_whole_whatever_the_bound_of_values(opened):
    """The next run begins with it, as it does with messages."""
    async with opened(max_value_bytes=100) as store:
        await put(store, said("a"), compacted("é" * 5000, through=10**6, kept=tuple(range(500))))
        taken = await conversation_of(store, "s1")
    assert taken.summary == "é" * 5000


@pytest.mark.parametrize(
    ("end", "cut_off"),
    [
        (None, ["c", "d"]),
        (run_ended(scope(run="r2")), []),
        # A gateway ends a run that it rebuilds, and says which goes on with it.
        (replace(run_ended(scope(run="r2"), "aborted"), continued_by="r3"), ["c", "d"]),
        (replace(run_ended(scope(run="r1"), "aborted"), continued_by="r2"), ["c", "d"]),
    ],
)
@pytest.mark.parametrize("covered", [False, True])
async def test_only_the_last_run_can_have_been_cut_off(opened, end, cut_off, covered):
    """rule 3.13: a turn that may be rebuilt is the last one, and has no end of its own."""
    second = scope(run="r2")
    async with opened() as store:
        await put(store, said("a"), said("b", role="assistant"))
        first = await conversation_of(store, "s1")
        await put(store, said("c", where=second), said("d", role="assistant", where=second))
        if covered:
            await put(store, compacted(where=scope(run="c"), through=first.through))
        if end is not None:
            await put(store, end)
        taken = await conversation_of(store, "s1")
    texts = dict(zip(taken.places, words(taken), strict=True))
    assert [texts[place] for place in sorted(taken.cut_off)] == cut_off
    assert words(taken) == (["c", "d"] if covered else ["a", "b", "c", "d"])


async def test_only_what_is_needed_is_read_from_the_file(tmp_path, monkeypatch):
    """Taking up a long session costs what is left of it, not what it was."""
    read = []
    async with SessionStore(tmp_path / "s.db") as store:
        await put(store, *(said(str(n)) for n in range(300)))
        past = await conversation_of(store, "s1")
        await put(store, compacted(through=past.through, kept=past.places[-2:]), said("new"))
        monkeypatch.setattr(
            "toolcell.sessions.compactions.to_message", lambda r: read.append(r.seq) or r
        )
        taken = await conversation_of(store, "s1")
    assert len(taken.messages) == len(read) == 3


async def test_a_bundle_has_the_compaction_with_its_secrets_masked(opened):
    """SE-08."""
    async with opened() as store:
        await put(store, said("a"), compacted("the key is S3CR3T-CANARY-01", through=1))
        trace = await store.trace("s1")
    bundle = trajectory(trace, Masker({"S3CR3T-CANARY-01"}), at=0.0)
    for name in ("events.jsonl", "transcript.jsonl"):
        text = bundle.files[name].decode()
        assert '"type":"compacted"' in text
        assert "the key is" in text
        assert "CANARY" not in text


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
async def test_a_file_of_every_older_version_is_taken_up_and_compacted(tmp_path, version):
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as old:
        for script in MIGRATIONS[:version]:
            old.executescript(script)
        old.execute(f"PRAGMA user_version = {version}")
        old.execute("INSERT INTO sessions VALUES ('s1', 'k', 'main', 1, 1, 1)")
        old.execute(
            "INSERT INTO events (session_id, run_id, type, at, body) VALUES "
            """('s1', 'r0', 'message', 1, '{"message":{"role":"user","text":"old"}}')"""
        )
    old.close()
    async with SessionStore(path) as store:
        past = await conversation_of(store, "s1")
        assert (past.summary, words(past)) == (None, ["old"])
        await put(store, compacted(through=past.through), said("new"))
        taken = await conversation_of(store, "s1")
        assert (taken.summary, words(taken)) == ("NOTES", ["new"])


CRASH = """
import os, signal, sys, anyio
from tests.agent.rig import Rig
from tests.agent.test_compacting import SMALL
from toolcell.protocol.events import Compacted
from toolcell.sessions.taking_up import conversation_of
from toolcell.sessions.store import SessionStore

class Dies(SessionStore):
    def emit(self, event):
        if isinstance(event, Compacted):
            # The summary is there; its event is not.
            print("summarised", flush=True)
            sys.stdin.readline()
        super().emit(event)

async def main(path):
    async with Dies(path) as store:
        rig = Rig(["a", "b", "c", "NOTES", "d"], sessions=store)
        from tests.agent.rig import scope
        for n in range(4):
            past = await conversation_of(store, "s1")
            await rig.run(f"{n} " + "q" * 4000, where=scope(f"r{n}"), past=past,
                          context_window=2500 if n == 3 else None, compaction=SMALL)

anyio.run(main, sys.argv[1])
"""


def crashing(path):
    env = {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    command = [sys.executable, "-c", CRASH, str(path)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)


async def test_killed_between_a_summary_and_its_event_nothing_but_the_summary_is_lost(tmp_path):
    path = tmp_path / "s.db"
    with crashing(path) as process:
        assert process.stdout.readline() == "summarised\n"
        # What came before is committed within a moment.
        async with SessionStore(path) as store:
            for _ in range(500):
                if len(await store.history("s1")) == 7:
                    break
                await anyio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    async with SessionStore(path) as store:
        taken = await conversation_of(store, "s1")
        assert taken.summary is None
        assert [text[:2] for text in words(taken)] == ["0 ", "a", "1 ", "b", "2 ", "c", "3 "]


async def test_what_a_run_showed_its_model_is_not_read_from_a_summary(opened):
    """rule 10.7: a summary shows no tools; the run's own first call counts."""
    summary = ModelCalled(
        scope=scope(),
        at=1.0,
        model="m",
        tool_names=(),
        request_bytes=9000,
        duration_ms=1.0,
        usage=Usage(),
        purpose="summary",
    )
    turn = replace(summary, tool_names=("exec", "wait"), request_bytes=800, purpose=None)
    async with opened() as store:
        await put(store, said("a"), summary, turn)
        (run,) = tool_use(await store.trace("s1"))["runs"]
    assert (run["toolsUpFront"], run["modelCalls"], run["requestBytes"]) == (2, 1, 800)
