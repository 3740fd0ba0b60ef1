"""What keeps children from Ray workers before anything runs, and what they are built from."""

import sys
import threading

import anyio
import pytest

from tests.swarm.ray_kit import HttpModel, tree_of
from toolcell.app.conversation import with_children
from toolcell.app.distributed.cargo import worker_config
from toolcell.app.distributed.engine import join
from toolcell.app.distributed.outbox import Outbox
from toolcell.app.distributed.returning import MAX_KEPT, Contents, Returning
from toolcell.app.distributed.worker import ChildWorker
from toolcell.app.host import Host
from toolcell.app.runtime import Parts, Runtime
from toolcell.app.settings import uses_ray
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.config.parse import parse_config
from toolcell.config.tools_tree import RaySettings
from toolcell.errors import ConfigError, ToolcellError
from toolcell.protocol.events import CallUpdated, ContentKept, Diagnostic, RunEnded, RunStarted
from toolcell.protocol.hooks import Hooks
from toolcell.protocol.scope import RunScope
from toolcell.sources.local import LocalSource

pytestmark = pytest.mark.anyio
SCOPE = RunScope(agent_id="main", session_id="s", session_key="k", run_id="r")


def swarm(**given):
    return parse_config({"tools": {"swarm": {"enabled": True, "backend": "ray", **given}}})


async def start(parts=None, host=None, **more):
    config = parse_config(tree_of(HttpModel(url="http://127.0.0.1:9/v1"), **more))
    runtime = Runtime(config, parts or Parts(load_plugins=False), host or Host())
    with_children(runtime)
    try:
        await runtime.start()
    finally:
        await runtime.aclose()


def test_the_defaults_are_two_workers_of_our_own_and_no_retries():
    given = swarm().tools.swarm.ray
    assert given == RaySettings()
    assert (given.address, given.workers, given.concurrency, given.retries) == (None, 2, 64, 0)


def test_numbers_outside_are_the_nearer_end():
    """rule 1.2."""
    given = swarm(ray={"workers": 0, "concurrency": 10**9, "retries": -1}).tools.swarm.ray
    assert (given.workers, given.concurrency, given.retries) == (1, 1000, 0)


@pytest.mark.parametrize("address", ["auto", "10.0.0.5:6379", "head.example:6379", "[::1]:6379"])
def test_an_address_is_auto_or_host_and_port(address):
    assert swarm(ray={"address": address}).tools.swarm.ray.address == address


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backend": "moon"}, r"tools\.swarm\.backend: must be 'local' or 'ray'"),
        ({"ray": {"address": "ray://h:10001"}}, r"ray\.address: .*Ray Client, which cannot"),
        ({"ray": {"address": "head"}}, r'ray\.address: must be "auto" or host:port'),
        ({"ray": {"address": ""}}, r'ray\.address: must be "auto" or host:port'),
        ({"ray": {"worker": 2}}, r"ray\.worker: unknown key; did you mean 'workers'"),
        ({"ray": {"retries": "1"}}, r"ray\.retries: must be a whole number from 0 to 10"),
        ({"ray": True}, r"tools\.swarm\.ray: must be an object"),
    ],
)
def test_what_means_nothing_is_told_with_its_place(given, said):
    """rule 11.2: a config is never half understood."""
    with pytest.raises(ConfigError) as raised:
        swarm(**given)
    text = f"{raised.value}"
    assert pytest.importorskip("re").search(said, text), text


def test_workers_are_of_the_process_and_not_of_one_agent():
    tree = {"agents": {"entries": {"a": {"tools": {"swarm": {"ray": {"workers": 3}}}}}}}
    with pytest.raises(ConfigError, match=r"agents\.entries\.a\.tools\.swarm\.ray"):
        parse_config(tree)


def test_an_agent_may_have_a_backend_of_its_own():
    entries = {"far": {"tools": {"swarm": {"enabled": True, "backend": "ray"}}}}
    config = parse_config({"agents": {"entries": entries}})
    assert uses_ray(config)
    assert not uses_ray(parse_config({"tools": {"swarm": {"backend": "ray"}}}))
    entries["far"]["tools"]["swarm"]["enabled"] = False
    assert not uses_ray(parse_config({"agents": {"entries": entries}}))


def test_on_a_worker_every_backend_is_local_and_keys_are_names():
    """Children of children run where their parent does; the worker resolves `${NAME}` itself."""
    entries = {"far": {"tools": {"swarm": {"backend": "ray"}}}}
    tree = tree_of(HttpModel(url="http://h/v1"), agents={"entries": entries})
    made = worker_config(parse_config(tree))
    assert made["models"]["providers"]["s"]["apiKey"] == "${TOOLCELL_TEST_KEY}"
    assert made["tools"]["swarm"]["backend"] == "local"
    assert not uses_ray(parse_config(made))


async def test_without_the_extra_nothing_starts_and_the_remedy_is_named(monkeypatch):
    """No silent fallback to this process."""
    monkeypatch.setenv("TOOLCELL_TEST_KEY", "k" * 12)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError) as raised:
        await start()
    assert "pip install 'toolcell[ray]'" in raised.value.message
    assert raised.value.path == "tools.swarm.backend"
    await start(backend="local")
    await start(swarm={"enabled": False})


@pytest.mark.parametrize("what", ["the tool 'locked'", "the hooks of the host"])
async def test_what_cannot_travel_is_refused_at_the_start(monkeypatch, what):
    """A tool that is there for parents is never silently missing for children."""
    monkeypatch.setenv("TOOLCELL_TEST_KEY", "k" * 12)
    lock = threading.Lock()

    def locked() -> int:
        """Wait."""
        with lock:
            return 1

    def hook(_call):
        lock.acquire()

    tools = [locked] if "tool" in what else []
    host = Host() if tools else Host(hooks=Hooks(before=[hook]))
    with pytest.raises(ConfigError, match="cannot travel to Ray workers") as raised:
        await start(Parts(tools=tools, load_plugins=False), host)
    assert what in raised.value.message
    assert "plugin" in raised.value.message


async def test_sources_given_in_code_cannot_travel(monkeypatch):
    monkeypatch.setenv("TOOLCELL_TEST_KEY", "k" * 12)
    parts = Parts(sources=[LocalSource([])], load_plugins=False)
    with pytest.raises(ConfigError, match="LocalSource"):
        await start(parts)


@pytest.mark.parametrize("port", [1, 99999])
async def test_a_cluster_that_is_not_there_is_told_in_seconds(port):
    """Ray itself tries for minutes, and cannot be stopped meanwhile."""
    with anyio.fail_after(30), pytest.raises(ToolcellError) as raised:
        await join(f"127.0.0.1:{port}", 2)
    assert f"no Ray listens at '127.0.0.1:{port}'" in raised.value.message


async def test_a_worker_of_another_version_takes_no_children():
    report = await ChildWorker("0.0.0-other", b"").start()
    assert "0.0.0-other is needed" in report.problem


async def test_a_worker_that_cannot_read_what_it_is_given_says_so():
    from toolcell.base.version import VERSION  # noqa: PLC0415

    report = await ChildWorker(VERSION, b"cnowhere_to_be_found\nthing\n.").start()
    assert "nowhere_to_be_found" in report.problem


class Kept:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


async def test_an_event_that_cannot_be_sent_is_told_and_the_rest_arrives():
    """A tool's progress may hold anything."""
    outbox, kept = Outbox(lambda _run: None), Kept()
    box = outbox.open("r", frozenset())
    outbox.emit(RunStarted(scope=SCOPE, at=1.0))
    outbox.emit(CallUpdated(scope=SCOPE, at=2.0, call_id="c", parent_id=None, update=kept.emit))
    odd = CallUpdated(scope=SCOPE, at=2.0, call_id="c", parent_id=None, update=threading.Lock())
    outbox.emit(odd)
    with anyio.fail_after(5):
        piece = await box.next()
    back = Returning(kept, SYSTEM_CLOCK, Contents())
    back.take(piece.events)
    assert [type(event) for event in kept.events] == [RunStarted, CallUpdated, Diagnostic]
    back.broke_off("it died")
    assert isinstance(kept.events[-1], RunEnded)
    assert (kept.events[-1].status, kept.events[-1].error) == ("aborted", "it died")


async def test_a_large_content_is_sent_once_and_whole_for_every_child():
    """What the parent has is named; what it never had, or does not keep, comes with its text."""
    contents, sizes, kept = Contents(), [], Kept()
    back = Returning(kept, SYSTEM_CLOCK, contents)
    for number in (0, 0, *range(MAX_KEPT + 1)):
        outbox = Outbox(lambda _run: None)
        box = outbox.open("r", contents.keys())
        text = f"{number} " * 1000
        outbox.emit(ContentKept(scope=SCOPE, at=1.0, kind="tools", key=f"k{number}", text=text))
        packed = box.rest().events
        sizes.append(len(packed[0]))
        back.take(packed)
        assert kept.events[-1].text == text
    assert sizes[0] > 2000
    assert sizes[1] < 600
    assert len(contents.keys()) == MAX_KEPT


TOLD_TO_STOP = """
import os, signal, anyio
from toolcell.app.distributed.engine import join, leave

async def main():
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        await join(None, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        async for number in signals:
            print("told", signal.Signals(number).name)
            break
        await leave()

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_program_that_is_told_to_stop_shows_no_stack_of_rays():
    with anyio.fail_after(50):
        done = await anyio.run_process([sys.executable, "-c", TOLD_TO_STOP], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"told SIGTERM\n", b"")
