"""docs/gateway.md: its programs run, its routes exist."""

import json
import re
from pathlib import Path

import anyio
import json5
import pytest
from openai import OpenAI

from tests.gateway.kit import QUICKJS, TOKEN, config, gateway, until
from tests.sources.core.web import serving
from toolcell.gateway.operations import OPERATIONS
from toolcell.providers.scripted import tool_call

pytestmark = pytest.mark.anyio
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


async def test_the_examples_run_as_they_stand(tmp_path, capsys):
    first, second, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    cell = "const f = await select_file({title: 'Which?'}); return f.path"
    steps = [
        "Three files.",
        tool_call("exec", {"code": cell}),
        lambda request: "It is " + request.messages[-1].text,
    ]
    async with gateway(config(tmp_path, tools={"codeMode": QUICKJS}), steps) as g:

        def both():
            names = {"token": TOKEN}
            exec(first.replace("http://127.0.0.1:8790", g.url), names)  # noqa: S102 - our own page
            exec(second, names)  # noqa: S102 - our own page
            assert isinstance(names["client"], OpenAI)
            names["client"].close()

        await anyio.to_thread.run_sync(both)
    told = capsys.readouterr().out
    assert told.startswith("Three files.\n")
    assert "notes.txt" in told


async def test_the_sender_of_a_message_runs_as_it_stands(tmp_path, capsys):
    """Its signature is the one that the gateway checks."""
    program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[2]
    (block,) = re.findall(r"```json5\n(.*?)```", PAGE, re.DOTALL)
    secret = "a secret for what comes in"
    async with serving() as web:
        text = block.replace("https://ops.example", web.url).replace("${OPS_SECRET}", "x" * 16)
        channels = json5.loads(text.replace("${OPS_INBOUND_SECRET}", secret))["channels"]
        async with gateway(config(tmp_path, channels=channels), ["It is."]) as g:
            names = {"secret": secret}
            told = program.replace("http://127.0.0.1:8790", g.url)
            await anyio.to_thread.run_sync(lambda: exec(told, names))  # noqa: S102 - our own page
            await until(answered(web), len)
    assert capsys.readouterr().out == "started\n"
    assert json.loads(web.asked[0].body)["replyTo"] == "4711"


def answered(web):
    async def read():
        return web.asked

    return read


def test_every_route_of_the_page_exists_and_every_route_is_told():
    paths = {operation.path for operation in OPERATIONS}
    told = set(re.findall(r"(/(?:api|v1|metrics|health|webhooks)[\w/.{}]*)", PAGE))
    told = {path.rstrip("/.") for path in told} - {"/api", "/v1", "/webhooks/ops"}
    assert told <= paths | {"/api/approvals/{id}"}
    assert paths - told <= {
        "/v1/chat/completions",
        "/v1/models/{model}",
        "/api/sessions/{id}/messages",
    }
