"""Every case here runs on every executor in `EXECUTORS`; a new executor is one more line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from toolcell.execution.contract import Executor
from toolcell.execution.node.executor import NodeExecutor
from toolcell.execution.quickjs import QuickJSExecutor


@dataclass(frozen=True)
class Kind:
    """An executor and what only some can do.

    `boundary`: guest code is hostile and contained: memory counts are exact and no host object
    exists. `snapshots`: a parked program is data with a size limit. `unbounded`: sources that run
    to their end here although they exhaust the stack elsewhere.
    """

    name: str
    make: Callable[[], Executor]
    boundary: bool
    snapshots: bool
    unbounded: frozenset[str] = frozenset()


# V8 follows a chain of bound functions without recursion.
BOUND_CHAIN = "let f = function() {}; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()"

EXECUTORS = (
    Kind("quickjs", QuickJSExecutor, boundary=True, snapshots=True),
    Kind(
        "node",
        NodeExecutor,
        boundary=False,
        snapshots=False,
        unbounded=frozenset({BOUND_CHAIN}),
    ),
)


@pytest.fixture(params=EXECUTORS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
async def executor(kind: Kind) -> AsyncIterator[Executor]:
    made = kind.make()
    yield made
    await made.aclose()
