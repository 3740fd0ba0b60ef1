"""What a caller is told when a tool breaks, and results that are no JSON."""

import asyncio
import math
import time
from pathlib import Path
from typing import Any

import pytest

from tests.calls.kit import Counted, core, gate, invocation, mcp
from tests.calls.test_gate import refused
from toolcell.calls.failures import MAX_MESSAGE_BYTES, guest_text
from toolcell.calls.results import MAX_RESULT_BYTES
from toolcell.errors import CallError, McpError
from toolcell.tools.content import OtherContent, TextContent, ToolResult

pytestmark = pytest.mark.anyio


async def test_a_failing_tool_keeps_its_message() -> None:
    """BR-01, BR-05, rule 3.10: the text a model needs to repair its call, as `tool_error`."""
    body = Counted(raises=RuntimeError("boom: need field X"))
    error = await refused(core("boom", body))
    assert error.message == "boom: need field X"
    assert (error.code, error.effect, error.untrusted) == ("tool_error", "unknown", False)


async def test_a_tool_may_raise_a_call_error_of_its_own() -> None:
    """BR-05: such a text was written for the caller and is passed on as it is."""
    body = Counted(raises=CallError("gone", code="unavailable", untrusted=True))
    error = await refused(mcp("fx", "x", body))
    assert (error.message, error.code, error.untrusted) == ("gone", "unavailable", True)


async def test_what_a_remote_tool_raises_is_untrusted() -> None:
    """rule 4.9, BEHAVIOURS 151: it is wrapped where a model reads it."""
    error = await refused(mcp("fx", "x", Counted(raises=McpError("server said no"))))
    assert error.untrusted


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (KeyError("id"), "no such key: 'id'"),
        (TimeoutError(), "timed out"),
        (SystemExit(3), "the tool tried to exit the process (3)"),
        (RuntimeError(), "Tool 'openclaw:core:x' failed without a message."),
        (FileNotFoundError(2, "No such file", "/home/me/x/a.txt"), "No such file: …/a.txt"),
        (
            ExceptionGroup("unhandled", [ValueError("a"), ExceptionGroup("g", [ValueError("b")])]),
            "a; b",
        ),
    ],
)
async def test_exceptions_without_a_helpful_text_get_one(
    raised: BaseException, message: str
) -> None:
    """BR-05: no class names, no task-group wrappers, no silence."""
    assert (await refused(core("x", Counted(raises=raised)))).message == message


async def test_a_cancellation_nobody_asked_for_is_a_failure() -> None:
    """BEHAVIOURS 148: a tool awaiting somebody's cancelled future must not strand its caller."""

    async def body(arguments: Any, context: Any) -> ToolResult:
        del arguments, context
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future
        raise AssertionError

    error = await refused(core("x", body))
    assert (error.code, error.message) == ("tool_error", "the tool was cancelled from within")


TRACE = (
    "step failed\nTraceback (most recent call last):\n"
    '  File "/srv/app/tools.py", line 3, in run\n    go()\n    ^^^^\n'
    "app.errors.BadInputError: need field X"
)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (TRACE, "step failed\nneed field X"),
        ('bad\n  File "/x/y.py", line 3, in z\nrest', "bad\nrest"),
        ("cannot open /home/ann/secret/a.txt now", "cannot open …/a.txt now"),
        ("cannot open '/opt/my app/conf.d/x.toml'", "cannot open '…/x.toml'"),
        (r"cannot open C:\Users\ann\a.txt", "cannot open …/a.txt"),
        ("see /usr/lib/python3/site-packages/foo/bar.py", "see …/bar.py"),
        ("GET https://api.example.com/home/v1/items failed", None),
        ("no route /v1/items", None),
        ("ratio 1/2, and/or docs/home/a.md", None),
        (
            "<app.Thing object at 0x7f00aa> of <class 'app.models.Thing'>",
            "<app.Thing object> of Thing",
        ),
    ],
)
def test_host_details_are_taken_out_and_the_rest_stays(text: str, clean: str | None) -> None:
    """BR-05, BEHAVIOURS 112: no host paths, traceback lines or class paths."""
    assert guest_text(text) == (text if clean is None else clean)


def test_a_path_that_the_caller_gave_is_kept() -> None:
    """BR-05: it is no news to the caller, and it says which of several files failed."""
    text = "no file /home/me/a.txt was found"
    assert guest_text(text, known={"path": "/home/me/a.txt"}) == text
    assert guest_text(text, known={"path": "/home/me"}) == "no file …/a.txt was found"


@pytest.mark.parametrize("piece", ["/a", "/ ", "/a b", "/home/", "C:\\a", "Traceback ", "\n\t"])
def test_a_hostile_message_is_cleaned_in_no_time(piece: str) -> None:
    """BR-05, rule 8.5: whatever a remote tool writes."""
    before = time.thread_time()
    guest_text(piece * 20_000, known={"a": "/home"})
    assert time.thread_time() - before < 1.0


def test_a_long_message_is_cut_openly() -> None:
    """rule 8.5: bounded, and never a silent cut."""
    text = guest_text("é" * 100_000)
    assert text.endswith(" [truncated]")
    assert len(text.encode()) <= MAX_MESSAGE_BYTES + 12


class Loop(dict[str, Any]):
    def __init__(self) -> None:
        self["self"] = self


def deep() -> Any:
    value: Any = 1
    for _ in range(100_000):  # from Python 3.12 on JSON text of 5,000 levels can be written
        value = [value]
    return value


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ({"rows": [1, {"when": b"x"}]}, "details.rows[1].when is a value of type bytes"),
        ({"n": math.nan}, "details.n is nan"),
        ([math.inf], "details[0] is inf"),
        ({"p": Path()}, "details.p is a value of type PosixPath"),
        ({(1, 2): 3}, "details has a key of type tuple"),
        ({1, 2}, "details is a value of type set"),
        (Loop(), "details.self contains itself (a cycle)"),
        (deep(), "is nested too deeply"),
    ],
)
async def test_details_that_are_not_json_are_a_contract_error(details: Any, why: str) -> None:
    """BEHAVIOURS 284, rule 3.4: the error says where and what; nothing is changed silently."""
    error = await refused(core("x", Counted(details)))
    assert error.message.startswith("tool returned something that is not JSON: details")
    assert why in error.message
    assert (error.code, error.effect) == ("output_contract", "unknown")


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(details={"text": "x" * (50 << 20)}),
        ToolResult(details=[["é" * (MAX_RESULT_BYTES // 2)]]),
        ToolResult(content=(TextContent("x" * (50 << 20)),)),
    ],
)
async def test_a_huge_result_is_refused_with_advice(result: ToolResult) -> None:
    """rule 8.5: at most 16 MiB; the error says what to do."""
    error = await refused(core("x", Counted(result)))
    assert "Paginate or narrow the request." in error.message
    assert error.code == "output_contract"


@pytest.mark.parametrize(
    "returned",
    [
        {"details": 1},
        ToolResult(content=("text",)),  # type: ignore[arg-type]
        ToolResult(content="text"),  # type: ignore[arg-type]
        ToolResult(content=(OtherContent({"x": b"y"}),)),
        ToolResult(content=(TextContent(b"x"),)),  # type: ignore[arg-type]
    ],
)
async def test_a_result_of_the_wrong_make_is_refused(returned: Any) -> None:
    """rule 3.4: a plugin written without types gets a clear error, not a crash later."""

    async def body(arguments: Any, context: Any) -> Any:
        del arguments, context
        return returned

    assert (await refused(core("x", body))).code == "output_contract"


async def test_the_exact_limit_fits() -> None:
    """rule 8.5: the limit itself is allowed."""
    text = "x" * (MAX_RESULT_BYTES - 2)
    made, _ = gate()
    assert (await made.call(invocation(core("x", Counted(text))))).details == text
    error = await refused(core("x", Counted(text + "x")))
    assert error.code == "output_contract"
