"""`toolcell sessions compact`: a summary by hand; the record stays (issue 5 part 6, SE-08)."""

import json
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from tests.sessions.events import said, scope
from toolcell.cli.main import run
from toolcell.sessions.store import SessionStore
from toolcell.sessions.taking_up import conversation_of
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Refusal, ScriptedModel

KEY = "sk-canary-0001"


@contextmanager
def serving(model):
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(openai_server(model)) as server,
    ):
        yield server


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own; returns exit code, stdout and stderr."""
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOOLCELL_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()

    def call(*words):
        code = run(words)
        got = capsys.readouterr()
        return code, got.out, got.err

    return call


def configured(server, **agent):
    config = {
        "models": {"providers": {"up": {"baseUrl": server.base_url, "apiKey": KEY}}},
        # A server that cannot be started is none of this command's business.
        "mcp": {"servers": {"down": {"command": "/nowhere/at/all"}}},
        "agents": {"defaults": {"compaction": {"keepRecentTokens": 400}, **agent}},
    }
    Path("home/toolcell.json").write_text(json.dumps(config))


def recorded(turns=8, size=1000):
    async def go():
        async with SessionStore(Path("home") / "sessions.db") as store:
            for n in range(turns):
                where = scope(run=f"r{n}")
                store.emit(said(f"question {n} " + "q" * size, where=where))
                store.emit(said(f"answer {n}", role="assistant", where=where))

    anyio.run(go)


async def taken():
    async with SessionStore(Path("home") / "sessions.db") as store:
        return await conversation_of(store, "s1"), await store.history("s1")


def test_a_session_is_compacted_by_hand_and_shown_whole(command):
    model = ScriptedModel([f"NOTES: eight questions, key {KEY}.", "NOTES again"])
    with serving(model) as server:
        configured(server, model="up/m")
        recorded()
        code, out, err = command("sessions", "compact", "s1")
        assert (code, err) == (0, "")
        assert "14 messages summarised" in out
        assert "NOTES: eight questions" in out
        assert KEY not in out
        conversation, history = anyio.run(taken)
        assert conversation.summary == "NOTES: eight questions, key [redacted]."
        assert [m.text[:10] for m in conversation.messages] == ["question 7", "answer 7"]
        assert len(history) == 16
        (body,) = model.bodies
        assert "tools" not in body
        assert "question 0" in body["messages"][1]["content"]
        code, shown, _ = command("sessions", "show", "s1")
        assert "user: question 0" in shown
        assert "14 messages summarised" in shown
        # There is nothing older now; no model is asked.
        code, out, _ = command("sessions", "compact", "s1")
        assert (code, "nothing to compact" in out, len(model.bodies)) == (0, True, 1)


def test_with_json_and_another_model(command):
    with serving(ScriptedModel(["NOTES"])) as server:
        configured(server)
        recorded()
        code, out, err = command("sessions", "compact", "s1", "--json")
        assert (code, out) == (2, "")
        assert "no model is named" in err
        code, out, _ = command("sessions", "compact", "s1", "--model", "up/other", "--json")
        document = json.loads(out)
        assert (code, document["sessionId"]) == (0, "s1")
        assert document["compacted"]["trigger"] == "manual"
        assert document["compacted"]["model"] == "other"
        assert document["compacted"]["tokensBefore"] > document["compacted"]["tokensAfter"]
        assert server.model.bodies[0]["model"] == "other"


def test_what_goes_wrong_is_told_and_changes_nothing(command):
    with serving(ScriptedModel([Refusal(status=401)])) as server:
        configured(server, model="up/m")
        recorded()
        code, _, err = command("sessions", "compact", "nobody")
        assert (code != 0, "no session 'nobody'" in err) == (True, True)
        code, _, err = command("sessions", "compact", "s1")
        assert code != 0
        assert "check models.providers.up.apiKey" in err
        conversation, _ = anyio.run(taken)
        assert (conversation.summary, len(conversation.messages)) == (None, 16)
