"""The scripted executor: the contract without an engine."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from toolcell.execution.contract import (
    Answer,
    Executor,
    Faulted,
    Finished,
    GuestImage,
    GuestScript,
    Limits,
    Program,
    Refusal,
    Suspended,
)
from toolcell.execution.scripted import Ask, Say, ScriptedExecutor, ScriptError

pytestmark = pytest.mark.anyio

IMAGE = GuestImage(controller=GuestScript("none", ""), extensions=(), data="{}")


def adds() -> Generator[Ask | Say, Any, Any]:
    yield Say("begin")
    first = yield Ask("number", [1])
    second = yield Ask("number", [2])
    yield Say("end")
    return first + second


def catches() -> Generator[Ask | Say, Any, Any]:
    try:
        yield Ask("boom")
    except ScriptError as error:
        return str(error)


def fails() -> Generator[Ask | Say, Any, Any]:
    yield Ask("boom")


def made() -> Executor:
    return ScriptedExecutor({"adds": adds, "catches": catches, "fails": fails})


def program(name: str) -> Program:
    return Program(image=IMAGE, source=name)


async def test_a_script_asks_and_is_answered() -> None:
    """rule 9.1: the contract has no engine in it."""
    executor = made()
    await executor.prepare(IMAGE)
    step = await executor.start(program("adds"), Limits(), 1)
    assert isinstance(step, Suspended)
    assert [frame.text for frame in step.output] == ["begin"]
    assert step.requests[0].method == "number"
    assert await step.continuation.park() == 0
    step = await step.continuation.resume([Answer(1, "40")], 1)
    assert isinstance(step, Suspended)
    end = await step.continuation.resume([Answer(2, "2")], 1)
    assert isinstance(end, Finished)
    assert (json.loads(end.value), [frame.text for frame in end.output]) == (42, ["end"])
    assert executor.statistics()["live"] == 0
    await executor.aclose()


async def test_a_refusal_is_raised_in_the_script() -> None:
    """rule 3.10: caught or not."""
    executor = made()
    refusal = [Refusal(1, '{"message":"no"}')]
    caught = await executor.start(program("catches"), Limits(), 1)
    assert isinstance(caught, Suspended)
    end = await caught.continuation.resume(refusal, 1)
    assert isinstance(end, Finished)
    assert json.loads(end.value) == "no"
    failing = await executor.start(program("fails"), Limits(), 1)
    assert isinstance(failing, Suspended)
    fault = await failing.continuation.resume(refusal, 1)
    assert isinstance(fault, Faulted)
    assert fault.error.request_id == 1


async def test_an_unknown_script_does_not_parse() -> None:
    """rule 3.9."""
    step = await made().start(program("missing"), Limits(), 1)
    assert isinstance(step, Faulted)
    assert step.kind == "syntax"


async def test_a_dropped_script_is_closed() -> None:
    """rule 3.8."""
    executor = made()
    step = await executor.start(program("adds"), Limits(), 1)
    assert isinstance(step, Suspended)
    await step.continuation.dispose()
    await step.continuation.dispose()
    assert executor.statistics()["live"] == 0
