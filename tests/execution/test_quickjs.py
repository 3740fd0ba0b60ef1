"""What is special to QuickJS: images, cache, threads, snapshots, memory seen from outside."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import psutil
import pytest

from tests.execution.conformance.harness import (
    EXTENSION,
    IMAGE,
    first,
    program,
    run,
    suspend,
)
from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import (
    Answer,
    Faulted,
    Finished,
    GuestImage,
    GuestScript,
    Limits,
    Program,
    Suspended,
)
from toolcell.execution.quickjs import QuickJSExecutor, QuickJSOptions
from toolcell.execution.quickjs import engine as fence
from toolcell.execution.quickjs.image import ENGINE_WASM, load_engine_code
from toolcell.execution.quickjs.modulecache import ModuleCache
from toolcell.execution.quickjs.snapshot import (
    PAGE,
    SnapshotError,
    SnapshotTooLargeError,
    blocks_of,
    difference,
    freeze,
    thaw,
)
from toolcell.execution.quickjs.wasmfile import WasmFormatError, split

pytestmark = pytest.mark.anyio


def other_image(number: int) -> GuestImage:
    return GuestImage(
        controller=IMAGE.controller,
        extensions=(GuestScript("probe", EXTENSION),),
        data=f'{{"probe":{number}}}',
    )


async def test_the_engine_is_compiled_once() -> None:
    """EX-15: twenty cells and five suspensions."""
    executor = QuickJSExecutor()
    for _ in range(20):
        assert (await run(executor, "return 1")).value == 1
    for _ in range(5):
        await run(executor, "await call('yield'); return 1", park=True)
    counts = executor.statistics()
    assert (counts["modules_compiled"], counts["images_built"]) == (1, 1)
    assert (counts["programs_started"], counts["restored"]) == (25, 5)
    assert counts["workers"] == 1
    await executor.aclose()


async def test_a_missing_engine_is_reported_with_its_remedy(tmp_path: Path) -> None:
    """EX-02, rule 1.6."""
    executor = QuickJSExecutor(QuickJSOptions(wasm=tmp_path / "missing.wasm"))
    with pytest.raises(RuntimeUnavailableError, match=r"quickjs.*missing\.wasm"):
        await first(executor, "return 1")
    broken = tmp_path / "broken.wasm"
    broken.write_bytes(b"not wasm")
    again = QuickJSExecutor(QuickJSOptions(wasm=broken))
    with pytest.raises(RuntimeUnavailableError, match="not a usable engine"):
        await again.prepare(IMAGE)
    await executor.aclose()
    await again.aclose()


async def test_a_broken_prelude_is_named() -> None:
    """rule 1.6: the text says which script and why."""
    executor = QuickJSExecutor()
    for source, said in (("(function(", "SyntaxError"), ("(() => null.x)", "TypeError")):
        bad = GuestImage(
            controller=IMAGE.controller, extensions=(GuestScript("mine", source),), data="{}"
        )
        with pytest.raises(RuntimeUnavailableError, match=said):
            await executor.prepare(bad)
    assert (await run(executor, "return 1")).value == 1
    await executor.aclose()


async def test_the_compiled_engine_is_kept_in_a_private_folder(tmp_path: Path) -> None:
    """rule 9.3: loading compiled code trusts it, so nobody else may write there."""
    told: list[str] = []
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    options = QuickJSOptions(cache=cache)
    executor = QuickJSExecutor(options, on_progress=told.append)
    await executor.prepare(IMAGE)
    await executor.aclose()
    assert len(told) == 1
    assert cache.stat().st_mode & 0o077 == 0
    entry = next(cache.glob("*.cwasm"))
    entry.write_bytes(entry.read_bytes()[:-100] + b"x" * 100)
    for expected in (2, 2):
        executor = QuickJSExecutor(options, on_progress=told.append)
        assert (await run(executor, "return 1")).value == 1
        await executor.aclose()
        assert len(told) == expected


def test_a_cache_that_cannot_be_had_is_done_without(tmp_path: Path) -> None:
    """rule 9.3: a folder of somebody else is not used."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert ModuleCache(blocked).load("k", lambda: b"compiled", lambda _: True) == b"compiled"
    assert (
        ModuleCache(blocked / "below").load("k", lambda: b"compiled", lambda _: True) == b"compiled"
    )


async def test_a_compiled_engine_of_other_settings_is_compiled_again(tmp_path: Path) -> None:
    """rule 9.3: a home shared by machines, or a newer toolcell beside an older one."""
    wasmtime = fence.wasmtime
    parts = split(ENGINE_WASM.read_bytes())
    config = wasmtime.Config()
    foreign = bytes(wasmtime.Module(wasmtime.Engine(config), parts.code).serialize())
    cache = ModuleCache(tmp_path / "cache")
    stored = cache.load("k", lambda: foreign, fence.can_load)
    assert isinstance(stored, Path)
    ours = fence.compile_module(parts.code)
    again = cache.load("k", lambda: ours, fence.can_load)
    assert isinstance(again, Path)
    assert fence.can_load(again)


async def test_images_are_kept_in_a_bounded_number() -> None:
    """rule 4.5: a continuation keeps its own image alive all the same."""
    executor = QuickJSExecutor(QuickJSOptions(images=2))
    step = await suspend(executor, "await call('a'); return fromData.greeting")
    await step.continuation.park()
    for number in range(4):
        cell = Program(image=other_image(number), source="return fromData")
        end = await executor.start(cell, Limits(), 5)
        assert isinstance(end, Finished)
        assert end.value == str(number)
    end = await step.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(end, Finished)
    assert end.value == '"hello"'
    assert executor.statistics()["images_built"] == 5
    await executor.aclose()


async def test_a_live_program_moves_when_its_worker_is_busy() -> None:
    """rule 9.4: a spinning cell holds up no other."""
    executor = QuickJSExecutor(QuickJSOptions(threads=2))
    step = await suspend(executor, "const v = [1, 2]; await call('a'); return v")
    async with anyio.create_task_group() as group:
        group.start_soon(executor.start, program("for (;;);"), Limits(), 0.5)
        await anyio.sleep(0.1)
        with anyio.fail_after(0.3):
            end = await step.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(end, Finished)
    assert end.value == "[1,2]"
    assert executor.statistics()["migrated"] == 1
    await executor.aclose()


async def test_a_full_queue_refuses_and_a_long_wait_gives_up() -> None:
    """rule 1.6: the queue before the threads is bounded in length and time."""
    executor = QuickJSExecutor(QuickJSOptions(threads=1, queue_limit=1, queue_seconds=0.1))
    await executor.prepare(IMAGE)
    async with anyio.create_task_group() as group:
        group.start_soon(executor.start, program("for (;;);"), Limits(), 0.5)
        await anyio.sleep(0.05)

        async def queued() -> None:
            with pytest.raises(RuntimeUnavailableError, match="overloaded"):
                await first(executor, "return 1")

        group.start_soon(queued)
        await anyio.sleep(0.02)
        with pytest.raises(RuntimeUnavailableError, match="overloaded"):
            await first(executor, "return 1")
    assert (await run(executor, "return 1")).value == 1
    await executor.aclose()


async def test_closing_stops_running_programs_and_joins_the_threads() -> None:
    """EX-14: nothing of the executor outlives it."""
    import threading  # noqa: PLC0415 - used once

    before = threading.active_count()
    executor = QuickJSExecutor()
    step = await suspend(executor, "await call('a')")

    async def spin() -> None:
        with pytest.raises(RuntimeUnavailableError, match="closed"):
            await first(executor, "for (;;);", seconds=60)

    async with anyio.create_task_group() as group:
        group.start_soon(spin)
        await anyio.sleep(0.1)
        await executor.aclose()
    assert executor.statistics()["live"] == 0
    with pytest.raises(RuntimeUnavailableError, match="closed"):
        await first(executor, "return 1")
    gone = await step.continuation.resume([Answer(1, "1")], 1)
    assert isinstance(gone, Faulted)
    assert gone.kind == "restore"
    await step.continuation.dispose()
    workers = [one.name for one in threading.enumerate() if "quickjs" in one.name]
    assert workers == []
    assert threading.active_count() <= before + 1


async def test_timeouts_leave_no_thread_file_or_guest_behind() -> None:
    """EX-14: back at the baseline when closed, and steady while open."""
    process = psutil.Process()
    gc.collect()
    before = process.num_fds()
    executor = QuickJSExecutor()
    await run(executor, "return 1")
    open_files, threads = process.num_fds(), process.num_threads()
    for _ in range(50):
        assert (await run(executor, "for (;;);", seconds=0.01)).fault.kind == "timeout"
    assert process.num_fds() <= open_files + 1
    assert process.num_threads() <= threads + 1
    await executor.aclose()
    del executor
    gc.collect()
    assert process.num_fds() <= before + 1


async def test_disposing_and_resuming_again_is_a_fault_not_a_crash() -> None:
    """BEHAVIOURS 201, RS-08."""
    executor = QuickJSExecutor()
    step = await suspend(executor, "await call('a')")
    await step.continuation.dispose()
    for again in (await step.continuation.resume([], 1), await step.continuation.park()):
        assert isinstance(again, Faulted)
        assert again.kind == "restore"
    await executor.aclose()


async def test_disposing_while_a_cancelled_step_still_runs_is_safe() -> None:
    """BEHAVIOURS 207: the guest is freed by the thread that runs it, never under it."""
    executor = QuickJSExecutor()
    for _ in range(20):
        step = await suspend(executor, "await call('a'); for (;;) ('a'.repeat(1e5)).indexOf('b')")
        with anyio.move_on_after(0.005):
            await step.continuation.resume([Answer(1, "1")], 30)
        await step.continuation.dispose()
    assert (await run(executor, "return 1")).value == 1
    await executor.aclose()


async def test_a_damaged_snapshot_is_a_restore_fault() -> None:
    """rule 3.7."""
    executor = QuickJSExecutor()
    step = await suspend(executor, "await call('a')")
    await step.continuation.park()
    cell = step.continuation.cell  # type: ignore[attr-defined]
    cell._parked = cell._parked[:-9] + bytes(9)
    fault = await step.continuation.resume([Answer(1, "1")], 5)
    assert isinstance(fault, Faulted)
    assert fault.kind == "restore"
    assert executor.statistics()["parked"] == 0
    await executor.aclose()


def test_snapshots_hold_changed_and_grown_pages_only() -> None:
    """rule 3.7: limits count before compression, zero pages cost nothing."""
    base = bytes(65536) + b"a" * 65536
    memory = bytearray(base) + bytearray(65536 * 3)
    memory[5] = 1
    memory[65536 + 3 * PAGE] = 2
    memory[65536 * 4 + PAGE] = 3
    whole = bytes(memory)
    pages = difference(lambda at, n: whole[at : at + n], len(whole), blocks_of(base))
    assert list(pages.numbers) == [0, 19, 65]
    digest = b"d" * 32
    parked = freeze(pages, digest, 20_000)
    assert len(parked) < 1000
    assert thaw(parked, digest) == pages
    with pytest.raises(SnapshotTooLargeError):
        freeze(pages, digest, 3 * PAGE)
    with pytest.raises(SnapshotError, match="another image"):
        thaw(parked, b"e" * 32)
    for damaged in (b"", parked[:-1], parked[:60] + b"\0" + parked[61:]):
        with pytest.raises(SnapshotError):
            thaw(damaged, digest)


def test_a_state_too_large_to_keep_is_counted_and_not_copied() -> None:
    """rule 1.2, rule 3.7: a gibibyte of guest must not cost the host another one."""
    whole = bytes([1]) * (64 * PAGE)
    pages = difference(lambda at, n: whole[at : at + n], len(whole), (), 4 * PAGE)
    assert len(pages.numbers) == 64
    assert len(pages.contents) == 4 * PAGE
    with pytest.raises(SnapshotTooLargeError) as caught:
        freeze(pages, bytes(32), 4 * PAGE)
    assert caught.value.size > 64 * PAGE


def test_the_engine_imports_its_memory_and_the_clock_only() -> None:
    """rule 9.3: no ambient authority is linked."""
    made = fence.Engine(load_engine_code(ENGINE_WASM, ModuleCache(), lambda _: None).code)
    assert sorted(made.imports) == [
        ("env", "memory"),
        ("wasi_snapshot_preview1", "clock_time_get"),
    ]


def test_an_engine_with_other_imports_is_refused() -> None:
    """rule 9.3."""
    wasm = fence.wasmtime.wat2wasm('(module (import "env" "f" (func)) (memory 1))')
    with pytest.raises(fence.EngineLoadError, match="must not have"):
        fence.Engine(fence.compile_module(bytes(wasm)))


async def test_an_engine_of_another_build_says_what_to_do(tmp_path: Path) -> None:
    """rule 1.6: a checkout that was updated and not set up again."""
    other = tmp_path / "engine.wasm"
    other.write_bytes(ENGINE_WASM.read_bytes().replace(b"\x07cm_take", b"\x07cm_took"))
    executor = QuickJSExecutor(QuickJSOptions(wasm=other, cache=tmp_path / "cache"))
    try:
        with pytest.raises(RuntimeUnavailableError, match="lacks cm_take; install toolcell again"):
            await executor.start(program("return 1"), Limits(), 5)
    finally:
        await executor.aclose()


@pytest.mark.parametrize("wasm", [b"", b"\0asm\x01\0\0\0", b"\0asm\x01\0\0\0\x05\xff"])
def test_files_that_are_no_engine_are_refused(wasm: bytes) -> None:
    """rule 1.6."""
    with pytest.raises(WasmFormatError):
        split(wasm)


def test_guest_addresses_are_checked() -> None:
    """rule 9.3: a guest that lies about its memory reads and writes nothing of the host."""
    code = load_engine_code(ENGINE_WASM, ModuleCache(), lambda _: None)
    engine = fence.Engine(code.code)
    data = engine.load_data(code.base)
    guest = engine.instantiate(data, 1 << 30)
    size = guest.size
    assert guest.read(size - 4, 4) == bytes(4)
    for offset, length in ((size - 3, 4), (-1, 1), (0, size + 1), (1 << 40, 1), (0, -1)):
        with pytest.raises(fence.GuestAddressError):
            guest.read(offset, length)
    with pytest.raises(fence.GuestAddressError):
        guest.write(size, b"x")
    guest.grow_to(size + fence.WASM_PAGE)
    assert guest.read(size, 4) == bytes(4)
    guest.close()
    guest.close()
    with pytest.raises(ValueError, match="closed"):  # its memory is somebody else's by now
        guest.read(0, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="anonymous files are Linux's")
async def test_no_memory_is_sealed() -> None:
    """rule 9.3: sealing fails while the kernel moves a page, and on some hosts always."""
    executor = QuickJSExecutor()
    try:
        assert (await run(executor, "return 1")).value == 1
        names = _open_files()
    finally:
        await executor.aclose()
    assert any(fence.MEMORY_FILE in name for name in names), names
    assert not any("wasm-memory-image" in name for name in names), names


def _open_files() -> set[str]:
    return {os.path.realpath(handle) for handle in Path("/proc/self/fd").iterdir()}


async def test_without_anonymous_files_modules_are_loaded_from_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rule 9.3."""

    def refused(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr("os.memfd_create", refused, raising=False)
    executor = QuickJSExecutor()
    try:
        ended = await run(executor, "return await call('echo', 'é')", park=True)
    finally:
        await executor.aclose()
    assert ended.value == "é"


async def test_a_guest_that_cannot_be_made_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rule 1.6: for a catalog's image as for its programs, and the next program tries again."""
    executor = QuickJSExecutor()
    try:
        for broken in ("load_data", "instantiate"):
            with monkeypatch.context() as patch:
                patch.setattr(fence.Engine, broken, _no_memory)
                with pytest.raises(RuntimeUnavailableError, match="start a program: no memory"):
                    await executor.start(program("return 1"), Limits(), 5)
            assert (await run(executor, f"return {broken!r}")).value == broken
    finally:
        await executor.aclose()


def _no_memory(*_: object) -> None:
    msg = "no memory"
    raise fence.EngineLoadError(msg)


async def test_the_public_face_of_wasmtime_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """rule 9.3: the quick call layer is an optimisation with a way back."""
    assert fence.call_layer() == "ctypes"
    monkeypatch.setattr(fence, "call_layer", lambda: "public")
    executor = QuickJSExecutor()
    assert (await run(executor, "return await call('echo', 'é')", park=True)).value == "é"
    assert (await run(executor, "for (;;);", seconds=0.05)).fault.kind == "timeout"
    native = "const s = 'a'.repeat(1 << 25); for (;;) s.lastIndexOf('ab')"
    assert (await run(executor, native, seconds=0.05)).fault.kind == "timeout"
    await executor.aclose()


BOMB = """
import anyio, sys
sys.path[:0] = {path!r}
from tests.execution.conformance.harness import first
from toolcell.execution.contract import Limits
from toolcell.execution.quickjs import QuickJSExecutor
async def main():
    executor = QuickJSExecutor()
    print("ready", (await first(executor, "return 1")).value, flush=True)
    limits = Limits(memory_bytes=64 << 20)
    step = await first(executor, {source!r}, limits=limits, seconds={seconds})
    print("end", step.kind, flush=True)
    await executor.aclose()
anyio.run(main)
"""


@pytest.mark.parametrize(
    ("source", "kind", "seconds"),
    [
        ("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", "memory", 20),
        ("const a = []; for (let i = 0;; i++) a.push('x'.repeat(1e6) + i)", "memory", 20),
        ("let s = ''; for (let i = 0;; i++) { s += i; if (s.length > 1e6) s = '' }", "timeout", 2),
    ],
)
def test_bombs_end_at_the_limit_seen_from_outside(source: str, kind: str, seconds: int) -> None:
    """EX-10, rule 9.4: 64 MiB asked, 64 MiB (and an eighth) used."""
    root = Path(__file__).parents[2]
    code = textwrap.dedent(BOMB).format(
        path=[str(root), str(root / "src")], source=source, seconds=seconds
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    )
    watched = psutil.Process(child.pid)
    assert child.stdout is not None
    if not child.stdout.readline().startswith("ready"):
        child.wait(10)
        pytest.fail("the child did not start")
    before = peak = watched.memory_info().rss
    while child.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        try:
            child.wait(0.005)
        except subprocess.TimeoutExpired:
            continue
    ended = child.stdout.read()
    child.stdout.close()
    assert ended.strip() == f"end {kind}"
    assert child.returncode == 0
    assert peak - before < 80 << 20


MIB = 1 << 20
TOO_MUCH = "[" + "[]," * (1 << 20) + "0]"
"""3 MB of text; a million arrays take many times that."""


async def test_a_reply_that_does_not_fit_is_told_to_the_program_which_goes_on() -> None:
    """BEHAVIOURS 186, rule 9.4: a reply too large is an error of its call, not the cell's end."""
    source = """const length = (value) => value.length;
        const open = [call("a"), call("b"), call("c")].map((p) => p.then(length, (e) => e));
        const [a, error, c] = await Promise.all(open);
        const again = await call("d").then(length);
        const { code, effectStatus, location, message } = error;
        return [a, c, again, error instanceof Error, code, effectStatus, location, message]"""
    executor = QuickJSExecutor(QuickJSOptions())
    try:
        step = await suspend(executor, source, limits=Limits(memory_bytes=32 * MIB))
        large = json.dumps("x" * MIB)
        settled = [Answer(1, large), Answer(2, TOO_MUCH), Answer(3, large)]
        step = await step.continuation.resume(settled, 10)
        assert isinstance(step, Suspended), step
        assert isinstance(await step.continuation.park(), int), "what was let go of is no state"
        end = await step.continuation.resume([Answer(4, large)], 10)
        assert isinstance(end, Finished), end
        *facts, message = json.loads(end.value)
        assert facts == [MIB, MIB, MIB, True, "invalid_input", "unknown", "bridge:b:2"]
        assert f"{len(TOO_MUCH)} bytes" in message
        assert "The call was made" in message
        assert "33554432 bytes" in message
    finally:
        await executor.aclose()


async def test_an_uncaught_reply_that_does_not_fit_says_what_to_do() -> None:
    """STYLE: fail closed and say what to do."""
    executor = QuickJSExecutor(QuickJSOptions())
    try:
        step = await suspend(
            executor, "return (await call('a')).length", limits=Limits(memory_bytes=32 * MIB)
        )
        end = await step.continuation.resume([Answer(1, TOO_MUCH)], 10)
        assert isinstance(end, Faulted)
        assert end.kind == "error"
        assert "Ask for less at once" in end.error.message
    finally:
        await executor.aclose()


async def test_large_replies_are_read_one_after_the_other() -> None:
    """rule 9.4: the texts of replies that come together never lie in the guest together."""
    executor = QuickJSExecutor(QuickJSOptions())
    source = (
        "const all = await Promise.all([1, 2, 3, 4, 5].map(() => call('a'))); return all.length"
    )
    try:
        step = await suspend(executor, source, limits=Limits(memory_bytes=32 * MIB))
        settled = [Answer(number, json.dumps("x" * (4 * MIB))) for number in range(1, 6)]
        end = await step.continuation.resume(settled, 10)
        assert isinstance(end, Finished), end
        assert end.value == "5"
    finally:
        await executor.aclose()


@pytest.mark.parametrize(
    "value",
    [
        "'x'.repeat(15 << 20)",
        "Array.from({length: 250000}, (_, i) => ({i, name: 'customer number ' + i}))",
        "Array(5 << 20).fill(7)",
    ],
)
async def test_a_value_of_ten_megabytes_can_be_returned(value: str) -> None:
    """rule 3.11: what a program may hold it may return, at the limits a cell has by default."""
    executor = QuickJSExecutor(QuickJSOptions())
    try:
        ran = await run(executor, f"return {value}", seconds=30)
        assert isinstance(ran.end, Finished), ran.end
        assert len(ran.end.value) > 10 * MIB
    finally:
        await executor.aclose()


async def test_memory_that_was_let_go_of_serves_blocks_of_any_size() -> None:
    """rule 9.4: what counts is what a program holds, not what it held before in other sizes."""
    source = """let kept, sizes = [];
        for (let round = 0; round < 3; round++) {
          kept = Array.from({length: 120000}, (_, i) => ({i}));
          kept = undefined; kept = [];
          for (let i = 0; i < 600; i++) kept.push('y'.repeat(16000) + i);
          kept = undefined;
          kept = 'z'.repeat(9 << 20);
          sizes.push(kept.length);
          kept = undefined;
        }
        return sizes"""
    executor = QuickJSExecutor(QuickJSOptions())
    try:
        ran = await run(executor, source, limits=Limits(memory_bytes=16 * MIB), seconds=20)
        assert ran.value == [9 << 20] * 3
    finally:
        await executor.aclose()


async def test_a_guest_that_broke_its_own_heap_is_parked_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rule 9.3: tidying walks a list that the guest may have written; the host does not follow."""
    call, asked = fence.Instance.call, []

    def trapping(guest: fence.Instance, name: str, *arguments: int) -> int:
        if name == "cm_rest":
            asked.append(name)
            raise fence.GuestTrapError("interrupted", "interrupted")
        return call(guest, name, *arguments)

    monkeypatch.setattr(fence.Instance, "call", trapping)
    code = "let s = 'x'.repeat(8 << 20); s = s.length; const n = await call('a'); return [s, n]"
    executor = QuickJSExecutor()
    try:
        step = await executor.start(program(code), Limits(), 5)
        assert isinstance(step, Suspended)
        assert isinstance(await step.continuation.park(), int)
        assert asked == ["cm_rest"]
        end = await step.continuation.resume([Answer(step.requests[0].id, "1")], 5)
        assert isinstance(end, Finished)
        assert json.loads(end.value) == [8 << 20, 1]
    finally:
        await executor.aclose()
