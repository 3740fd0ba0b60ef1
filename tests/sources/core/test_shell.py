"""The shell tool `exec` and `process`: results, handles, and that nothing is left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from tests.sources.core.conftest import call, context
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.base.deadline import Deadline
from toolcell.errors import CallError
from toolcell.sources.core.process_guard import MARK
from toolcell.sources.core.shell import ShellOptions
from toolcell.sources.core.toolset import core_tools
from toolcell.sources.core.workspace import WorkspaceRoots
from toolcell.tools.tool import Tool

pytestmark = pytest.mark.anyio


class GroupSpawner:
    """A `Spawner` over a task group of the test."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group

    def start_soon(
        self, function: Callable[..., Awaitable[Any]], *args: Any, name: str = ""
    ) -> None:
        self._group.start_soon(function, *args, name=name)


@asynccontextmanager
async def shell(workspace: WorkspaceRoots, **options: Any) -> AsyncIterator[tuple[Tool, Tool]]:
    """Give `exec` and `process`; what runs at the end is cancelled, as when a runtime ends."""
    env = {"PATH": os.defpath, "GREETING": "hi"}
    async with anyio.create_task_group() as group:
        tools = core_tools(workspace, ShellOptions(env=env, **options), spawner=GroupSpawner(group))
        named = {each.name: each for each in tools}
        yield named["exec"], named["process"]
        group.cancel_scope.cancel()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return sys.platform != "linux"


async def until_gone(pids: list[int]) -> None:
    with anyio.fail_after(10):
        while any(alive(pid) for pid in pids):  # noqa: ASYNC110 - the system sets no event
            await anyio.sleep(0.02)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def pids_in(path: Path, count: int) -> list[int]:
    with anyio.fail_after(10):
        while True:
            text = _text(path)
            if text.count("\n") >= count:
                return [int(line) for line in text.split()]
            await anyio.sleep(0.02)


async def test_a_command_gives_its_output_and_exit_code(workspace, root):
    """Issue part 4: shell `exec` in its final shape, with an output contract."""
    async with shell(workspace) as (run, _):
        done = await call(run, command="pwd; echo $GREETING >&2; exit 3")
    assert done["stdout"] == f"{root.resolve()}\n"
    assert done["stderr"] == "hi\n"
    assert (done["status"], done["exitCode"], done["sessionId"]) == ("completed", 3, None)
    assert done["truncated"] is False


async def test_input_environment_and_directory_are_taken(workspace, root):
    async with shell(workspace) as (run, _):
        done = await call(
            run, command='cat; echo "$X"; pwd', stdin="in\n", env={"X": "é"}, cwd="sub"
        )
    assert done["stdout"] == f"in\né\n{root.resolve()}/sub\n"


async def test_nothing_of_the_environment_is_inherited(workspace, monkeypatch):
    monkeypatch.setenv("SECRET_KEY_OF_HOST", "x")
    async with shell(workspace) as (run, _):
        done = await call(run, command="env")
    names = {line.split("=")[0] for line in done["stdout"].splitlines()}
    assert "SECRET_KEY_OF_HOST" not in names
    assert {"PATH", "GREETING", MARK} <= names


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"command": "x" * 200_000}, "at most 120000 bytes"),
        ({"command": "a\0b"}, "without NUL"),
        ({"command": "echo \ud800"}, "lone surrogate"),
        ({"command": "true", "cwd": ".."}, "outside the workspace"),
        ({"command": "true", "cwd": "a.txt"}, "not a directory"),
        ({"command": "true", "env": {"A=B": "x"}}, "no process can have"),
        ({"command": "true", "timeoutMs": 10**9}, "over the limit 3600000"),
    ],
)
async def test_bad_arguments_are_refused_before_anything_starts(workspace, arguments, problem):
    async with shell(workspace) as (run, _):
        with pytest.raises(CallError, match=problem) as caught:
            await run.execute(arguments, context())
    assert caught.value.effect == "none"


async def test_a_missing_shell_is_told(workspace):
    async with shell(workspace, shell=("/no/such/shell", "-c")) as (run, _):  # noqa: S604
        with pytest.raises(CallError, match="'/no/such/shell' cannot be started"):
            await call(run, command="true")


async def test_long_output_keeps_both_ends(workspace):
    async with shell(workspace, output_bytes=1000) as (run, _):
        done = await call(run, command="echo start; seq 1 100000; echo end")
    assert done["truncated"] is True
    assert done["stdout"].startswith("start\n1\n")
    assert done["stdout"].endswith("100000\nend\n")
    assert "bytes left out]" in done["stdout"]
    assert len(done["stdout"]) < 1100


async def test_a_slow_command_comes_back_as_a_handle_well_before_the_deadline(workspace):
    """BEHAVIOURS 183: min(1000, a quarter of the remaining time); RS-10."""
    async with shell(workspace) as (run, process):
        deadline = Deadline(2.0)
        started = SYSTEM_CLOCK.monotonic()
        handle = await call(
            run, using=context(deadline=deadline), command="echo a; sleep 1; echo b"
        )
        assert 0.3 < SYSTEM_CLOCK.monotonic() - started < 2.0
        assert (handle["status"], handle["exitCode"], handle["stdout"]) == ("running", None, "a\n")
        done = await call(process, sessionId=handle["sessionId"], waitMs=8000)
        assert (done["status"], done["exitCode"], done["stdout"]) == ("completed", 0, "a\nb\n")
        with pytest.raises(CallError, match="There is no shell session"):
            await call(process, sessionId=handle["sessionId"])


async def test_an_explicit_yield_time_is_respected(workspace):
    """RS-10: an explicit yieldMs from the guest is respected."""
    async with shell(workspace) as (run, _):
        tight = context(deadline=Deadline(0.4))
        done = await call(run, using=tight, command="sleep 0.5; echo b", yieldMs=5000)
        assert (done["status"], done["stdout"]) == ("completed", "b\n")
        handle = await call(run, command="sleep 30", background=True)
        assert handle["status"] == "running"


async def test_kill_ends_the_whole_tree(workspace, root):
    async with shell(workspace) as (run, process):
        handle = await call(
            run,
            command="sleep 60 & echo $! >> pids; (trap '' TERM; sleep 60) & echo $! >> pids; wait",
            background=True,
        )
        pids = await pids_in(root / "pids", 2)
        assert all(alive(pid) for pid in pids)
        done = await call(process, sessionId=handle["sessionId"], action="kill")
        assert (done["status"], done["exitCode"]) == ("killed", None)
        await until_gone(pids)


async def test_a_cancelled_exec_leaves_no_process(workspace, root):
    """Issue part 4 and bad input: cancelled runs; also those who left the group are ended."""
    daemon = "setsid sleep 60 & echo $! >> pids;" if sys.platform == "linux" else ""
    async with shell(workspace) as (run, _):
        async with anyio.create_task_group() as group:
            group.start_soon(
                lambda: call(
                    run, command=f"echo $$ >> pids; {daemon} sleep 60 & echo $! >> pids; wait"
                )
            )
            pids = await pids_in(root / "pids", 3 if daemon else 2)
            group.cancel_scope.cancel()
        await until_gone(pids)


async def test_the_end_of_the_runtime_ends_background_commands(workspace, root):
    async with shell(workspace) as (run, _):
        await call(run, command="echo $$ >> pids; sleep 60", background=True)
        pids = await pids_in(root / "pids", 1)
    await until_gone(pids)


async def test_a_command_over_its_time_is_ended(workspace):
    async with shell(workspace) as (run, _):
        done = await call(run, command="echo a; sleep 60", timeoutMs=300)
    assert (done["status"], done["exitCode"], done["stdout"]) == ("timed_out", None, "a\n")


async def test_what_a_command_leaves_in_the_background_ends_with_it(workspace, root):
    async with shell(workspace) as (run, _):
        started = SYSTEM_CLOCK.monotonic()
        done = await call(run, command="sleep 60 & echo $! >> pids; echo done")
        assert SYSTEM_CLOCK.monotonic() - started < 5
        assert (done["status"], done["stdout"]) == ("completed", "done\n")
        await until_gone(await pids_in(root / "pids", 1))


async def test_a_death_by_signal_is_told_as_a_shell_tells_it(workspace):
    async with shell(workspace) as (run, _):
        done = await call(run, command="kill -9 $$")
    assert (done["status"], done["exitCode"]) == ("completed", 137)


async def test_sessions_are_seen_by_their_owner_only(workspace):
    """Contract rule 2.5: nothing leaks from another session."""
    async with shell(workspace) as (run, process):
        handle = await call(run, command="sleep 60", background=True)
        other = context(session="other")
        with pytest.raises(CallError, match="None is known"):
            await call(process, using=other, sessionId=handle["sessionId"], action="kill")
        with pytest.raises(CallError, match=f"Known: {handle['sessionId']}"):
            await call(process, sessionId="s1")
        assert (await call(process, sessionId=handle["sessionId"], waitMs=0))["status"] == "running"


async def test_too_many_commands_are_refused(workspace):
    async with shell(workspace, max_running=2) as (run, _):
        for _ in range(2):
            await call(run, command="sleep 60", background=True)
        with pytest.raises(CallError, match="2 shell commands are running, at most 2 may"):
            await call(run, command="true")


async def test_output_is_reported_while_the_call_waits(workspace):
    """Contract rule 8.1: streaming updates."""
    updates: list[Any] = []
    async with shell(workspace) as (run, _):
        await call(run, using=context(updates=updates), command="echo a; echo b >&2")
    assert {"stream": "stdout", "text": "a\n"} in updates
    assert {"stream": "stderr", "text": "b\n"} in updates


async def test_parallel_commands_do_not_wait_for_one_another(workspace):
    async with shell(workspace) as (run, _):
        started = SYSTEM_CLOCK.monotonic()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(lambda: call(run, command="sleep 0.5"))
        assert SYSTEM_CLOCK.monotonic() - started < 3


def test_the_shell_tools_are_not_replay_safe_and_need_a_spawner(workspace):
    """Contract rule 3.13: only audited reads may run again."""
    with pytest.raises(ValueError, match="need a spawner"):
        core_tools(workspace, ShellOptions())
