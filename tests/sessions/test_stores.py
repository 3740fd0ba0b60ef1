"""What every session store must hold to, on disk and in memory."""

from contextlib import asynccontextmanager

import pytest

from tests.sessions.events import (
    answered,
    asked,
    ended,
    reading_cell,
    run_ended,
    run_started,
    said,
    scope,
    started,
)
from toolcell.errors import SessionError
from toolcell.protocol.events import (
    CallUpdated,
    ChildChanged,
    ContentKept,
    Diagnostic,
    ModelCalled,
)
from toolcell.protocol.messages import Message, Reasoning, ToolCall, Usage
from toolcell.sessions.memory import MemorySessions
from toolcell.sessions.store import MAX_UPDATES, SessionStore

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "memory"])
def opened(request, tmp_path):
    @asynccontextmanager
    async def opening(**options):
        if request.param == "memory":
            yield MemorySessions(**options)
        else:
            async with SessionStore(tmp_path / "deep" / "sessions.db", **options) as store:
                yield store

    return opening


async def put(store, events):
    for event in events:
        store.emit(event)


async def test_nested_calls_stand_under_their_exec_call_in_dispatch_order(opened):
    """rule 8.3, TR-01, TR-03, BEHAVIOURS 357: the call after `wait` belongs to the exec call."""
    async with opened() as store:
        await put(store, reading_cell())
        exec_call, wait_call = await store.tree("s1")
    assert (exec_call.call_id, wait_call.call_id) == ("c1", "c2")
    assert [child.call_id for child in exec_call.children] == ["n1", "n2", "n3"]
    assert [child.result["text"] for child in exec_call.children] == ["1", "2", "3"]
    assert {child.parent_id for child in exec_call.children} == {"c1"}
    assert wait_call.children == ()
    assert exec_call.children[0].tool_id == "openclaw:core:read"
    assert exec_call.children[0].arguments == {"path": "a.txt"}


async def test_history_is_the_conversation_without_nested_calls(opened):
    """TR-01, BEHAVIOURS 358: only exec and wait pairs go back to the provider."""
    async with opened() as store:
        await put(store, reading_cell())
        messages = await store.history("s1")
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[1].tool_calls == (ToolCall("c1", "exec", "{}"),)
    assert messages[2] == Message(role="tool", text='{"status":"waiting"}', tool_call_id="c1")


async def test_a_cell_that_fails_half_way_keeps_the_calls_it_made(opened):
    """TR-04: five completed nested calls with results stand under the failed exec call."""
    async with opened() as store:
        await put(store, [run_started(), started("c1", 1, tool="exec")])
        for n in range(5):
            await put(store, [started(f"n{n}", n + 2, parent="c1", tool="count")])
            await put(store, [ended(f"n{n}", parent="c1", tool="count", result={"n": n + 1})])
        await put(store, [ended("c1", tool="exec", status="failed", error="stop"), run_ended()])
        (node,) = await store.tree("s1")
    assert (node.status, node.error) == ("failed", "stop")
    assert [child.result for child in node.children] == [{"n": n + 1} for n in range(5)]
    assert {child.status for child in node.children} == {"completed"}


async def test_a_running_call_is_visible_before_its_end(opened):
    """TR-03: exactly one start, at once; one end."""
    async with opened() as store:
        await put(store, [started("c1", 1, tool="exec"), started("n1", 2, parent="c1")])
        (node,) = await store.tree("s1")
        assert (node.children[0].status, node.children[0].duration_ms) == ("running", None)
        await put(store, [ended("n1", parent="c1", result=1), ended("n1", parent="c1", result=2)])
        (node,) = await store.tree("s1")
    assert (node.children[0].status, node.children[0].result) == ("completed", 1)


async def test_a_call_whose_end_was_lost_is_interrupted_once_its_run_is_over(opened):
    async with opened() as store:
        await put(store, [started("c1", 1), run_ended(status="aborted")])
        (node,) = await store.tree("s1")
    assert node.status == "interrupted"
    assert node.to_dict()["isError"] is True


async def test_failed_and_blocked_nested_calls_are_marked_as_errors(opened):
    """BEHAVIOURS 359"""
    async with opened() as store:
        await put(store, [asked(("c1", "exec")), started("c1", 1, tool="exec")])
        for n, status in enumerate(("completed", "failed", "blocked")):
            await put(store, [started(f"n{n}", n + 2, parent="c1")])
            await put(store, [ended(f"n{n}", parent="c1", status=status, error=status)])
        shown = await store.show("s1")
    activity = [entry for entry in shown["transcript"] if entry["type"] == "activity"]
    assert [entry["isError"] for entry in activity] == [False, True, True]
    assert [entry["status"] for entry in activity] == ["completed", "failed", "blocked"]


async def test_the_transcript_tells_messages_and_activity_in_order(opened):
    """rule 8.3, BEHAVIOURS 357: activity names parent, run and its own id, and only parents are
    left to messages."""
    async with opened() as store:
        await put(store, reading_cell())
        shown = await store.show("s1")
    kinds = [
        (entry["type"], entry.get("id") or entry.get("callId")) for entry in shown["transcript"]
    ]
    assert [call for kind, call in kinds if kind == "activity"] == ["n1", "n2", "n3"]
    roles = [entry.get("role", "activity") for entry in shown["transcript"]]
    assert roles[:5] == ["user", "assistant", "activity", "activity", "tool"]
    activity = shown["transcript"][2]
    assert (activity["parentToolCallId"], activity["runId"]) == ("c1", "r1")
    assert shown["session"]["messages"] == 6
    assert [call["callId"] for call in shown["calls"]] == ["c1", "c2"]


async def test_runs_that_overlap_keep_answers_behind_their_calls(opened):
    one, two = scope(run="r1"), scope(run="r2")
    async with opened() as store:
        await put(
            store,
            [
                said("first", where=one),
                asked(("a", "exec"), where=one),
                said("second", where=two),
                asked(("b", "exec"), where=two),
                answered("a", "A", where=one),
                answered("b", "B", where=two),
            ],
        )
        messages = await store.history("s1")
    assert [message.text for message in messages] == ["first", "", "A", "second", "", "B"]


async def test_sessions_do_not_see_each_other(opened):
    """rule 2.5"""
    async with opened() as store:
        await put(store, [said("one"), said("two", where=scope("s2", "r2"))])
        assert [m.text for m in await store.history("s1")] == ["one"]
        assert [m.text for m in await store.history("s2")] == ["two"]
        assert await store.history("s3") == ()


async def test_sessions_are_listed_with_the_last_used_first(opened):
    async with opened() as store:
        await put(store, [run_started(), said("a", at=1.0), said("b", where=scope("s2", "r2"))])
        await put(store, [run_ended()])
        listed = await store.list_sessions()
        assert [info.session_id for info in listed] == ["s1", "s2"]
        assert [info.session_id for info in await store.list_sessions(limit=1)] == ["s1"]
    assert listed[0].to_dict() == {
        "sessionId": "s1",
        "sessionKey": "agent:s1",
        "agentId": "main",
        "createdAt": 0.0,
        "updatedAt": 10.0,
        "messages": 1,
        "runs": 1,
    }


async def test_an_unknown_session_is_named_with_the_command_that_lists_them(opened):
    async with opened() as store:
        with pytest.raises(SessionError, match=r"'nope'.*sessions list"):
            await store.show("nope")


async def test_events_are_read_in_pages(opened):
    async with opened() as store:
        await put(store, [said(str(n)) for n in range(5)])
        first = await store.events("s1", limit=2)
        rest = await store.events("s1", after=first[-1].seq)
    assert [record.data()["message"]["text"] for record in [*first, *rest]] == list("01234")
    assert [len(first), len(rest)] == [2, 3]


async def test_large_results_are_cut_with_a_marker_and_messages_are_not(opened):
    big = {"rows": ["é" * 100] * 10_000, "after": 1}
    async with opened(max_value_bytes=2000) as store:
        await put(store, [said("x" * 5000), started("c1", 1), ended("c1", result=big)])
        (node,) = await store.tree("s1")
        (message,) = await store.history("s1")
        records = await store.events("s1")
    assert node.result["truncated"] is True
    assert node.result["prefix"]["rows"][0] == "é" * 100
    assert max(len(record.body) for record in records[1:]) < 4000
    assert message.text == "x" * 5000


async def test_what_no_database_text_can_hold_is_kept_all_the_same(opened):
    hostile = {"a\ud800": "\udfff\x00 \u2028", "n": float("nan"), "b": b"x", "big": 10**2000}
    async with opened() as store:
        await put(store, [said("lone \ud83d"), started("c\ud800", 1, arguments=hostile)])
        (node,) = await store.tree("s1")
        (message,) = await store.history("s1")
    assert message.text == "lone \ud83d"
    assert node.arguments["a\ud800"] == "\udfff\x00 \u2028"
    assert (node.arguments["n"], node.arguments["b"]) == ("nan", "<bytes>")


async def test_values_nested_without_end_are_cut(opened):
    loop: list = []
    loop.append(loop)
    async with opened() as store:
        await put(store, [started("c1", 1), ended("c1", result=loop)])
        (node,) = await store.tree("s1")
    assert node.result["truncated"] is True


async def test_arguments_are_recorded_as_they_were_when_the_call_began(opened):
    arguments = {"list": [1]}
    async with opened() as store:
        store.emit(started("c1", 1, arguments=arguments))
        arguments["list"].append(2)
        (node,) = await store.tree("s1")
    assert node.arguments == {"list": [1]}


async def test_every_kind_of_event_is_kept(opened):
    model = ModelCalled(
        scope=scope(),
        at=1.0,
        model="p/m",
        tool_names=("exec", "wait"),
        request_bytes=812,
        duration_ms=3.0,
        usage=Usage(input_tokens=7, output_tokens=2),
    )
    problem = Diagnostic(
        at=1.0, level="warning", subject="mcp", message="server down", scope=scope()
    )
    async with opened() as store:
        await put(store, [model, problem])
        records = await store.events("s1")
    assert records[0].data() == {
        "model": "p/m",
        "tool_names": ["exec", "wait"],
        "request_bytes": 812,
        "duration_ms": 3.0,
        "usage": {"input": 7, "output": 2},
    }
    assert records[1].data()["message"] == "server down"


async def test_what_a_wire_wants_back_is_kept_with_the_message(opened):
    kept = Reasoning("anthropic", ({"type": "thinking", "thinking": "hm", "signature": "s=="},))
    async with opened() as store:
        store.emit(said("so", role="assistant", reasoning=kept))
        (message,) = await store.history("s1")
    assert message.reasoning == kept


async def test_a_call_that_names_itself_as_parent_makes_no_loop(opened):
    async with opened() as store:
        await put(store, [started("a", 1, parent="a"), started("b", 2, parent="c")])
        await put(store, [started("c", 3, parent="b")])
        tree = await store.tree("s1")
    assert [node.call_id for node in tree] == ["a", "b"]
    assert [child.call_id for child in tree[1].children] == ["c"]


async def test_a_storm_of_progress_is_bounded(tmp_path):
    async with SessionStore(tmp_path / "s.db") as store:
        for n in range(MAX_UPDATES * 3):
            store.emit(CallUpdated(scope=scope(), at=1.0, call_id="c", parent_id=None, update=n))
        assert len(await store.events("s1")) == MAX_UPDATES


async def test_a_deleted_session_is_gone_with_those_of_its_children(opened):
    """rule 11.1: results are kept until their group is archived, with its session."""
    child, grandchild = scope(session="child", run="rc"), scope(session="grandchild", run="rg")
    async with opened() as store:
        store.emit(child_changed(scope(), "rc", "child"))
        store.emit(child_changed(child, "rg", "grandchild"))
        for each in (scope(), child, grandchild, scope(session="other", run="ro")):
            store.emit(run_started(where=each))
            store.emit(
                ContentKept(scope=each, at=1.0, kind="tools", key="shared", text="said by both")
            )
            own = f"only {each.session_id}"
            store.emit(ContentKept(scope=each, at=1.0, kind="tools", key=own, text=f"CANARY {own}"))
        assert list(await store.delete("s1")) == ["s1", "child", "grandchild"]
        for gone in ("s1", "child", "grandchild"):
            assert await store.info(gone) is None
            assert list(await store.events(gone)) == []
            with pytest.raises(SessionError, match="no session"):
                await store.delete(gone)
        assert [each.session_id for each in await store.list_sessions()] == ["other"]
        assert dict((await store.trace("other")).contents) == {
            "shared": "said by both",
            "only other": "CANARY only other",
        }
        store.emit(run_started())
        (again,) = await store.events("s1")
        assert again.type == "run_started"


async def test_what_was_deleted_is_not_in_the_file_any_more(tmp_path):
    path = tmp_path / "sessions.db"
    async with SessionStore(path) as store:
        store.emit(said("CANARY " * 2000))
        await store.flush()
        assert any(b"CANARY" in each.read_bytes() for each in tmp_path.iterdir())
        await store.delete("s1")
        assert not any(b"CANARY" in each.read_bytes() for each in tmp_path.iterdir())


def child_changed(parent, run, session):
    return ChildChanged(
        scope=parent,
        at=1.0,
        group_id="g",
        child_run_id=run,
        child_session_id=session,
        child_agent_id="main",
        state="queued",
    )
