"""A long session through the gateway, over real HTTP on both sides: issue 5 part 6, TR-06, TR-01.

The model is a server that speaks the three wires. It refuses what is too long, as its vendor would,
or has a `contextWindow`; the cell it parked at the beginning is resumed at the end.
"""

import json
import re

import pytest

from tests.gateway.kit import config, gateway, tool, until
from toolcell.providers.scripted import tool_call
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import Refusal, ScriptedModel

pytestmark = pytest.mark.anyio

WIRES = ("openai-chat", "openai-responses", "anthropic")
LIMIT = 26_000
"""Bytes of a request that the model takes, where it has no configured window."""
ERRORS = {
    "openai-chat": {
        "message": "This model's maximum context length is 8192 tokens. However, your messages "
        "resulted in 8227 tokens. Please reduce the length of the messages.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    },
    "openai-responses": {
        "message": "Your input exceeds the context window of this model. Please adjust your input "
        "and try again.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    },
    "anthropic": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 202095 tokens > 200000 maximum",
    },
}
PARK = (
    "const words = ['the', 'cell']; await yield_control('hold'); return words.join(' ') + ' LIVES'"
)


class Worker:
    """Parks a cell, reads much, and then waits for the cell by the id it still sees."""

    def __init__(self, wire, *, refuses):
        self.wire = wire
        self.refuses = refuses
        self.bodies = []
        self.summaries = []
        self.reads = 0
        self.refused = 0

    def __call__(self, body):
        text = json.dumps(body)
        if not body.get("tools"):
            self.summaries.append(text)
            return f"NOTES {len(self.summaries)}: keep on reading."
        if self.refuses and len(text) > LIMIT:
            self.refused += 1
            return Refusal(status=400, body=json.dumps({"error": ERRORS[self.wire]}))
        self.bodies.append(body)
        if len(self.bodies) == 1:
            return tool_call("exec", {"code": PARK})
        if self.reads < 12:
            self.reads += 1
            return tool_call("exec", {"code": f"return 'page {self.reads} '.repeat(500)"})
        if "LIVES" not in text.replace(json.dumps(PARK)[1:-1], "").replace("' LIVES'", ""):
            (found,) = set(re.findall(r"cm_[0-9a-f-]{36}", text))
            return tool_call("wait", {"runId": found})
        return "All read; the cell lives."


def settings(tmp_path, server, wire, *, executor="quickjs", window=None):
    row = {"id": "m"} if window is None else {"id": "m", "contextWindow": window}
    url = server.root_url if wire == "anthropic" else server.base_url
    return config(
        tmp_path,
        agents={
            "defaults": {
                "model": "up/m",
                "systemPrompt": "You read.",
                "compaction": {"reserveTokens": 1000, "keepRecentTokens": 1500},
            }
        },
        models={"providers": {"up": {"api": wire, "baseUrl": url, "apiKey": "k", "models": [row]}}},
        tools={"codeMode": {"enabled": True, "executor": executor}},
    )


def talk_of(body):
    """Return (role, text) of what is said in a request on any wire, the system prompt apart."""
    items = body.get("messages") or body.get("input")
    said = [(each.get("role") or each.get("type"), json.dumps(each)) for each in items]
    return [(role, text) for role, text in said if role not in {"system", "developer"}]


@pytest.mark.parametrize("executor", ["quickjs", "node"])
@pytest.mark.parametrize("how", ["window", "refused"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_parked_cell_survives_compaction_and_is_resumed(tmp_path, wire, how, executor):
    """BEHAVIOURS 358, TR-06: exec and wait stay as pairs, and no turn is made up."""
    worker = Worker(wire, refuses=how == "refused")
    window = None if how == "refused" else 8000
    async with openai_server(ScriptedModel([worker], repeat_last=True)) as server:
        where = settings(tmp_path, server, wire, executor=executor, window=window)
        async with gateway(where, [], tools=[tool("look")]) as g:
            stream = await g.chat(
                "read all pages",
                stream=True,
                stream_options={"include_usage": True},
                extra_headers={"x-toolcell-session": "s1"},
            )
            heard, usage = "", None
            async for chunk in stream:
                heard += "".join(choice.delta.content or "" for choice in chunk.choices)
                usage = chunk.usage or usage
            records = await g.events("s1")
            shown = (await g.get("/api/sessions/s1/messages")).json()["messages"]
            metrics = (await g.get("/metrics")).text
    assert heard == "All read; the cell lives."
    assert worker.summaries
    assert bool(worker.refused) is (how == "refused")
    last = json.dumps(worker.bodies[-1])
    assert f"NOTES {len(worker.summaries)}" in last
    assert "page 1 page 1" not in last
    for body in worker.bodies[1:]:
        talk = talk_of(body)
        # The user's words come first and only once; every call has its answer.
        assert "read all pages" in talk[0][1]
        assert sum("read all pages" in text for _, text in talk) == 1
        text = json.dumps(body)
        assert text.count("cm_") >= 1
    (parked,) = {r.data()["cell_id"] for r in records if r.type == "cell_parked"}
    ends = [r.data() for r in records if r.type == "cell_ended"]
    assert [e["status"] for e in ends if e["cell_id"] == parked] == ["completed"]
    assert "the cell LIVES" in last
    kinds = [r.data()["trigger"] for r in records if r.type == "compacted"]
    assert set(kinds) == {how}
    assert f'toolcell_compactions_total{{trigger="{how}"}} {len(kinds)}' in metrics
    # What people see is all of it, and the summaries' tokens were paid for.
    assert sum(message["role"] == "tool" for message in shown) == 14
    assert usage.prompt_tokens == 10 * (len(worker.bodies) + len(worker.summaries))


async def test_the_next_turn_goes_on_from_the_summary_also_in_another_process(tmp_path):
    worker = Worker("openai-chat", refuses=False)
    async with openai_server(ScriptedModel([worker], repeat_last=True)) as server:
        where = settings(tmp_path, server, "openai-chat", window=8000)
        headers = {"x-toolcell-session": "s1"}
        async with gateway(where, [], tools=[tool("look")]) as g:
            await g.chat("read all pages", extra_headers=headers)
        asked = len(worker.bodies)
        async with gateway(where, [], tools=[tool("look")]) as g:
            await g.chat("what next?", extra_headers=headers)
            await until(lambda: g.events("s1"), lambda found: found[-1].type == "run_ended")
    body = worker.bodies[asked]
    system, first, *_, last = body["messages"]
    assert system["content"].startswith("You read.")
    assert "NOTES" in system["content"]
    assert (first["role"], first["content"]) == ("user", "read all pages")
    assert (last["role"], last["content"]) == ("user", "what next?")
    assert "page 1 page 1" not in json.dumps(body)


async def test_a_client_that_sends_the_whole_history_is_served_too(tmp_path):
    """Such a client knows nothing of a session: its history is compacted for each run anew."""
    seen = []

    def model(body):
        seen.append(body)
        return "fine" if body.get("tools") else "NOTES: pages were read."

    history = [
        {"role": role, "content": f"{role} {n} " + "w" * 2000}
        for n in range(12)
        for role in ("user", "assistant")
    ]
    async with openai_server(ScriptedModel([model], repeat_last=True)) as server:
        where = settings(tmp_path, server, "openai-chat", window=7000)
        async with gateway(where, [], tools=[tool("look")]) as g:
            messages = [*history, {"role": "user", "content": "and now?"}]
            got = await g.openai.chat.completions.create(model="main", messages=messages)
    assert got.choices[0].message.content == "fine"
    asked, sent = seen
    assert "user 0" in asked["messages"][1]["content"]
    system, *talk = sent["messages"]
    assert "NOTES: pages were read." in system["content"]
    assert talk == messages[-len(talk) :]
    assert len(talk) < 10


async def test_without_compaction_the_client_is_told_that_it_is_too_long(tmp_path):
    def model(_body):
        return Refusal(status=400, body=json.dumps({"error": ERRORS["openai-chat"]}))

    async with openai_server(ScriptedModel([model], repeat_last=True)) as server:
        where = settings(tmp_path, server, "openai-chat")
        async with gateway(where, [], tools=[tool("look")]) as g:
            answer = await g.post(
                "/v1/chat/completions",
                {"model": "main", "messages": [{"role": "user", "content": "hi"}]},
            )
    assert answer.status_code >= 400
    assert "maximum context length" in answer.json()["error"]["message"]
    assert len(server.model.bodies) == 1
