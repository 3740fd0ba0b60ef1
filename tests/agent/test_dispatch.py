"""One reply's calls, without a gate below: the order is the agent's own."""

import anyio
import pytest

from tests.agent.rig import tool
from toolcell.agent.contract import RunLimits
from toolcell.agent.dispatch import Dispatch
from toolcell.providers.scripted import tool_call
from toolcell.surface.plan import plan_direct
from toolcell.tools.content import ToolResult

pytestmark = pytest.mark.anyio


async def nothing(_arguments, _context):
    return ToolResult(details=None)


async def test_a_sequential_tool_overlaps_no_other_call_whatever_runs_it():
    """BEHAVIOURS 191"""
    under_way: set[int] = set()
    overlaps = []

    async def call_tool(visible, arguments, _call_id):
        number = arguments["n"]
        overlaps.append((visible.name, number, len(under_way)))
        under_way.add(number)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        under_way.discard(number)
        return ToolResult(details=number)

    plan = plan_direct([tool("free", nothing), tool("alone", nothing, execution_mode="sequential")])
    order = ["free", "free", "alone", "alone", "free"]
    calls = [tool_call(name, {"n": n}) for n, name in enumerate(order)]
    dispatch = Dispatch(calls, plan, call_tool, RunLimits())
    await dispatch.run()
    assert overlaps == [
        ("free", 0, 0),
        ("free", 1, 1),
        ("alone", 2, 0),
        ("alone", 3, 0),
        ("free", 4, 0),
    ]
    assert [message.text for message in dispatch.answers] == ["0", "1", "2", "3", "4"]
