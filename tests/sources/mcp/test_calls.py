"""Calls to a real server over stdio."""

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.sources.mcp.running import fixture, run_tool, running
from toolcell.errors import CallError, McpError
from toolcell.tools.tool import Group, McpOrigin, ToolKind

pytestmark = pytest.mark.anyio


async def test_tools_are_published_with_their_origin() -> None:
    """rule 4.1, rule 4.2, rule 7.3: id, group, owner, raw names; no output contract."""
    async with running({"fx": fixture()}) as mcp:
        move = mcp.tool("fx:move")
        assert (move.id, move.source, move.owner, move.group) == (
            "mcp:fx:move",
            "mcp",
            "fx",
            Group.MCP,
        )
        assert move.mcp == McpOrigin(server="fx", tool="move")
        assert move.tool.output_schema is None
        assert not move.trusted
        assert mcp.source.tools() is mcp.source.tools()


async def test_arguments_and_results_cross_unchanged() -> None:
    """rule 5.1: null is kept, surrogates and `__proto__` are ordinary data (BEHAVIOURS 227)."""
    value = {"a": None, "b": [1, 2.5, True], "c": "é\U0001f600\ud800", "__proto__": {"x": 1}}
    async with running({"fx": fixture()}) as mcp:
        result = await mcp.call("fx:echo", {"v": value})
    assert result.details["structuredContent"] == {"v": value}
    assert result.untrusted


async def test_a_value_an_exception_and_a_broken_answer_are_told_apart() -> None:
    """MC-07: `isError` resolves; a protocol error is catchable, untrusted and cleaned."""
    async with running({"fx": fixture()}) as mcp:
        failed = await mcp.call("fx:fail")
        assert failed.details == {"content": [{"type": "text", "text": "nope"}], "isError": True}
        with pytest.raises(CallError) as refused:
            await mcp.call("fx:refuse")
        assert (refused.value.code, refused.value.untrusted) == ("tool_error", True)
        assert "that is [31mnot allowed" in refused.value.message
        began = time.perf_counter()
        with pytest.raises(CallError, match="answered unreadably to 'garble'"):
            await mcp.call("fx:garble")
        assert time.perf_counter() - began < 5
        assert (await mcp.call("fx:add", {"a": 1, "b": 2})).details["structuredContent"] == {
            "sum": 3
        }


async def test_a_tool_that_keeps_its_output_promise_badly_still_answers() -> None:
    """MC-09: `move` gives content and a warning, its sibling works, nothing reconnects."""
    async with running({"fx": fixture()}) as mcp:
        moved = await mcp.call("fx:move")
        assert moved.details["content"] == [{"type": "text", "text": "moved"}]
        assert "sent none" in moved.details["warning"]
        await mcp.call("fx:count")
        assert mcp.status("fx").connects == 1


async def test_private_metadata_stays_out_end_to_end() -> None:
    """MC-13: over a real connection, through the SDK."""
    async with running({"fx": fixture("--resources")}) as mcp:
        for ident in ("leak", "picture", "$resources.list", "$prompts.list"):
            result = await mcp.call(f"fx:{ident}")
            assert "CANARY" not in json.dumps(result.to_dict()), ident


async def test_calls_to_one_server_overlap() -> None:
    """DESIGN decisions: 100 calls of 0.3 s each to one server take far less than 30 s."""
    async with running({"fx": fixture()}) as mcp:
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(mcp.call, "fx:sleep", {"seconds": 0.3})
        assert time.perf_counter() - began < 5


async def test_progress_reaches_the_caller() -> None:
    """rule 8.1: streaming updates; each report is plain data."""
    async with running({"fx": fixture()}) as mcp:
        updates: list[object] = []
        await mcp.call("fx:steps", {"n": 3}, updates=updates)
    assert updates == [
        {"progress": float(n), "total": 3.0, "message": f"step {n}"} for n in (1, 2, 3)
    ]


async def test_cancelling_a_call_tells_the_server() -> None:
    """rule 8.1: abort reaches the work; the protocol's cancel is sent and the session lives on."""
    async with running({"fx": fixture()}) as mcp:
        with anyio.move_on_after(0.3) as scope:
            await mcp.call("fx:sleep", {"seconds": 20})
        assert scope.cancelled_caught

        async def cancelled() -> int:
            stats = await mcp.call("fx:stats")
            return stats.details["structuredContent"]["cancelled"]

        with anyio.fail_after(5):
            while await cancelled() != 1:  # noqa: ASYNC110  counted by another process
                await anyio.sleep(0.02)


async def test_a_call_ends_at_its_timeout_or_its_deadline() -> None:
    """rule 8.1: whichever is shorter; the error says that the effect is unknown."""
    async with running({"fx": fixture(call_timeout_seconds=0.3)}) as mcp:
        with pytest.raises(CallError, match=r"within 0\.3 s") as timed_out:
            await mcp.call("fx:sleep", {"seconds": 20})
        assert (timed_out.value.code, timed_out.value.effect) == ("unavailable", "unknown")
        began = time.perf_counter()
        with pytest.raises(CallError, match="did not answer"):
            await mcp.call("fx:sleep", {"seconds": 20}, seconds=0.1)
        assert time.perf_counter() - began < 2


async def test_the_host_environment_does_not_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """rule 8.4: only the SDK's minimal set and what the config names.

    The markers are in the environment of this process, which starts the server: one that is handed
    on shows up among the names the server itself reads.
    """
    markers = {f"MARKER_{number}_{secrets.token_hex(4)}" for number in range(3)}
    for marker in markers:
        monkeypatch.setenv(marker, "secret")
    async with running({"fx": fixture()}) as mcp:
        found = await mcp.call("fx:environment")
    names = set(found.details["structuredContent"]["names"])
    assert "PYTHONPATH" in names, "the server reads its own environment"
    assert not names & markers
    allowed = {
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "PYTHONPATH",
        "LC_CTYPE",
        "MARKED",
    }
    assert names <= allowed


async def test_requests_of_the_server_are_refused_clearly() -> None:
    """Issue 4, part 1: sampling and elicitation are refused with a clear message."""
    async with running({"fx": fixture()}) as mcp:
        answer = (await mcp.call("fx:ask")).details["structuredContent"]
        assert "no use of the user's model (sampling)" in answer["error"]["message"]
        await mcp.call("fx:count")
        assert any("refused" in line for line in mcp.status("fx").log_tail)


class Answers:
    """Answers sampling, and nothing else."""

    methods = frozenset({"sampling/createMessage"})

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def answer(self, server: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((server, method))
        if len(self.asked) > 1:
            raise McpError("the user has had enough")
        content = {"type": "text", "text": f"{len(params['messages'])} heard"}
        return {"role": "assistant", "content": content, "model": "m"}


async def test_requests_of_the_server_are_answered_where_somebody_is_configured_to() -> None:
    """Issue 4, part 1: unless configured; a refusal of the answerer reaches the server."""
    answers = Answers()
    async with running({"fx": fixture()}, answers=answers) as mcp:
        answer = (await mcp.call("fx:ask")).details["structuredContent"]
        assert answer["result"]["content"]["text"].endswith("heard")
        refused = (await mcp.call("fx:ask")).details["structuredContent"]
        assert refused["error"]["message"] == "the user has had enough"
    assert answers.asked == [("fx", "sampling/createMessage")] * 2


async def test_server_logs_are_kept_per_server() -> None:
    """Issue 4, part 1: log messages and stderr, cleaned, in the tail that doctor shows."""
    async with running({"a": fixture(), "b": fixture()}) as mcp:
        await mcp.call("a:say", {"line": "hello\x07 there"})
        await mcp.until(lambda: len(mcp.status("a").log_tail) == 2)
        assert set(mcp.status("a").log_tail) == {"[warning] hello there", "stderr: hello there"}
        assert mcp.status("b").log_tail == ()


async def test_resources_and_prompts_are_operations() -> None:
    """DESIGN knot 4, BEHAVIOURS 225: fixed names, kind `mcp-operation`, paged, bytes described."""
    async with running({"fx": fixture("--resources"), "bare": fixture()}) as mcp:
        operations = [t for t in mcp.source.tools() if t.tool.kind is ToolKind.MCP_OPERATION]
        assert [(t.id, t.mcp.operation) for t in operations] == [
            ("mcp:fx:$resources.list", "resources.list"),
            ("mcp:fx:$resources.templates", "resources.templates"),
            ("mcp:fx:$resources.read", "resources.read"),
            ("mcp:fx:$prompts.list", "prompts.list"),
            ("mcp:fx:$prompts.get", "prompts.get"),
        ]
        everything = (await mcp.call("fx:$resources.list")).details
        assert [item["uri"] for item in everything["resources"]] == [
            "note://0",
            "note://1",
            "note://2",
        ]
        page = (await mcp.call("fx:$resources.list", {"cursor": "1"})).details
        assert (len(page["resources"]), page["nextCursor"]) == (1, "2")
        text = (await mcp.call("fx:$resources.read", {"uri": "note://1"})).details
        assert text["contents"][0]["text"] == "text of note://1"
        blob = (await mcp.call("fx:$resources.read", {"uri": "note://2"})).details
        assert "not included" in blob["contents"][0]["description"]
        prompt = (
            await mcp.call("fx:$prompts.get", {"name": "g", "arguments": {"who": "A"}})
        ).details
        assert prompt["messages"][0]["content"]["text"] == "Hello A"
        with pytest.raises(CallError, match="'uri' must be a text"):
            await mcp.call("fx:$resources.read", {})
        with pytest.raises(CallError, match="must be texts"):
            await mcp.call("fx:$prompts.get", {"name": "g", "arguments": {"who": 1}})


async def test_resource_templates_are_listed_with_what_to_fill_in() -> None:
    """BEHAVIOURS 225, MC-13: paged and bounded; malformed ones are left out and counted."""
    async with running({"fx": fixture("--resources")}) as mcp:
        listed = (await mcp.call("fx:$resources.templates")).details
        assert [each["uriTemplate"] for each in listed["resourceTemplates"]] == [
            "note://{id}",
            "note://{+path}{?page,size}",
            "note://{id:3}",
        ]
        first, second, third = listed["resourceTemplates"]
        assert first == {"uriTemplate": "note://{id}", "name": "note", "variables": ["id"]}
        assert (second["name"], second["variables"]) == (
            "a page of a note",
            ["path", "page", "size"],
        )
        assert len(second["description"]) == 16_384
        assert "variables" not in third
        assert listed["warning"] == "4 malformed item(s) left out"
        assert "CANARY" not in str(listed)
        page = (await mcp.call("fx:$resources.templates", {"cursor": "2"})).details
        assert [each["name"] for each in page["resourceTemplates"]] == [
            "a page of a note",
            "unreadable",
        ]


async def test_a_template_is_read_with_its_variables() -> None:
    """BEHAVIOURS 225: filled in as RFC 6570 says, by the operation that reads."""
    async with running({"fx": fixture("--resources")}) as mcp:
        for uri, variables, read in (
            ("note://{id}", {"id": "a b/ü?"}, "note://a%20b%2F%C3%BC%3F"),
            ("note://{+path}{?page,size}", {"path": "a/b", "page": "1"}, "note://a/b?page=1"),
            ("note://x{/parts*}", {"parts": ["a", "b"]}, "note://x/a/b"),
            ("note://plain", {}, "note://plain"),
        ):
            given = {"uri": uri, "variables": variables}
            got = (await mcp.call("fx:$resources.read", given)).details
            assert got["contents"][0]["text"] == f"text of {read}"


@pytest.mark.parametrize(
    ("uri", "variables", "why"),
    [
        ("note://{id}", {}, "no value for 'id'"),
        ("note://{id}", {"id": "1", "name": "x"}, "no variable 'name'; it has 'id'"),
        ("note://{id}", {"id": 7}, "must be texts or lists of texts"),
        ("note://{id}", ["1"], "must be an object of texts"),
        ("note://{id", {"id": "1"}, "no template that can be filled in"),
        ("note://{id}", {"id": "x" * 70_000}, "at most 65536 are sent"),
        ("note://{id}", {"id": "\ud83d"}, "half of a surrogate pair"),
        ("{v}" * 5_000, {"v": "1"}, "no template that can be filled in"),
    ],
)
async def test_variables_that_do_not_fit_send_nothing(uri: str, variables: Any, why: str) -> None:
    """BEHAVIOURS 225: the error says what to change."""
    async with running({"fx": fixture("--resources")}) as mcp:
        with pytest.raises(CallError, match=why) as caught:
            await mcp.call("fx:$resources.read", {"uri": uri, "variables": variables})
        assert (caught.value.code, caught.value.effect) == ("invalid_input", "none")


async def test_a_server_without_templates_has_none() -> None:
    """BEHAVIOURS 225: one that has resources need not know the method; other errors are errors."""
    async with running({"fx": fixture("--resources", "--templates", "none")}) as mcp:
        assert (await mcp.call("fx:$resources.templates")).details == {"resourceTemplates": []}


async def test_a_listing_that_never_ends_is_cut_with_a_cursor() -> None:
    """MC-13, rule 8.5: 10,000 items at most; the rest is said, and can be had page by page."""
    async with running({"fx": fixture("--resources", "--templates", "flood")}) as mcp:
        listed = (await mcp.call("fx:$resources.templates")).details
        assert len(listed["resourceTemplates"]) == 10_000
        assert listed["nextCursor"] == "3"
        assert "2000 item(s) over 10000" in listed["warning"]


async def test_the_same_tool_name_on_two_servers_hits_its_own() -> None:
    """MC-10: ids are looked up whole; no server wins over another."""
    async with running({"m1": fixture(), "m2": fixture()}) as mcp:
        await mcp.call("m1:count")
        await mcp.call("m1:count")
        second = await mcp.call("m2:count")
        first = await mcp.call("m1:stats")
    assert second.details["structuredContent"] == {"n": 1}
    assert first.details["structuredContent"]["calls"] == 2


async def test_ids_stay_unique_when_names_hold_colons() -> None:
    """DESIGN names: `mcp:<server>:<tool>` is never split; of two equal ids the first stays."""
    async with running({"a": fixture(), "a:b": fixture()}) as mcp:
        await mcp.call("a:add_tool", {"name": "b:echo"})
        await mcp.until(lambda: mcp.status("a").listings == 2)
        assert mcp.ids.count("mcp:a:b:echo") == 1
        assert mcp.tool("a:b:echo").owner == "a"


async def test_a_tool_from_an_older_listing_is_refused_before_it_is_sent() -> None:
    """MC-01, MC-05, rule 4.4: what the server no longer lists is not callable."""
    async with running({"fx": fixture()}) as mcp:
        old = mcp.tool("fx:count")
        await mcp.call("fx:drop_tool", {"name": "count"})
        await mcp.until(lambda: "mcp:fx:count" not in mcp.ids)
        with pytest.raises(CallError, match="no longer offers 'count'") as refused:
            await run_tool(old)
        assert (refused.value.code, refused.value.effect) == ("unavailable", "none")
