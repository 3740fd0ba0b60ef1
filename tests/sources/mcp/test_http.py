"""Servers over HTTP: streamable, SSE, and the 2026 revision; real processes on the loopback."""

import re

import anyio
import pytest

from tests.sources.mcp.running import http_server, running
from toolcell.errors import CallError
from toolcell.sources.mcp.settings import McpServerSettings

pytestmark = pytest.mark.anyio


def web(url: str, **more) -> McpServerSettings:
    return McpServerSettings(url=url, **more)


@pytest.mark.parametrize(
    ("flags", "settings", "protocol"),
    [
        ((), {}, "2025-11-25"),
        (("--sse",), {"transport": "sse"}, "2025-11-25"),
        (("--modern-only",), {}, "2026-07-28"),
    ],
    ids=["streamable", "sse", "modern"],
)
async def test_each_http_transport_lists_calls_and_reports(flags, settings, protocol) -> None:
    """Issue 4, part 1: streamable HTTP, SSE for old servers; headers; progress passes through."""
    with http_server(*flags) as (url, _):
        async with running({"w": web(url, headers={"x-key": "abc"}, **settings)}) as mcp:
            assert mcp.status("w").protocol == protocol
            assert mcp.status("w").server == "http-fixture 2.0"
            echo = await mcp.call("w:echo", {"v": "é"})
            assert echo.details["structuredContent"] == {"result": "é"}
            key = await mcp.call("w:header", {"name": "x-key"})
            assert key.details["structuredContent"] == {"result": "abc"}
            updates: list[object] = []
            await mcp.call("w:steps", {"n": 2}, updates=updates)
            assert [each["message"] for each in updates] == ["step 1", "step 2"]


@pytest.mark.parametrize("flags", [(), ("--modern-only",)], ids=["streamable", "modern"])
async def test_a_change_announced_over_http_is_followed(flags) -> None:
    """MC-05: by a notification, or on the stream of the 2026 revision."""
    with http_server(*flags) as (url, _):
        async with running({"w": web(url)}) as mcp:
            await mcp.call("w:add_tool", {"name": "late"})
            await mcp.until(lambda: "mcp:w:late" in mcp.ids)
            assert (await mcp.call("w:late")).details["structuredContent"] == {
                "result": "I am late"
            }


async def test_calls_over_http_overlap_and_can_be_cancelled() -> None:
    """rule 8.1, DESIGN decisions: parallel calls to one server; abort ends the request."""
    with http_server() as (url, _):
        async with running({"w": web(url)}) as mcp:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    for _ in range(30):
                        group.start_soon(mcp.call, "w:sleep", {"seconds": 0.5})
            with anyio.move_on_after(0.2) as scope:
                await mcp.call("w:sleep", {"seconds": 25})
            assert scope.cancelled_caught
            await mcp.call("w:echo", {"v": "still here"})


@pytest.mark.parametrize("flags", [(), ("--sse",)], ids=["streamable", "sse"])
async def test_what_http_cannot_carry_is_refused_before_it_is_sent(flags) -> None:
    """rule 8.5: a catchable error; hostile arguments do not take the connection down."""
    with http_server(*flags) as (url, _):
        transport = "sse" if flags else "streamable-http"
        async with running({"w": web(url, transport=transport)}) as mcp:
            for bad in ("\ud800", float("nan"), {1, 2}):
                with pytest.raises(CallError) as refused:
                    await mcp.call("w:echo", {"v": bad})
                assert (refused.value.code, refused.value.effect) == ("invalid_input", "none")
            await mcp.call("w:echo", {"v": "fine"})
            assert mcp.status("w").connects == 1


async def test_a_restarted_http_server_is_found_again() -> None:
    """MC-11, issue 4: reconnect with back-off; calls in between reject as unavailable."""
    with http_server() as (url, _):
        port = re.search(r":(\d+)/", url)[1]
        async with running({"w": web(url, start_timeout_seconds=5)}) as mcp:
            with pytest.raises(CallError) as gone:
                await mcp.call("w:crash")
            assert gone.value.code == "unavailable"
            await mcp.until(mcp.source.unavailable)
            assert mcp.ids == []
            with http_server("--port", port):
                await mcp.until(lambda: "mcp:w:echo" in mcp.ids)
                again = await mcp.call("w:echo", {"v": "back"})
                assert again.details["structuredContent"] == {"result": "back"}


async def test_a_page_that_is_no_mcp_server_is_only_unavailable() -> None:
    """Issue 2, bad input: an address that answers something else; its secrets are not shown."""
    with http_server() as (url, _):
        wrong = url.replace("/mcp", "/nothing?token=S3CRET")
        servers = {"w": web(wrong, start_timeout_seconds=5), "good": web(url)}
        async with running(servers) as mcp:
            assert [each.owner for each in mcp.source.unavailable()] == ["w"]
            await mcp.call("good:echo", {"v": "x"})
            assert "S3CRET" not in "".join(mcp.diagnostics) + repr(mcp.source.status())
