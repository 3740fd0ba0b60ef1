"""What a killed gateway left: runs that go on, runs that are told as cut off, messages (rule 3.13).

Every gateway here is a process, and it is killed with SIGKILL.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.gateway.kit import config as kit_config
from tests.gateway.kit import gateway, until
from tests.gateway.test_lifecycle import Process, inherited, settings
from tests.gateway.test_webhooks import channels, message, replies, sent, signed
from tests.sessions.events import scope
from tests.sources.core.web import page, serving
from toolcell.gateway.recovering import Recovery, RecoveryPorts
from toolcell.protocol.events import RunStarted
from toolcell.providers.scripted import tool_call
from toolcell.sessions.open_runs import OpenRun, OpenRuns
from toolcell.sessions.ownership import alive, held
from toolcell.sessions.store import SessionStore
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio
TOKEN = "t-12345678-abcdef"


async def session(process, name):
    got = await process.http.get(f"/api/sessions/{name}")
    return got.json() if got.status_code == 200 else None


async def ended_runs(process, name, count):
    async def read():
        records = await events(process.home / "sessions.db", name)
        return [each for each in records if each[0] == "run_ended"]

    return await until(read, lambda found: len(found) >= count)


async def events(database, name):
    def read():
        connection = sqlite3.connect(database)
        try:
            query = "SELECT type, run_id, body FROM events WHERE session_id = ? ORDER BY seq"
            return [(t, r, json.loads(b)) for t, r, b in connection.execute(query, (name,))]
        finally:
            connection.close()

    return await anyio.to_thread.run_sync(read)


def parked(safe=True):
    code = "await yield_control('hold'); return 'done'"
    return tool_call("exec", {"code": code, "restartSafe": safe})


class Kill:
    """A model call in the middle of which its gateway is killed."""

    process = None

    def __call__(self, _body):
        time.sleep(0.3)  # the writer has committed what came before
        self.process.stop(signal.SIGKILL)
        self.process.child.wait(timeout=20)
        return "never heard"


@asynccontextmanager
async def to_be_killed(tmp_path, where, kill):
    async with Process(tmp_path / "home", where, TOKEN) as process:
        kill.process = process
        yield process
        await anyio.to_thread.run_sync(lambda: process.child.wait(timeout=20))


async def test_a_run_that_waited_for_a_restart_safe_cell_goes_on_as_the_same_sender(tmp_path):
    """rule 3.13: rebuilt from the transcript, once, in its session, for whom it was begun."""
    async with openai_server(ScriptedModel([])) as upstream:
        kill = Kill()
        upstream.model._steps = (parked(), kill, "I go on", "never")
        where = settings(upstream.base_url)
        body = {"prompt": "go", "session": "s1", "sender": "ann"}
        async with to_be_killed(tmp_path, where, kill) as p:
            run = (await p.http.post("/api/runs", json=body)).json()
        async with Process(tmp_path / "home", where, TOKEN) as p:
            ends = await ended_runs(p, "s1", 2)
            records = await events(p.home / "sessions.db", "s1")
            more = await p.http.get("/api/runs")
        async with Process(tmp_path / "home", where, TOKEN) as p:
            await anyio.sleep(0.5)
            nothing = (await p.http.get("/api/runs")).json()["runs"]
    begun = [(r, b) for t, r, b in records if t == "run_started"]
    (first, second) = ends
    assert first[1] == run["id"]
    assert first[2]["status"] == "aborted"
    assert first[2]["continued_by"] == second[1] == begun[1][0]
    assert second[2]["status"] == "completed"
    assert [(b["sender"], b["channel"]) for _, b in begun] == [("ann", "http")] * 2
    assert [r["text"] for r in more.json()["runs"]] == ["I go on"]
    assert nothing == []


async def test_a_run_that_went_on_once_does_not_go_on_again(tmp_path):
    """A turn that kills its gateway each time would do so at every start."""
    async with openai_server(ScriptedModel([])) as upstream:
        kill = Kill()
        upstream.model._steps = (parked(), kill, kill, "never")
        where = settings(upstream.base_url)
        async with to_be_killed(tmp_path, where, kill) as p:
            await p.http.post("/api/runs", json={"prompt": "go", "session": "s1"})
        async with to_be_killed(tmp_path, where, kill):
            pass
        async with Process(tmp_path / "home", where, TOKEN) as p:
            first, second = await ended_runs(p, "s1", 2)
            await anyio.sleep(0.3)
            runs = (await p.http.get("/api/runs")).json()["runs"]
    assert first[2]["continued_by"] == second[1]
    assert second[2]["status"] == "aborted"
    assert "continued_by" not in second[2]
    assert runs == []
    assert len(upstream.model.bodies) == 3


async def test_a_run_that_another_gateway_took_first_is_left_to_it(tmp_path):
    class Late(OpenRuns):
        async def left(self):
            return [OpenRun("r1", "s1", "gateway_00000000-0000-4000-8000-000000000000")]

    async with gateway(kit_config(tmp_path), ["x"]) as g:
        await g.post("/api/runs", {"prompt": "go", "session": "s1"})
        service = g.service
        ports = RecoveryPorts(
            runtime=service.runtime,
            sessions=service.sessions,
            runs=service.runs,
            messages=service.messages,
        )
        left = Late(tmp_path / "sessions.db", "gateway_00000000-0000-4000-8000-000000000001")
        service.sessions.emit(RunStarted(scope=scope("s1", "r1"), at=1.0, channel="http"))
        await Recovery(ports, left).run()
        ends = await service.sessions.events("s1", types=("run_ended",))
    assert "r1" not in [each.run_id for each in ends]


@pytest.mark.parametrize("why", ["an open approval", "a cell that is not restart-safe"])
async def test_any_other_run_is_told_as_cut_off_and_nothing_is_done_twice(tmp_path, why):
    """BEHAVIOURS 208, rule 3.8: what it did is not known to be safe to do again."""
    async with openai_server(ScriptedModel([])) as upstream:
        kill = Kill()
        where = settings(upstream.base_url, agents={"defaults": {"model": "up/m"}})
        if why == "an open approval":
            ask = {"rules": [{"tool": "write", "decision": "ask"}]}
            where["tools"] = {"approvals": ask}
            call = tool_call("write", {"path": "done.txt", "content": "x"})
            upstream.model._steps = (call, "and on")
        else:
            upstream.model._steps = (parked(safe=False), kill, "and on")
        async with to_be_killed(tmp_path, where, kill) as p:
            run = (await p.http.post("/api/runs", json={"prompt": "go", "session": "s1"})).json()
            if why == "an open approval":
                await until(approvals(p), bool)
                kill({})
        before = len(upstream.model.bodies)
        async with Process(tmp_path / "home", where, TOKEN) as p:
            (end,) = await ended_runs(p, "s1", 1)
            open_ones = (await p.http.get("/api/approvals")).json()["approvals"]
            shown = await session(p, "s1")
            await anyio.sleep(0.3)
            runs = (await p.http.get("/api/runs")).json()["runs"]
            again = await p.chat("next", metadata={"session": "s1"})
            p.stop()
            p.child.wait(timeout=20)
        told = p.told[1]
    assert end[1] == run["id"]
    assert end[2]["status"] == "aborted"
    assert "ended before it was over" in end[2]["error"]
    assert "continued_by" not in end[2]
    assert (open_ones, runs) == ([], [])
    assert {call["status"] for call in shown["calls"]} <= {"interrupted", "completed"}
    assert len(upstream.model.bodies) == before + 1
    assert again.json()["choices"][0]["message"]["content"] == "and on"
    assert not (tmp_path / "home" / "done.txt").exists()
    assert "was cut off with its gateway" in told


async def test_nothing_is_touched_when_the_config_says_so(tmp_path):
    async with openai_server(ScriptedModel([])) as upstream:
        kill = Kill()
        upstream.model._steps = (parked(), kill)
        off = {"port": 0, "token": TOKEN, "recover": False}
        where = settings(upstream.base_url, gateway=off)
        async with to_be_killed(tmp_path, where, kill) as p:
            await p.http.post("/api/runs", json={"prompt": "go", "session": "s1"})
        async with Process(tmp_path / "home", where, TOKEN) as p:
            await anyio.sleep(0.5)
            records = await events(p.home / "sessions.db", "s1")
    assert "run_ended" not in [each[0] for each in records]


async def test_messages_of_a_killed_gateway_are_answered_once_each(tmp_path):
    """One was at work, one stood in line and never began: neither is lost, neither runs twice."""
    async with openai_server(ScriptedModel([])) as upstream, serving() as web:
        web.answers["/hook"] = page("", "")
        kill = Kill()
        upstream.model._steps = (kill, lambda b: "answer to " + b["messages"][-1]["content"])
        where = settings(upstream.base_url, channels=channels(web.url))
        async with to_be_killed(tmp_path, where, kill) as p:
            first = (await p.http.post("/webhooks/ops", **signed(message("a", id="m1")))).json()
            second = (await p.http.post("/webhooks/ops", **signed(message("b", id="m2")))).json()
        async with Process(tmp_path / "home", where, TOKEN) as p:
            told = await replies(web, 2)
            again = (await p.http.post("/webhooks/ops", **signed(message("b", id="m2")))).json()
            run = (await p.http.get(f"/api/runs/{second['runId']}")).json()
            await anyio.sleep(0.3)
        async with Process(tmp_path / "home", where, TOKEN):
            await anyio.sleep(0.5)
        assert len(sent(web, "reply")) == 2
    by_message = {each["replyTo"]: each for each in told}
    assert (by_message["m1"]["status"], by_message["m1"]["runId"]) == ("failed", first["runId"])
    assert by_message["m2"]["text"] == "answer to b"
    assert again == {**second, "duplicate": True}
    assert run["status"] == "completed"


async def test_a_reply_that_was_not_taken_is_sent_after_a_restart(tmp_path):
    """The run is over and on record; only its reply is owed, with the id it had."""
    async with openai_server(ScriptedModel(["hello ann"])) as upstream, serving() as web:
        web.answers["/hook"] = page("", "", "503 No")
        slow = channels(web.url, replyDelayMs=60_000)
        where = settings(upstream.base_url, channels=slow)
        async with Process(tmp_path / "home", where, TOKEN) as p:
            await p.http.post("/webhooks/ops", **signed(message()))
            await replies(web)
            p.stop(signal.SIGKILL)
            p.child.wait(timeout=20)
        web.answers["/hook"] = page("", "")
        async with Process(tmp_path / "home", where, TOKEN):
            (one, two) = await replies(web, 2)
    assert one == two
    assert (two["text"], two["status"]) == ("hello ann", "completed")
    assert len(upstream.model.bodies) == 1


async def test_what_another_gateway_does_is_left_alone(tmp_path):
    """Two gateways on one file: the second one starts while a run of the first goes on."""
    call = tool_call("write", {"path": "done.txt", "content": "x"})
    async with openai_server(ScriptedModel([call, "done"])) as upstream:
        where = settings(upstream.base_url, sessions={"path": str(tmp_path / "sessions.db")})
        where["tools"] = {"approvals": {"rules": [{"tool": "write", "decision": "ask"}]}}
        async with Process(tmp_path / "home", where, TOKEN) as p:
            run = (await p.http.post("/api/runs", json={"prompt": "go", "session": "s1"})).json()
            (asked,) = await until(approvals(p), bool)
            async with gateway(kit_config(tmp_path), []):
                await anyio.sleep(0.3)
            await p.http.post(f"/api/approvals/{asked['id']}", json={"decision": "approve"})
            done = (await p.http.get(f"/api/runs/{run['id']}", params={"wait": 20})).json()
    assert done["status"] == "completed"
    async with SessionStore(tmp_path / "sessions.db") as store:
        ends = [r.data() for r in await store.events("s1", types=("run_ended",))]
    assert [each["status"] for each in ends] == ["completed"]


def approvals(process):
    async def read():
        return (await process.http.get("/api/approvals")).json()["approvals"]

    return read


def test_a_program_is_alive_as_long_as_it_runs_and_not_longer(tmp_path):
    """The system gives the lock back, also after SIGKILL."""
    database, owner = tmp_path / "s.db", "gateway_00000000-0000-4000-8000-000000000000"
    program = (
        "import sys, pathlib\n"
        "from toolcell.sessions.ownership import held\n"
        f"with held(pathlib.Path({str(database)!r}), {owner!r}):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=inherited(),
        text=True,
    )
    assert child.stdout.readline() == "in\n"
    assert alive(database, owner)
    child.kill()
    child.communicate(timeout=20)
    assert list(tmp_path.glob("*.lock"))
    with held(database, owner.replace("8000", "9000")):
        assert not list(tmp_path.glob("*8000*.lock")), "a start sweeps what the dead left"
    assert not alive(database, owner)
    assert list(tmp_path.glob("*.lock")) == []
    assert alive(database, "../../etc/passwd")


async def test_one_run_is_taken_over_by_one_gateway_alone(tmp_path):
    path = tmp_path / "s.db"
    async with SessionStore(path):
        pass
    connection = sqlite3.connect(path)
    dead = "gateway_00000000-0000-4000-8000-000000000000"
    connection.execute("INSERT INTO open_runs VALUES ('r1', 's1', ?)", (dead,))
    connection.commit()
    connection.close()
    names = [f"gateway_00000000-0000-4000-8000-00000000000{n}" for n in range(1, 7)]
    taken = {}

    async def take(name):
        runs = OpenRuns(path, name)
        taken[name] = [await runs.take_over(each) for each in await runs.left()]

    with held(path, names[0]), held(path, names[1]):
        async with anyio.create_task_group() as tasks:
            for name in names[:2]:
                tasks.start_soon(take, name)
        assert sorted(len(each) and each[0] for each in taken.values()) in (
            [0, True],
            [False, True],
        )
        assert await OpenRuns(path, names[5]).left() == []
    assert [type(each) for each in await OpenRuns(path, names[5]).left()] == [OpenRun]
