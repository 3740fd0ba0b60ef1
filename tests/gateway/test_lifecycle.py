"""The gateway as a process: start, drain on SIGTERM, kill -9, secrets in every output."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import anyio
import httpx
import pytest

import toolcell
from tests.gateway.kit import QUICKJS, until
from tests.sources.core.test_shell import alive, pids_in, until_gone
from toolcell.cli import gateway_command
from toolcell.cli.main import run
from toolcell.providers.scripted import tool_call
from toolcell.sessions.store import SessionStore
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

CANARIES = {
    "key": "CANARY-provider-key-0001",
    "token": "CANARY-gateway-token-0002",
    "environment": "CANARY-environment-0003",
    "mcp": "CANARY-mcp-env-0004",
}


def inherited():
    """Return the environment of a child that runs the code under test."""
    source = str(Path(toolcell.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source}  # noqa: TID251 - a child's environment


class Process:
    """`toolcell gateway` as a child."""

    def __init__(self, home, settings, token, environment=None):
        home.mkdir(exist_ok=True)
        self.home = home
        self.file = home / "toolcell.json"
        if settings is not None:
            self.file.write_text(json.dumps(settings))
        self.child = subprocess.Popen(
            [sys.executable, "-m", "toolcell.cli", "gateway", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env={**inherited(), "TOOLCELL_HOME": str(home), **(environment or {})},
            text=True,
        )
        line = self.child.stdout.readline()
        if not line:
            raise AssertionError(self.child.stderr.read())
        self.url = json.loads(line)["url"]
        self.http = httpx.AsyncClient(
            base_url=self.url, headers={"authorization": f"Bearer {token}"}, timeout=30
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()
        if self.child.poll() is None:
            self.child.kill()
        self.told = self.child.communicate(timeout=20)

    def stop(self, number=signal.SIGTERM):
        self.child.send_signal(number)

    async def chat(self, text, **more):
        body = {"messages": [{"role": "user", "content": text}], **more}
        return await self.http.post("/v1/chat/completions", json=body)


def settings(model_url, **more):
    return {
        "agents": {"defaults": {"model": "up/m"}},
        "models": {"providers": {"up": {"baseUrl": model_url, "apiKey": "k-12345678"}}},
        "tools": {"codeMode": QUICKJS},
        "gateway": {"port": 0, "token": "t-12345678-abcdef"},
        **more,
    }


async def test_sigterm_lets_a_run_come_to_its_end_and_takes_no_other(tmp_path):
    script = ScriptedModel([tool_call("exec", {"code": "return 1"}), "done"])
    async with openai_server(script) as upstream:
        held, answer = upstream.model, upstream.model.answer
        async with Process(
            tmp_path / "home", settings(upstream.base_url), "t-12345678-abcdef"
        ) as p:

            def stop_first(body):
                if not held.bodies:
                    p.stop()
                    time.sleep(0.3)
                return answer(body)

            held.answer = stop_first
            got = await p.chat("go")
            with pytest.raises(httpx.TransportError):
                await httpx.AsyncClient().get(f"{p.url}/health")
            code = p.child.wait(timeout=20)
    assert got.json()["choices"][0]["message"]["content"] == "done"
    assert code == 0
    assert "SIGTERM: no further requests" in p.told[1]


async def test_what_a_client_was_answered_survives_kill_9(tmp_path):
    """rule 8.3: kill -9 at any point loses at most what was not committed; the file is sound."""
    turns = 5
    steps = [
        step
        for n in range(turns)
        for step in (tool_call("exec", {"code": f"return {n}"}), f"answer {n}")
    ]
    async with openai_server(ScriptedModel([*steps, "after"])) as upstream:
        where = settings(upstream.base_url)
        async with Process(tmp_path / "home", where, "t-12345678-abcdef") as p:
            for n in range(turns):
                got = await p.chat(f"turn {n}", metadata={"session": "s1"})
                assert got.json()["choices"][0]["message"]["content"] == f"answer {n}"
            p.stop(signal.SIGKILL)
            p.child.wait(timeout=20)
        database = tmp_path / "home" / "sessions.db"
        check = sqlite3.connect(database)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()
        async with SessionStore(database) as store:
            history = await store.history("s1")
        assert [m.text for m in history if m.role == "user"] == [f"turn {n}" for n in range(turns)]
        assert [m.text for m in history if m.role == "assistant" and m.text][-1] == "answer 4"
        async with Process(tmp_path / "home", where, "t-12345678-abcdef") as p:
            got = await p.chat("more", metadata={"session": "s1"})
    assert got.json()["choices"][0]["message"]["content"] == "after"
    assert len(upstream.model.bodies[-1]["messages"]) == len(history) + 1


async def test_kill_9_in_the_middle_of_a_cell_leaves_a_session_that_goes_on(tmp_path):
    """rule 3.8, BEHAVIOURS 208: nothing parked survives, and the conversation stays whole."""
    steps = [tool_call("exec", {"code": "await new Promise(() => {})"}), "after"]
    async with openai_server(ScriptedModel(steps)) as upstream:
        where = settings(upstream.base_url)
        async with Process(tmp_path / "home", where, "t-12345678-abcdef") as p:
            cell = {"code": "await yield_control(); return 1"}
            upstream.model._steps = (tool_call("exec", cell), _hold(p), "after")
            with pytest.raises(httpx.TransportError):
                await p.chat("go", metadata={"session": "s1"})
            p.child.wait(timeout=20)
        async with Process(tmp_path / "home", where, "t-12345678-abcdef") as p:
            got = await p.chat("and now?", metadata={"session": "s1"})
            state = (await p.http.get("/api/health")).json()
    assert got.json()["choices"][0]["message"]["content"] == "after"
    roles = [m["role"] for m in upstream.model.bodies[-1]["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]
    assert state["statistics"]["continuations"]["parked"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="who left the group is found on Linux")
async def test_kill_9_leaves_no_shell_command_behind(tmp_path):
    """A gateway that is killed can end nothing itself; its guard does, in the background too."""
    pids = tmp_path / "home" / "pids"
    steps = [
        tool_call("exec", {"command": "echo $$ >> pids; sleep 300", "background": True}),
        tool_call("exec", {"command": "setsid sleep 300 & echo $! >> pids; sleep 300"}),
    ]
    allowed = {"approvals": {"rules": [{"tool": "exec", "decision": "allow"}]}}
    async with openai_server(ScriptedModel(steps)) as upstream:
        where = settings(upstream.base_url, tools=allowed)
        async with Process(tmp_path / "home", where, "t-12345678-abcdef") as p:
            await p.http.post("/api/runs", json={"prompt": "go"})
            found = await pids_in(pids, 2)
            assert all(alive(pid) for pid in found)
            p.stop(signal.SIGKILL)
            await until_gone(found)


def _hold(process):
    def kill(_body):
        time.sleep(0.3)  # the writer has committed what came before
        process.stop(signal.SIGKILL)
        return "never heard"

    return kill


async def test_a_config_of_the_older_contract_is_migrated_at_start(tmp_path):
    """rule 1.3: only this key changes, and it is told."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "toolcell.json").write_text(
        '{ // mine\n  tools: {codeMode: {enabled: true, runtime: "quickjs-wasi",'
        ' languages: ["javascript"]}},\n  gateway: {port: 0, token: "t-12345678-abcdef"} }'
    )
    async with Process(home, None, "t-12345678-abcdef") as p:
        health = await p.http.get("/health")
        p.stop()
        assert p.child.wait(timeout=20) == 0
    text = (home / "toolcell.json").read_text()
    assert health.json() == {"status": "ok"}
    assert "// mine" in text
    assert 'executor: "quickjs"' in text
    assert "languages" in text
    assert "runtime" not in text
    assert 'need guestApi: "tools"' in p.told[1]


async def test_a_model_that_cannot_be_asked_is_told_at_start(tmp_path):
    """The gateway serves all the same: other agents may have models that work."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "toolcell.json").write_text(
        '{ gateway: {port: 0, token: "t-12345678-abcdef"}, agents: {defaults: {model: "locl/a"}},'
        ' models: {providers: {local: {baseUrl: "http://127.0.0.1:9/v1"}}} }'
    )
    async with Process(home, None, "t-12345678-abcdef") as p:
        assert (await p.http.get("/health")).status_code == 200
        p.stop()
        assert p.child.wait(timeout=20) == 0
    assert "warning: model locl/a (main): models.providers.locl: unknown provider" in p.told[1]


async def test_a_call_that_waits_for_a_person_is_told_to_the_operator(tmp_path):
    """With the command that answers it; nobody can answer what nobody knows of."""
    script = ScriptedModel(
        [tool_call("exec", {"code": "return await ls({})"}), "done"], repeat_last=True
    )
    async with openai_server(script) as upstream:
        where = settings(upstream.base_url)
        where["tools"]["approvals"] = [{"tool": "ls", "decision": "ask", "reason": "private"}]
        async with (
            Process(tmp_path / "home", where, "t-12345678-abcdef") as p,
            anyio.create_task_group() as tasks,
        ):

            async def waiting():
                return (await p.http.get("/api/approvals")).json()["approvals"]

            tasks.start_soon(p.chat, "go")
            (question,) = await until(waiting, len)
            await p.http.post(f"/api/approvals/{question['id']}", json={"decision": "approve"})
    asked = "openclaw:core:ls of agent main waits for a person (private)"
    assert f"{asked}: toolcell approvals approve {question['id']}, or deny" in p.told[1]


async def test_secrets_are_in_no_answer_event_database_or_log(tmp_path):
    """SE-08: planted in config and environment, leaked by a tool, a model and a program."""
    leak = " ".join(CANARIES.values())
    cell = f"const got = await exec({{command: 'echo $LEAK'}});text('{leak}'); return got"
    steps = [
        tool_call("exec", {"code": cell}),
        lambda body: "I saw " + leak + " and " + body["messages"][-1]["content"][-400:],
    ]
    async with openai_server(ScriptedModel(steps * 3)) as upstream:
        where = settings(
            upstream.base_url,
            models={"providers": {"up": {"baseUrl": upstream.base_url, "apiKey": "${UP_KEY}"}}},
            gateway={"port": 0, "token": "${GATE}"},
            mcp={
                "servers": {"broken": {"command": "/nonexistent/x", "env": {"K": CANARIES["mcp"]}}}
            },
        )
        where["tools"]["approvals"] = {"rules": [{"tool": "exec", "decision": "allow"}]}
        environment = {
            "UP_KEY": CANARIES["key"],
            "GATE": CANARIES["token"],
            "SOME_API_KEY": CANARIES["environment"],
            "LEAK": leak,
        }
        process = Process(tmp_path / "home", where, CANARIES["token"], environment)
        async with process as p:
            seen = []
            for more in ({}, {"stream": True}):
                got = await p.chat("say " + leak, metadata={"session": "s1"}, **more)
                assert got.status_code == 200, got.text
                seen.append(got.text)
            run_id = (await p.http.post("/api/runs", json={"prompt": leak})).json()["id"]
            seen.append((await p.http.get(f"/api/runs/{run_id}", params={"wait": 20})).text)
            for path in (
                "/api/sessions/s1",
                "/api/sessions/s1/messages",
                "/api/sessions",
                "/api/runs",
                "/api/tools",
                "/api/health",
                "/api/approvals",
                "/api/openapi.json",
                "/metrics",
                f"/api/events?run={run_id}",
            ):
                seen.append((await p.http.get(path)).text)  # noqa: PERF401 - one after another
            p.stop()
            assert p.child.wait(timeout=20) == 0
        stored = b"".join(
            f.read_bytes() for f in (tmp_path / "home").rglob("*") if f.name != "toolcell.json"
        )
    outputs = [*seen, *p.told, stored.decode("utf-8", "replace")]
    assert "[redacted]" in seen[0]
    assert "[redacted]" in seen[1]
    for output in outputs:
        for name, canary in CANARIES.items():
            assert canary not in output, (name, output[:2000])
    assert upstream.headers[0]["authorization"] == f"Bearer {CANARIES['key']}"


def test_an_address_in_use_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code = run(["gateway", "--port", str(taken.getsockname()[1])])
    assert code == 2
    told = capsys.readouterr().err
    assert "cannot listen on 127.0.0.1" in told
    assert "is another gateway running? --port takes another one" in told


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_told(tmp_path, monkeypatch, capsys, port):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["gateway", f"--port={port}"]) == 2
    assert f"gateway.port: {port} is no port: 0 to 65535" in capsys.readouterr().err


def test_a_missing_extra_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TOOLCELL_HOME", str(tmp_path))
    monkeypatch.setattr(gateway_command, "NEEDED", ("starlette", "not_installed_at_all"))
    assert run(["gateway"]) == 1
    assert "pip install 'toolcell[gateway]'" in capsys.readouterr().err
