"""What a tool returns becomes plain JSON, or an error that names the tool."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest
from pydantic import BaseModel, TypeAdapter

from toolcell.errors import CallError
from toolcell.tools.returned import MAX_RESULT_BYTES, to_result

pytestmark = pytest.mark.anyio


class Level(Enum):
    HIGH = 3


@dataclass
class Pair:
    left: Any
    right: Any


class Model(BaseModel):
    day: date


async def test_common_python_values_have_a_plain_form():
    value = {
        "date": date(2026, 5, 9),
        "id": UUID(int=1),
        "path": Path("a/b"),
        "price": Decimal("1.50"),
        "level": Level.HIGH,
        "pair": Pair(1, (2, 3)),
        "model": Model(day=date(2026, 1, 2)),
        "set": {4},
        5: None,
    }
    result = await to_result("t", value, None)
    assert result.details == {
        "date": "2026-05-09",
        "id": "00000000-0000-0000-0000-000000000001",
        "path": "a/b",
        "price": "1.50",
        "level": 3,
        "pair": {"left": 1, "right": [2, 3]},
        "model": {"day": "2026-01-02"},
        "set": [4],
        "5": None,
    }


async def test_details_are_a_copy():
    """BEHAVIOURS 288: a value changed after it was accepted does not change the result."""
    value = {"a": [1]}
    result = await to_result("t", value, None)
    value["a"].append(2)
    assert result.details == {"a": [1]}


def cycle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def deep() -> Any:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    return value


async def unawaited() -> None: ...


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: {"a": [1.0, math.nan]}, r"\$\.a\[1\] is nan, which JSON cannot carry"),
        (lambda: math.inf, r"\$ is inf"),
        (lambda: {"data": b"\xff"}, r"\$\.data is bytes"),
        (cycle, r"\$\.self contains itself"),
        (deep, "nested deeper than 200 levels"),
        (itertools.count, r"\$ is a count, not a value. Return a list"),
        (lambda: [iter([1])], r"\$\[0\] is a list_iterator"),
        (object, r"\$ is a builtins.object, which has no JSON form"),
        (lambda: {(1, 2): 3}, "has a key of type tuple"),
        (lambda: "x" * (MAX_RESULT_BYTES + 1), "larger than 16 MiB"),
        (lambda: ["x" * 50] * 1_000_000, "larger than 16 MiB"),
        (lambda: {"a": print}, r"\$\.a is a builtins.builtin_function"),
    ],
)
@pytest.mark.parametrize("typed", [False, True])
async def test_values_json_cannot_carry_name_the_tool_and_the_place(make, problem, typed):
    """Issue, bad input: NaN, bytes, cycles, generators and 50 MB never hang."""
    adapter = TypeAdapter(Any) if typed else None
    if (typed and "no JSON form" in problem) or (typed and "builtin_function" in problem):
        problem = "Unable to serialize unknown type"
    with anyio.fail_after(10), pytest.raises(CallError, match=problem) as caught:
        await to_result("weather", make(), adapter)
    assert caught.value.message.startswith("Tool 'weather' ran, but ")
    assert (caught.value.code, caught.value.effect) == ("output_contract", "unknown")


async def test_the_same_object_twice_is_not_a_cycle():
    shared = [1]
    result = await to_result("t", {"a": shared, "b": shared}, None)
    assert result.details == {"a": [1], "b": [1]}


async def test_a_large_value_is_converted_without_holding_up_the_loop():
    """DESIGN, Concurrency: nothing blocks the event loop."""
    value = [{"n": n, "s": "abc"} for n in range(100_000)]
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.005)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        result = await to_result("t", value, None)
        group.cancel_scope.cancel()
    assert len(result.details) == 100_000
    assert ticks >= 3


async def test_lone_surrogates_survive():
    result = await to_result("t", "\ud800x", None)
    assert result.details == "\ud800x"


class Reading(BaseModel):
    celsius: list[float]


async def test_a_value_hidden_in_a_model_is_named_by_its_place_as_well():
    adapter = TypeAdapter(Reading)
    with pytest.raises(CallError, match=r"\$\.celsius\[1\] is nan"):
        await to_result("weather", Reading(celsius=[1, math.nan]), adapter)
