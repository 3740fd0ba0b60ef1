"""Events for the tests of sessions."""

from toolcell.protocol.events import (
    CallEnded,
    CallStarted,
    MessageAdded,
    RunEnded,
    RunStarted,
)
from toolcell.protocol.messages import Message, ToolCall
from toolcell.protocol.scope import RunScope


def scope(session="s1", run="r1"):
    return RunScope(agent_id="main", session_id=session, session_key=f"agent:{session}", run_id=run)


def said(text, *, at=1.0, role="user", where=None, **more):
    message = Message(role=role, text=text, **more)
    return MessageAdded(scope=where or scope(), at=at, message=message)


def asked(*calls, where=None, text=""):
    tool_calls = tuple(ToolCall(call_id, name, "{}") for call_id, name in calls)
    return said(text, role="assistant", where=where, tool_calls=tool_calls)


def answered(call_id, text, *, where=None, is_error=False):
    return said(text, role="tool", where=where, tool_call_id=call_id, is_error=is_error)


def started(call_id, number, *, parent=None, tool="read", arguments=None, where=None):
    return CallStarted(
        scope=where or scope(),
        at=float(number),
        call_id=call_id,
        parent_id=parent,
        tool_id=f"openclaw:core:{tool}",
        tool_name=tool,
        source="openclaw",
        arguments={} if arguments is None else arguments,
        started=number,
    )


def ended(call_id, *, parent=None, tool="read", status="completed", where=None, **more):
    return CallEnded(
        scope=where or scope(),
        at=9.0,
        call_id=call_id,
        parent_id=parent,
        tool_id=f"openclaw:core:{tool}",
        tool_name=tool,
        status=status,
        duration_ms=2.5,
        **more,
    )


def run_started(where=None):
    return RunStarted(scope=where or scope(), at=0.0, model="p/m")


def run_ended(where=None, status="completed", error=None):
    return RunEnded(scope=where or scope(), at=10.0, status=status, error=error)


def reading_cell():
    """TR-01: a cell reads one file twice, yields, and reads it again after `wait`."""
    file = {"path": "a.txt"}
    return [
        run_started(),
        said("go"),
        asked(("c1", "exec")),
        started("c1", 1, tool="exec"),
        started("n1", 2, parent="c1", arguments=file),
        started("n2", 3, parent="c1", arguments=file),
        ended("n2", parent="c1", result={"text": "2"}),
        ended("n1", parent="c1", result={"text": "1"}),
        ended("c1", tool="exec", result={"status": "waiting"}),
        answered("c1", '{"status":"waiting"}'),
        asked(("c2", "wait")),
        started("c2", 4, tool="wait"),
        started("n3", 5, parent="c1", arguments=file),
        ended("n3", parent="c1", result={"text": "3"}),
        ended("c2", tool="wait", result={"status": "completed"}),
        answered("c2", '{"status":"completed"}'),
        said("done", role="assistant"),
        run_ended(),
    ]
