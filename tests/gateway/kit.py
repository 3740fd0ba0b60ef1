"""A gateway on a real socket, with a scripted model behind it and real clients before it."""

from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from toolcell.config.parse import parse_config
from toolcell.gateway.server import serving
from toolcell.gateway.service import ServiceParts, opened_service
from toolcell.providers.scripted import ScriptedProvider
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import Tool

TOKEN = "test-token-0123456789"
QUICKJS = {"enabled": True, "executor": "quickjs"}
ANY = {"type": "object", "additionalProperties": True}
SELECT_FILE = {
    "type": "function",
    "function": {
        "name": "select_file",
        "description": "Ask the user for a file.",
        "parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
    },
}


def tool(name, execute=None, **options):
    async def echo(arguments, _context):
        return ToolResult(content=(TextContent(name),), details=dict(arguments))

    return Tool(
        name=name, description=f"Does {name}.", parameters=ANY, execute=execute or echo, **options
    )


def config(tmp_path, **branches):
    """Return a config; branches are merged over what every test needs."""
    base = {
        "agents": {"defaults": {"model": "scripted/m"}},
        "sessions": {"path": str(tmp_path / "sessions.db")},
        "gateway": {"port": 0, "token": TOKEN},
    }
    for name, value in branches.items():
        base[name] = {**base.get(name, {}), **value}
    return parse_config(base)


@dataclass
class Gateway:
    url: str
    service: object
    model: ScriptedProvider
    openai: AsyncOpenAI
    http: httpx.AsyncClient

    async def chat(self, text="go", **more):
        return await self.openai.chat.completions.create(
            **{"model": "main", "messages": [{"role": "user", "content": text}], **more}
        )

    async def get(self, path, **more):
        return await self.http.get(path, **more)

    async def post(self, path, body=None, **more):
        return await self.http.post(path, json=body, **more)

    async def approvals(self, count=1):
        """Return the open approvals when there are `count`."""
        return await until(self._approvals, lambda found: len(found) >= count)

    async def _approvals(self):
        return (await self.get("/api/approvals")).json()["approvals"]

    async def events(self, session):
        return await self.service.sessions.events(session)

    def sent(self, index=-1):
        return self.model.bodies[index]

    def shown(self, index=-1):
        return [each["function"]["name"] for each in self.sent(index).get("tools", [])]


async def until(read, holds, seconds=10):
    """Read again and again until it holds; fails when it does not in time."""
    with anyio.fail_after(seconds):
        while True:
            found = await read()
            if holds(found):
                return found
            await anyio.sleep(0.01)


def official(url):
    """Return the official client; nothing but its base URL differs."""
    plain = DefaultAsyncHttpxClient(verify=False, timeout=30)
    return AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0, http_client=plain)


@asynccontextmanager
async def gateway(settings, steps, **parts):
    parts.setdefault("core", False)
    model = steps if isinstance(steps, ScriptedProvider) else ScriptedProvider(steps)
    async with opened_service(settings, ServiceParts(**parts)) as service:
        service.runtime.providers.add("scripted", model)
        async with (
            serving(service) as url,
            official(url) as openai,
            httpx.AsyncClient(
                base_url=url,
                headers={"authorization": f"Bearer {TOKEN}"},
                timeout=30,
                verify=False,  # noqa: S501 - plain HTTP; reading certificates costs 50 ms
            ) as http,
        ):
            yield Gateway(url, service, model, openai, http)
