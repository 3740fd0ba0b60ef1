"""Every wire over HTTP, each with the same model behind it."""

from dataclasses import dataclass

from toolcell.protocol.messages import Message, ModelRequest, ToolDefinition
from toolcell.providers.anthropic import AnthropicProvider
from toolcell.providers.openai_chat import OpenAIChatProvider
from toolcell.providers.openai_responses import OpenAIResponsesProvider
from toolcell.providers.wire import WireSettings
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

KEY = "sk-canary-123"


@dataclass(frozen=True)
class Wire:
    name: str
    make: type
    root: bool = False

    def open(self, server, **settings):
        base_url = server.root_url if self.root else server.base_url
        settings = {"api_key": KEY, "base_url": base_url, **settings}
        return self.make(WireSettings(provider_id="vendor", **settings))


CHAT = Wire("openai-chat", OpenAIChatProvider)
RESPONSES = Wire("openai-responses", OpenAIResponsesProvider)
ANTHROPIC = Wire("anthropic", AnthropicProvider, root=True)
WIRES = [CHAT, RESPONSES, ANTHROPIC]

EXEC = ToolDefinition(
    name="exec",
    description="Run code.",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}},
)
ASK = ModelRequest(
    model="m1",
    messages=(Message(role="system", text="Be brief."), Message(role="user", text="Hé 你好")),
    tools=(EXEC,),
    options={"temperature": 0},
)


async def complete(wire, steps, request=ASK, *, check_payload=None, on_text=None, **settings):
    async with openai_server(ScriptedModel(steps)) as server:
        provider = wire.open(server, **settings)
        try:
            reply = await provider.complete(request, check_payload=check_payload, on_text=on_text)
        finally:
            await provider.aclose()
    return reply, server
