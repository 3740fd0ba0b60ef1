"""Owns one lane run over real HTTP: a mock OpenAI endpoint, a gateway, a client, then the record.

Above: the scenario. Below: `gateway`, `testing`, `sessions`. The record is read when the gateway is
closed, as anyone would read it later.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2

from toolcell.config.parse import parse_config
from toolcell.errors import ToolcellError
from toolcell.gateway.server import serving
from toolcell.gateway.service import ServiceParts, opened_service
from toolcell.protocol.sink import Sink
from toolcell.qa.fake_plugin import write_plugin
from toolcell.qa.lanes import Lane
from toolcell.sessions.store import SessionStore
from toolcell.sessions.tool_use import tool_use
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

TOKEN: Final = "qa-scenario-token"  # noqa: S105 - of a gateway that lives for one lane
SESSION: Final = "qa-session"
LANE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRun:
    """What came of one lane.

    Attributes:
        lane: The lane.
        tools: How many tools the fake plugin has.
        bodies: Every request body the provider got, as bytes.
        answer: The text the client got.
        use: `tool_use` of the run, from the record.
        nested: Ids of nested calls, from the record.
    """

    lane: Lane
    tools: int
    bodies: tuple[bytes, ...]
    answer: str
    use: dict[str, Any]
    nested: tuple[str, ...]

    @property
    def shown(self) -> list[str]:
        """Names of the tools in the first request."""
        tools = json.loads(self.bodies[0]).get("tools", ())
        return [tool["function"]["name"] for tool in tools]

    @property
    def first_bytes(self) -> int:
        """Size of the first request."""
        return len(self.bodies[0])


async def run_lane(lane: Lane, tools: int, folder: Path, sinks: tuple[Sink, ...]) -> LaneRun:
    """Run one lane.

    Args:
        lane: The lane.
        tools: How many tools the fake plugin has.
        folder: An empty folder for its plugin, workspace and record.
        sinks: Who gets events too.

    Raises:
        ToolcellError: the gateway cannot start or refused the request.
    """
    workspace = folder / "workspace"
    workspace.mkdir()
    async with openai_server(ScriptedModel(lane.steps)) as model:
        config = parse_config(
            {
                "models": {"providers": {"mock": {"baseUrl": model.base_url, "apiKey": "qa-key"}}},
                "agents": {"defaults": {"model": "mock/mock-model", "workspace": str(workspace)}},
                "tools": lane.tools,
                "plugins": {"paths": [str(write_plugin(folder, tools))], "entryPoints": False},
                "sessions": {"path": str(folder / "sessions.db")},
                "gateway": {"port": 0, "token": TOKEN},
            }
        )
        with anyio.fail_after(LANE_SECONDS):
            async with (
                opened_service(config, ServiceParts(sinks=sinks)) as service,
                serving(service) as url,
            ):
                answer = await _asked(url)
        bodies = tuple(model.raw)
    if not bodies:
        msg = f"lane {lane.name!r}: the provider was never asked"
        raise ToolcellError(msg)
    async with SessionStore(folder / "sessions.db") as store:
        trace = await store.trace(SESSION)
    nested = [r.call_id or "" for r in trace.records if r.type == "call_started" and r.parent_id]
    return LaneRun(
        lane=lane,
        tools=tools,
        bodies=bodies,
        answer=answer,
        use=tool_use(trace)["runs"][0],
        nested=tuple(nested),
    )


async def _asked(url: str) -> str:
    async with httpx2.AsyncClient(base_url=url, timeout=LANE_SECONDS, trust_env=False) as client:
        reply = await client.post(
            "/v1/chat/completions",
            headers={"authorization": f"Bearer {TOKEN}", "x-toolcell-session": SESSION},
            json={
                "model": "main",
                "messages": [{"role": "user", "content": "Please file a ticket for the crash."}],
            },
        )
    if reply.status_code != httpx2.codes.OK:
        msg = f"the gateway answered {reply.status_code}: {reply.text[:500]}"
        raise ToolcellError(msg)
    return str(reply.json()["choices"][0]["message"]["content"])
