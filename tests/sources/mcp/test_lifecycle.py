"""Servers that change, fail, die, hang and lie, one after another and beside good ones."""

import secrets
import subprocess
import sys
import time
from contextlib import suppress

import anyio
import psutil
import pytest

from tests.sources.mcp.running import (
    QUICK,
    SRC,
    Events,
    GroupSpawner,
    fixture,
    run_tool,
    running,
)
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import CallError
from toolcell.sources.mcp.options import Retry
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.source import McpSource

pytestmark = pytest.mark.anyio


def children(marker: str) -> set[int]:
    """The pids of the live processes, and of their children, that were given this variable."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if marker in process.environ() and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found


async def test_a_stale_first_listing_is_never_shown() -> None:
    """MC-01: the slow first list says `old`; the change announced meanwhile wins."""
    async with running({"fx": fixture("--stale-list", "0.5")}) as mcp:
        assert "mcp:fx:old" not in mcp.ids
        assert "mcp:fx:echo" in mcp.ids
        assert mcp.status("fx").listings == 2


async def test_a_failed_first_listing_heals_without_touching_siblings() -> None:
    """MC-04: tools appear without a restart; the sibling's list counter stays 1."""
    servers = {"late": fixture("--fail-lists", "2"), "good": fixture()}
    async with running(servers) as mcp:
        assert "mcp:good:echo" in mcp.ids
        assert [each.owner for each in mcp.source.unavailable()] == ["late"]
        before = mcp.source.version
        await mcp.until(lambda: "mcp:late:echo" in mcp.ids)
        assert mcp.source.version > before
        assert mcp.source.unavailable() == ()
        stats = await mcp.call("good:stats")
        assert stats.details["structuredContent"]["listings"] == 1
        assert mcp.status("late").connects == 1
        assert (mcp.status("late").state, mcp.status("late").last_error) == ("ready", "")


async def test_a_tool_added_while_connected_appears() -> None:
    """MC-05: the next turn has it; the old list object stays as it was."""
    async with running({"fx": fixture()}) as mcp:
        before, version = mcp.source.tools(), mcp.source.version
        await mcp.call("fx:add_tool", {"name": "late"})
        await mcp.until(lambda: "mcp:fx:late" in mcp.ids)
        assert mcp.source.version == version + 1
        assert "mcp:fx:late" not in [tool.id for tool in before]
        assert (await mcp.call("fx:late")).details["content"][0]["text"] == "I am late"
        assert (await run_tool(before[0], {"v": 1})).details["structuredContent"] == {"v": 1}


async def test_a_burst_of_change_notices_costs_few_listings() -> None:
    """MC-05, MC-03: at most 3 re-lists for 100 notices, and none of them overlap."""
    async with running({"fx": fixture()}) as mcp:
        version = mcp.source.version
        await mcp.call("fx:burst", {"n": 100})
        await mcp.until(lambda: mcp.status("fx").listings >= 2)
        await anyio.sleep(1.5)
        assert 2 <= mcp.status("fx").listings <= 4
        # Nothing changed, so nobody is made to rebuild a catalog.
        assert mcp.source.version == version


async def test_a_dead_server_disappears_comes_back_and_its_calls_reject() -> None:
    """MC-11: in-flight calls reject at once, tools leave the list, others are untouched."""
    async with running({"fx": fixture(), "good": fixture()}, retry=QUICK) as mcp:
        crash, slow = mcp.tool("fx:crash"), mcp.tool("fx:sleep")
        errors: list[CallError] = []

        async def rejected(tool, arguments) -> None:
            with pytest.raises(CallError) as caught:
                await run_tool(tool, arguments)
            errors.append(caught.value)

        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            group.start_soon(rejected, slow, {"seconds": 25})
            await anyio.sleep(0.2)
            group.start_soon(rejected, crash, {})
        assert time.perf_counter() - began < 5
        assert [(e.code, e.effect) for e in errors] == [("unavailable", "unknown")] * 2
        await mcp.until(lambda: "code 3" in "".join(mcp.diagnostics))
        await mcp.call("good:count")
        await mcp.until(lambda: "mcp:fx:echo" in mcp.ids and mcp.status("fx").connects == 2)
        assert (await mcp.call("fx:count")).details["structuredContent"] == {"n": 1}
        assert mcp.status("good").connects == 1


async def test_a_call_to_a_server_that_is_gone_says_so_and_never_ran() -> None:
    """MC-11, rule 4.4: not-available, effect `none`, and a word for search (SR-12)."""
    never = Retry(first=60, longest=60)
    async with running({"fx": fixture(), "good": fixture()}, retry=never) as mcp:
        echo = mcp.tool("fx:echo")
        with pytest.raises(CallError):
            await mcp.call("fx:crash")
        await mcp.until(lambda: "mcp:fx:echo" not in mcp.ids)
        with pytest.raises(CallError, match="MCP server 'fx' is not here") as gone:
            await run_tool(echo, {"v": 1})
        assert (gone.value.code, gone.value.effect) == ("unavailable", "none")
        assert [(u.owner, u.reason) for u in mcp.source.unavailable()] == [
            ("fx", "it cannot be reached; it is tried again")
        ]


async def test_a_hanging_server_is_noticed_and_replaced() -> None:
    """Issue 4: hanging breaks nothing else and says so; after a failed ping it is started anew."""
    servers = {"fx": fixture(call_timeout_seconds=0.3), "good": fixture()}
    async with running(servers) as mcp:
        with pytest.raises(CallError, match="did not answer 'hang'"):
            await mcp.call("fx:hang")
        await mcp.call("good:count")
        await mcp.until(lambda: mcp.status("fx").connects == 2 and "mcp:fx:echo" in mcp.ids, 25)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (McpServerSettings(command="no-such-program-xyz"), "cannot run 'no-such-program-xyz'"),
        (fixture("--die", "4"), "the process ended with code 4"),
        (fixture("--mute", start_timeout_seconds=1), "not ready within 1 s"),
        (fixture("--endless", "--page", "5"), "tools/list does not end"),
        (McpServerSettings(url="http://127.0.0.1:9/mcp"), "connect"),
        (fixture("--garbage", "100000", start_timeout_seconds=10), "ended"),
    ],
    ids=["missing", "dies", "mute", "endless", "unreachable", "garbage"],
)
async def test_a_server_that_cannot_start_takes_nobody_down(
    settings: McpServerSettings, reason: str
) -> None:
    """Issue 2, bad input; SR-12: it is unavailable with a reason, its sibling works."""
    async with running({"bad": settings, "good": fixture()}) as mcp:
        assert [each.owner for each in mcp.source.unavailable()] == ["bad"]
        await mcp.call("good:count")
        assert reason in mcp.status("bad").last_error.lower() or reason in "".join(mcp.diagnostics)
        assert mcp.status("bad").state == "retrying"
        assert any("good: " in line for line in mcp.said)


async def test_the_last_words_of_a_server_are_shown() -> None:
    """Issue 4, part 7: doctor names the reason; stderr is part of it."""
    async with running({"fx": fixture("--die", "1")}) as mcp:
        assert "no licence found" in mcp.status("fx").log_tail
        assert any("no licence found" in line for line in mcp.diagnostics)


async def test_some_prose_on_stdout_is_forgiven() -> None:
    """Issue 2, bad input: servers that speak garbage; a banner is common and harmless."""
    async with running({"fx": fixture("--garbage", "20")}) as mcp:
        assert "mcp:fx:echo" in mcp.ids
        assert any("not JSON-RPC" in line for line in mcp.status("fx").log_tail)


async def test_a_flood_of_notices_and_garbage_does_not_break_the_call() -> None:
    """Issue 4: a server that floods breaks nothing else; the log stays bounded."""
    async with running({"fx": fixture(), "good": fixture()}) as mcp:
        flood = await mcp.call("fx:flood", {"n": 20_000})
        assert flood.details["content"][0]["text"] == "flooded"
        await mcp.call("good:count")
        assert len(mcp.status("fx").log_tail) <= 100


async def test_big_and_oversized_answers_are_bounded_and_do_not_block() -> None:
    """Issue 2, bad input: 50 MB. One under the limit arrives, one over it is a clear error."""
    async with running({"fx": fixture()}) as mcp:
        big = await mcp.call("fx:big", {"bytes": 8_000_000})
        assert len(big.details["content"][0]["text"]) == 8_000_000
        lag = 0.0

        async def watch() -> None:
            nonlocal lag
            while True:
                began = time.perf_counter()
                await anyio.sleep(0.005)
                lag = max(lag, time.perf_counter() - began - 0.005)

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            with pytest.raises(CallError, match="a message of 500000"):
                await mcp.call("fx:big", {"bytes": 50_000_000})
            group.cancel_scope.cancel()
        assert lag < 0.5
        await mcp.call("fx:count")
        assert mcp.status("fx").connects == 1


async def test_a_thousand_tools_on_many_pages_arrive() -> None:
    """Issue 2, bad input: servers that list 1,000 tools; pagination."""
    async with running({"fx": fixture("--extra", "1000", "--page", "50")}) as mcp:
        assert "mcp:fx:extra_0999" in mcp.ids
        assert mcp.status("fx").tool_count > 1000


async def test_odd_tools_are_named_for_doctor() -> None:
    """Issue 4, part 7: rejected schemas with reasons, in status and as diagnostics."""
    async with running({"fx": fixture("--odd")}) as mcp:
        found = {each.tool: each.reason for each in mcp.status("fx").oddities}
        assert {"wrong_type", "no_schema", "deep", "fetching"} <= set(found)
        assert {"mcp:fx:cycle", "mcp:fx:booleans", "mcp:fx:orders.fetch-one"} <= set(mcp.ids)
        assert any("wrong_type" in line for line in mcp.diagnostics)
        status = mcp.status("fx")
        assert (status.server, status.protocol, status.state) == (
            "fixture 1.0",
            "2025-11-25",
            "ready",
        )


async def test_every_child_process_ends_even_deaf_ones_and_grandchildren() -> None:
    """Issue 4, part 1: a clean end of every child process, in bounded time."""
    mark = f"MARK_{secrets.token_hex(8)}"
    servers = {"deaf": fixture("--deaf", mark=mark), "good": fixture(mark=mark)}
    async with running(servers) as mcp:
        assert len(mcp.ids) > 20
        assert len(children(mark)) == 3
        began = time.perf_counter()
    assert time.perf_counter() - began < 10
    assert children(mark) == set()
    assert all(each.state == "stopped" for each in mcp.source.status())


async def test_cancelling_the_runtime_ends_the_children_too() -> None:
    """DESIGN concurrency: connections are children of the one task group."""
    mark = f"MARK_{secrets.token_hex(8)}"
    with anyio.move_on_after(20):
        async with anyio.create_task_group() as group:
            source = McpSource(
                {"a": fixture(mark=mark), "b": fixture("--mute", mark=mark)},
                spawner=GroupSpawner(group),
                sink=Events(),
                clock=SYSTEM_CLOCK,
                on_progress=None,
            )
            group.start_soon(source.start)
            while "mcp:a:echo" not in [tool.id for tool in source.tools()]:  # noqa: ASYNC110
                await anyio.sleep(0.02)
            assert len(children(mark)) == 2
            group.cancel_scope.cancel()
    assert children(mark) == set()


async def test_closing_twice_and_closing_what_never_started_is_fine() -> None:
    """DESIGN concurrency: leaving only signals, and is safe to repeat."""
    async with running({"fx": fixture()}) as mcp:
        await mcp.source.aclose()
        await mcp.source.aclose()
        assert mcp.source.tools() == ()
    async with running({"off": fixture(enabled=False)}) as none:
        assert none.status("off").state == "disabled"
        assert none.source.tools() == none.source.unavailable() == ()


async def test_entering_and_leaving_may_happen_in_different_tasks() -> None:
    """DESIGN concurrency: a task group entered in one task and left in another would raise."""
    async with anyio.create_task_group() as group:
        source = McpSource(
            {"fx": fixture()},
            spawner=GroupSpawner(group),
            sink=Events(),
            clock=SYSTEM_CLOCK,
            on_progress=None,
        )
        async with anyio.create_task_group() as starter:
            starter.start_soon(source.start)
        assert len(source.tools()) > 10
        async with anyio.create_task_group() as closer:
            closer.start_soon(source.aclose)


def test_the_sdk_is_not_imported_until_a_server_is_configured() -> None:
    """DESIGN libraries: `import mcp` takes 1.3 s and 67 MB."""
    program = (
        "import sys, anyio\n"
        "from toolcell.sources.mcp.source import McpSource\n"
        "from toolcell.sources.mcp.settings import McpServerSettings\n"
        "off = {'x': McpServerSettings(command='y', enabled=False)}\n"
        "anyio.run(McpSource(off, spawner=None, sink=None, clock=None).start)\n"
        "assert 'mcp' not in sys.modules, 'imported'\n"
    )
    environment = {"PYTHONPATH": SRC}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=30)


def test_fixture_and_demo_servers_start_quickly() -> None:
    """Issue 2, part 11: the demo is under 10 s; its server must not import the SDK."""
    for module in ("demo_mcp", "mcp_fixture"):
        program = (
            f"import sys, toolcell.testing.{module}\n"
            "bad = {'mcp', 'pydantic', 'anyio'} & set(sys.modules)\n"
            "assert not bad, bad\n"
        )
        environment = {"PYTHONPATH": SRC}
        subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=30)


async def test_a_start_waits_for_slow_servers_only_so_long() -> None:
    """Issue 4, part 1: a server that hangs delays nobody; a late one joins."""
    began = time.perf_counter()
    late = McpServerSettings(
        command="/bin/sh",
        args=("-c", f"sleep 1.5; exec {sys.executable} -m toolcell.testing.mcp_fixture"),
        env={"PYTHONPATH": SRC},
    )
    servers = {"mute": fixture("--mute"), "late": late}
    async with running(servers, patience=0.2) as mcp:
        assert time.perf_counter() - began < 5
        assert {each.state for each in mcp.source.status()} == {"starting"}
        assert {each.owner for each in mcp.source.unavailable()} == {"mute", "late"}
        await mcp.until(lambda: "mcp:late:echo" in mcp.ids)
