"""Shell commands end with the process that started them, also when that is killed.

The process is a real one and is ended with SIGKILL, which no program can do anything about.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import toolcell
from tests.sources.core.conftest import call
from tests.sources.core.test_shell import alive, pids_in, shell, until_gone
from toolcell.errors import CallError
from toolcell.sources.core import guarding, process_guard
from toolcell.sources.core.guarding import Guard

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="who left the group is found on Linux"),
]

PROGRAM = """
import os, sys, anyio
from pathlib import Path
from tests.sources.core.test_shell import shell
from tests.sources.core.conftest import call
from toolcell.sources.core.workspace import WorkspaceRoots

async def main():
    async with shell(WorkspaceRoots([Path(sys.argv[1])])) as (run, _):
        await call(run, command=sys.argv[2], background=True)
        if sys.argv[3] == "forked" and not os.fork():
            import time; time.sleep(60)
        print("started", flush=True)
        if sys.argv[3] == "asked":
            sys.stdin.readline()
        await call(run, command="echo $$ >> pids; sleep 300")

anyio.run(main)
"""


@contextmanager
def started(folder, command, how="plain"):
    """Run a process that has one command in the background and one that it waits for."""
    paths = [str(Path(toolcell.__file__).parents[1]), str(Path(__file__).parents[3])]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), command, how],
        env={"PYTHONPATH": os.pathsep.join(paths), "PATH": os.defpath},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout.readline() == b"started\n"
            yield process
        finally:
            process.kill()
            for pid in map(int, (folder / "pids").read_text().split()):
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)


def guards_of(pid):
    """Return the guards that a process has started."""
    wanted = [process_guard.__file__, str(pid)]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if words[-3:-1] == wanted:
                found.append(int(entry.name))
    return found


TREE = (
    "echo $$ >> pids; "
    "sleep 300 & echo $! >> pids; "
    "setsid sleep 300 & echo $! >> pids; "
    "env -i sleep 300 & echo $! >> pids; "
    "sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 1; done'"
)


async def test_a_killed_process_leaves_no_command_behind(root):
    """In the background or not, in the group or out of it, deaf to SIGTERM or without a mark."""
    with started(root, TREE) as process:
        pids = await pids_in(root / "pids", 6)
        (guard,) = guards_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        await until_gone([*pids, guard])


async def test_a_whole_group_may_be_killed(root):
    """The guard is of no group that somebody ends with the process."""
    with started(root, TREE) as process:
        pids = await pids_in(root / "pids", 6)
        os.killpg(process.pid, signal.SIGKILL)
        await until_gone(pids)


async def test_a_command_may_tidy_up_first(root):
    # What it says itself is read by nobody any more: the shell would end of SIGPIPE.
    tidy = (
        "exec 2> /dev/null; trap 'echo tidy > told; exit' TERM; echo $$ >> pids; "
        "while :; do sleep 0.05; done"
    )
    with started(root, tidy) as process:
        pids = await pids_in(root / "pids", 2)
        os.kill(process.pid, signal.SIGKILL)
        await until_gone(pids)
    assert (root / "told").read_text() == "tidy\n"


async def test_a_fork_that_lives_on_does_not_keep_the_guard_waiting(root):
    """It holds the other end of the pipe; the guard looks at its parent as well."""
    with started(root, "echo $$ >> pids; sleep 300", "forked") as process:
        pids = await pids_in(root / "pids", 2)
        os.kill(process.pid, signal.SIGKILL)
        await until_gone(pids)
        os.killpg(process.pid, signal.SIGKILL)


async def test_a_guard_that_was_killed_is_replaced_and_told_of_all(root):
    with started(root, "echo $$ >> pids; sleep 300", "asked") as process:
        await pids_in(root / "pids", 1)
        (first,) = guards_of(process.pid)
        os.kill(first, signal.SIGTERM)  # it is deaf to what a whole session may be sent
        await anyio.sleep(0.1)
        assert alive(first)
        os.kill(first, signal.SIGKILL)
        await until_gone([first])
        process.stdin.write(b"\n")
        process.stdin.flush()
        pids = await pids_in(root / "pids", 2)
        (second,) = guards_of(process.pid)
        assert second != first
        process.kill()
        await until_gone([*pids, second])


async def test_the_guard_is_there_from_the_first_command_to_the_end_of_the_runtime(workspace):
    async with shell(workspace) as (run, _):
        assert guards_of(os.getpid()) == []
        await call(run, command="true")
        first = guards_of(os.getpid())
        await call(run, command="true")
        assert guards_of(os.getpid()) == first
        assert len(first) == 1
    assert guards_of(os.getpid()) == []


async def test_a_command_that_is_over_is_none_of_its_business(workspace, root):
    """What a command left behind by its own wish is not ended later, nor a group of that number."""
    async with shell(workspace) as (run, _):
        await call(run, command="env -i setsid sleep 300 & echo $! >> pids; sleep 1")
        (left,) = await pids_in(root / "pids", 1)
    try:
        assert alive(left)
    finally:
        os.kill(left, signal.SIGKILL)


async def test_without_a_guard_no_command_begins(workspace, root, monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    for python, says in ((str(broken), "does not start"), ("", "no Python to run its guard")):
        monkeypatch.setattr(guarding.sys, "executable", python)
        async with shell(workspace) as (run, _):
            with pytest.raises(CallError, match=says) as caught:
                await call(run, command="echo ran > ran")
        assert caught.value.effect == "none"
        assert not (root / "ran").exists()


async def test_a_closed_guard_takes_no_command():
    async with anyio.create_task_group() as group:
        guard = Guard()
        group.start_soon(guard.life)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    with pytest.raises(OSError, match="the runtime is closing"):
        guard.watch("sh_1")


def test_it_starts_in_a_process_with_many_descriptors():
    """A gateway with 200 sessions has more than 1,024, the most that `select` takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2_048 if hard == resource.RLIM_INFINITY else min(hard, 2_048)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    guard, held = Guard(), [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        guard.watch("a")
        assert alive(guard.pid)
    finally:
        guard._close()
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fill(pipe):
    for size in (4_096, 1):
        with suppress(BlockingIOError):
            while True:
                os.write(pipe, b"x" * size)


@pytest.fixture
def guard():
    guard = Guard()
    yield guard
    guard._drop()  # also one that a failed test has stopped


def stopped_with_a_full_pipe(guard):
    os.kill(guard.pid, signal.SIGSTOP)
    fill(guard._process.stdin.fileno())
    return guard.pid


@contextmanager
def groups(count):
    """Process groups that stand for those of commands, or for what has their numbers later."""
    started = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(count)]
    try:
        yield started
    finally:
        for each in started:
            each.kill()
            each.wait()


def ended(guard):
    """Let the guard end what it watches, as it does when this process is killed."""
    process = guard._process
    if process is not None:
        os.kill(process.pid, signal.SIGCONT)
        process.stdin.close()
        process.wait(10)


def test_a_guard_that_cannot_be_told_of_an_end_is_replaced(guard):
    """Else it would end the group of a command that is over, which may be another's by then."""
    with groups(2) as (over, left):
        guard.watch("over", over.pid)
        guard.watch("left", left.pid)
        first = stopped_with_a_full_pipe(guard)
        guard.forget("over")
        assert not alive(first)
        assert guard.pid not in {first, None}
        ended(guard)
        assert left.wait(10) == -signal.SIGTERM
        assert over.poll() is None


def test_a_guard_that_cannot_be_told_of_the_last_end_goes(guard):
    """No command is left that needs one; the next has a new one."""
    with groups(2) as (over, later):
        guard.watch("over", over.pid)
        first = stopped_with_a_full_pipe(guard)
        guard.forget("over")
        assert not alive(first)
        assert guard.pid is None
        guard.watch("later", later.pid)
        ended(guard)
        assert later.wait(10) == -signal.SIGTERM
        assert over.poll() is None


def test_commands_that_lost_their_guard_get_another_as_soon_as_there_is_one(guard, monkeypatch):
    with groups(3) as (one, two, left):
        for name, group in (("one", one), ("two", two), ("left", left)):
            guard.watch(name, group.pid)
        stopped_with_a_full_pipe(guard)
        with monkeypatch.context() as without:
            without.setattr(guarding.sys, "executable", "")
            guard.forget("one")
            assert guard.pid is None
        guard.forget("two")
        ended(guard)
        assert left.wait(10) == -signal.SIGTERM
        assert (one.poll(), two.poll()) == (None, None)
