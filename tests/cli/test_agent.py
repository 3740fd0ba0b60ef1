"""`toolcell agent`: what is wrong with a call of it is told before anything runs."""

import io

import pytest

from tests.cli.test_commands import toolcell

__all__ = ["toolcell"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--message", "  "], "the message is empty; say something with --message"),
        ([], "the message is empty; say something with --message"),
        (["--message", "hi", "--agent", "nobody"], "nobody"),
        (["--recover"], "--recover needs --session"),
        (["--recover", "--session", "s", "--message", "hi"], "leave --message out"),
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
