"""Every case here runs on every executor in `EXECUTORS`; a new executor is one more line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from toolcell.execution.contract import Executor
from toolcell.execution.quickjs import QuickJSExecutor


@dataclass(frozen=True)
class Kind:
    """An executor and what only some can do.

    `boundary`: guest code is hostile and contained: memory counts are exact and no host object
    exists. `snapshots`: a parked program is data with a size limit.
    """

    name: str
    make: Callable[[], Executor]
    boundary: bool
    snapshots: bool


EXECUTORS = (Kind("quickjs", QuickJSExecutor, boundary=True, snapshots=True),)


@pytest.fixture(params=EXECUTORS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
async def executor(kind: Kind) -> AsyncIterator[Executor]:
    made = kind.make()
    yield made
    await made.aclose()
