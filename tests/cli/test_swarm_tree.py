"""What a person and a pipe see of child agents at work."""

import io
import sys

from rich.console import Console

from toolcell.cli.console import Progress
from toolcell.cli.swarmtree import MOST, SwarmTree
from toolcell.cli.watching import ProgressSink
from toolcell.protocol.events import ChildChanged, SwarmNote
from toolcell.protocol.scope import RunScope
from toolcell.testing.clock import FakeClock


def scope(run="parent"):
    return RunScope(agent_id="main", session_id="s", session_key="k", run_id=run)


def changed(run, state, at=100.0, *, parent="parent", label=None, phase="Draft", **more):
    return ChildChanged(
        scope=scope(parent),
        at=at,
        group_id="g",
        child_run_id=run,
        child_session_id="s2",
        child_agent_id="main",
        state=state,
        label=label or run,
        phase=phase,
        **more,
    )


def note(kind, text):
    return SwarmNote(scope=scope(), at=100.0, group_id="g", kind=kind, text=text)


def test_the_tree_shows_phases_states_and_times():
    """rule 11.1: what phase() and the children tell is what people see."""
    clock = FakeClock(wall=107.5)
    tree = SwarmTree(clock)
    for event in (
        note("phase", "Draft"),
        changed("a", "queued"),
        changed("b", "queued"),
        changed("c", "queued", phase="Judge"),
        changed("a", "running", 101.0),
        changed("b", "running", 102.0),
        changed("a", "failed", 103.5, error="the model is down"),
        note("log", "one is lost"),
    ):
        tree.take(event)
    assert list(tree.lines()) == [
        "Draft  1/2",
        "  ▸ b  running  5.5 s",
        "  ✗ a  failed  2.5 s  the model is down",
        "Judge  0/1",
        "  · c  queued",
        "one is lost",
    ]
    clock.advance(1)
    assert "  ▸ b  running  6.5 s" in tree.__rich__().plain


def test_children_of_children_stand_under_them():
    tree = SwarmTree(FakeClock())
    for event in (changed("a", "queued"), changed("x", "queued", parent="a", phase="Deep")):
        tree.take(event)
    assert list(tree.lines()) == [
        "Draft  0/1",
        "  · a  queued",
        "    Deep  0/1",
        "      · x  queued",
    ]


def test_of_many_children_those_at_work_are_shown_and_the_rest_counted():
    tree = SwarmTree(FakeClock())
    for number in range(200):
        tree.take(changed(f"c{number}", "queued"))
    tree.take(changed("c199", "running"))
    lines = list(tree.lines())
    assert len(lines) == MOST + 2
    assert "c199" in lines[1]
    assert lines[-1] == f"  … and {200 - MOST} more"


def test_a_pipe_gets_plain_lines(monkeypatch):
    """One line when a child begins and one when it is over; no control characters."""
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    sink = ProgressSink(Progress())
    for event in (
        note("phase", "Draft\x1b[31m"),
        note("run", "not shown"),
        changed("a", "queued"),
        changed("a", "running", 101.0),
        changed("a", "completed", 103.0),
    ):
        sink.emit(event)
    assert err.getvalue().splitlines() == [
        "swarm phase: Draft [31m",
        "swarm ▸ a  running  0.0 s [Draft]",
        "swarm ✓ a  completed  2.0 s [Draft]",
    ]


def test_a_terminal_gets_the_live_tree(monkeypatch):
    """It is drawn in place while the spinner runs."""
    out = io.StringIO()
    progress = Progress()
    console = Console(file=out, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "_console", console)
    sink = ProgressSink(progress)
    with progress.running("starting"):
        sink.emit(changed("a", "queued"))
        sink.emit(changed("a", "running"))
        assert progress._status.status is sink.tree
    assert "running" in out.getvalue()
