"""`sessions_send` in a gateway: runs are begun at its desk (DESIGN knot 2)."""

import pytest

from tests.gateway.kit import config, gateway
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio


async def test_a_run_for_another_session_is_a_run_of_the_gateway(tmp_path):
    """rule 7.4, rule 8.1: its limits hold, it is on record, and it is listed."""
    call = tool_call("sessions_send", {"sessionId": "helper", "message": "count"})
    settings = config(tmp_path)
    steps = ["ready", call, "forty-two", "it said forty-two"]
    async with gateway(settings, steps, core=True) as gate:
        for session in ("helper", "boss"):
            begun = (await gate.post("/api/runs", {"prompt": "go", "session": session})).json()
            shown = (await gate.get(f"/api/runs/{begun['id']}", params={"wait": 20})).json()
            assert shown["status"] == "completed", shown
        (sent,) = await gate.service.sessions.tree("boss")
        assert (sent.result["status"], sent.result["reply"]) == ("replied", "forty-two")
        runs = (await gate.get("/api/runs")).json()["runs"]
        assert sorted(run["sessionId"] for run in runs) == ["boss", "helper", "helper"]
