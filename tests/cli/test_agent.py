"""`toolcell agent`: what is wrong with a call of it is told before anything runs."""

import io
import json

import anyio.from_thread
import pytest

from tests.cli.test_commands import toolcell
from tests.pictures import png, url
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

__all__ = ["toolcell"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--message", "  "], "the message is empty; say something: toolcell agent"),
        ([], "the message is empty; say something: toolcell agent"),
        (["hi", "there"], "unexpected: there; put several words into quotes.\nTry 'toolcell agent"),
        (["--sesion", "s"], "toolcell: Unknown option: --sesion. Did you mean --session?"),
        (["--sesion", "s", "-m", "hi"], "Unknown option: --sesion. Did you mean --session?"),
        (["hi", "--sesion", "s"], "Unknown option: --sesion. Did you mean --session?"),
        (["--sesion=s"], "unknown option '--sesion=s'"),
        (["hi"], "set agents.defaults.model"),
        (["--message", "hi", "--agent", "nobody"], "nobody"),
        (["--recover"], "--recover needs --session"),
        (["--recover", "--session", "s", "--message", "hi"], "leave --message out"),
        (["--recover", "--session", "s", "--image", "a.png"], "leave --image out"),
        (["--message", "hi", "--image", "missing.png"], "cannot read 'missing.png': No such file"),
        (["--message", "hi", "--image", __file__], "cannot be shown to a model: it is no PNG"),
        (["--recover", "--session", "s"], "session 's' has no turn to rebuild"),
        (["--message", "hi"], "set agents.defaults.model"),
    ],
)
def test_a_call_that_cannot_work_says_why(toolcell, words, says):
    """rule 3.13: `--recover` takes a session and no message."""
    code, out, err = toolcell("agent", *words)
    # 2 is a command that was written wrong, 1 one that could not do its work.
    assert (code, out) == (1 if "no turn" in says else 2, "")
    assert says in err
    assert "Traceback" not in err


def test_a_message_that_begins_with_a_dash_is_a_message(toolcell):
    code, _, err = toolcell("agent", "--message", "- buy milk", "--agent", "nobody")
    assert code == 2
    assert "nobody" in err


def test_the_message_is_read_from_standard_input(toolcell, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" ")))
    code, _, err = toolcell("agent", "--message", "-")
    assert code == 2
    assert "the message is empty" in err


def test_images_are_shown_with_the_message_and_named_in_the_session(toolcell, tmp_path):
    """Issue part 4: images are content of messages."""
    (tmp_path / "one.png").write_bytes(png(shade=1))
    (tmp_path / "two").write_bytes(png(shade=2))
    model = ScriptedModel(["two cats"])
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(openai_server(model)) as server,
    ):
        row = {"id": "m", "input": ["text", "image"]}
        provider = {"baseUrl": server.base_url, "models": [row]}
        config = {
            "models": {"providers": {"v": provider}},
            "agents": {"defaults": {"model": "v/m"}},
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        words = ["--config", "config.json", "--session", "s1", "--message", "what?"]
        code, out, _ = toolcell("agent", *words, "--image", "one.png", "--image", "two")
        assert (code, out) == (0, "two cats\n")
    images = [part["image_url"]["url"] for part in model.bodies[0]["messages"][-1]["content"][1:]]
    assert images == [url(png(shade=1)), url(png(shade=2))]
    shown = toolcell("sessions", "show", "s1", "--config", "config.json")[1]
    assert "user: what? [image image/png] [image image/png]" in shown
