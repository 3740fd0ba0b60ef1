"""The build hook: pinned inputs, checked result, cache, prebuilt engines."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolcell.execution.quickjs.engine import QUICKJS_VERSION
from toolcell.execution.quickjs.executor import QuickJSExecutor

ROOT = Path(__file__).parents[2]

pytest.importorskip("hatchling", reason="the hook runs inside hatchling")


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook as a module, with a cache and a source tree of its own."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "IN_TREE", tmp_path / "tree" / "engine.wasm")
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv(module.PREBUILT, raising=False)
    return module


def wasm(path: Path, body: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\0asm" + body)
    return path


def locked(hook: ModuleType, monkeypatch: pytest.MonkeyPatch, engine: Path) -> None:
    digest = hashlib.sha256(engine.read_bytes()).hexdigest()
    monkeypatch.setattr(hook, "locked_hash", lambda: digest)


def test_the_lock_belongs_to_the_present_inputs(hook: ModuleType) -> None:
    """rule 9.3: toolcell ships its own pinned wasm; edit glue.c, then `hatch_build.py --lock`."""
    assert hook.locked_hash() is not None


def test_the_engine_in_use_is_the_locked_one(hook: ModuleType) -> None:
    """rule 9.3."""
    engine = ROOT / "src" / "toolcell" / "execution" / "quickjs" / "engine.wasm"
    if not engine.is_file():
        pytest.skip("not an editable install")
    assert hook.digest(engine) == hook.locked_hash()


@pytest.mark.anyio
async def test_the_version_that_is_told_is_the_pinned_one(hook: ModuleType) -> None:
    """rule 9.3: what doctor says of the engine."""
    assert hook.QUICKJS == ("quickjs-ng", QUICKJS_VERSION)
    executor = QuickJSExecutor()
    told = await executor.identify()
    await executor.aclose()
    assert told.startswith(f"quickjs-ng {QUICKJS_VERSION}, build {hook.locked_hash()[:12]} (")


def test_a_cached_engine_is_used_without_a_build(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 9.3: hatchling calls the hook twice; only the first build compiles."""
    engine = wasm(tmp_path / "cache" / f"{hook.inputs_hash()}.wasm", b"right")
    locked(hook, monkeypatch, engine)
    monkeypatch.setattr(hook, "compile_engine", lambda _: pytest.fail("it compiled"))
    assert hook.provide_engine() == engine


def test_an_engine_in_the_tree_is_used_when_it_is_the_locked_one(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 9.3."""
    engine = wasm(hook.IN_TREE, b"right")
    locked(hook, monkeypatch, engine)
    assert hook.provide_engine() == engine
    wasm(hook.IN_TREE, b"other")
    built = wasm(tmp_path / "built.wasm", b"right")
    monkeypatch.setattr(hook, "compile_engine", lambda _: built)
    assert hook.provide_engine() == tmp_path / "cache" / f"{hook.inputs_hash()}.wasm"


def test_another_result_from_the_same_inputs_is_an_error(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 9.3: the text says what to do."""
    built = wasm(tmp_path / "built.wasm", b"wrong")
    monkeypatch.setattr(hook, "compile_engine", lambda _: built)
    with pytest.raises(hook.EngineBuildError, match=r"(?s)same inputs.*TOOLCELL_QUICKJS_WASM"):
        hook.provide_engine()
    assert not (tmp_path / "cache").exists()


def test_changed_inputs_are_a_warning(
    hook: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """rule 9.3: somebody edited glue.c."""
    monkeypatch.setattr(hook, "locked_hash", lambda: None)
    built = wasm(tmp_path / "built.wasm", b"new")
    monkeypatch.setattr(hook, "compile_engine", lambda _: built)
    assert hook.provide_engine().read_bytes() == built.read_bytes()
    assert "--lock" in capsys.readouterr().err


def test_a_prebuilt_engine_is_taken_and_a_strange_one_is_named(
    hook: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """rule 9.3: the way to install without network or compiler."""
    engine = wasm(tmp_path / "mine.wasm", b"mine")
    monkeypatch.setenv(hook.PREBUILT, str(engine))
    assert hook.provide_engine() == engine
    assert "warning" in capsys.readouterr().err
    engine.write_bytes(b"text")
    with pytest.raises(hook.EngineBuildError, match="not a WebAssembly module"):
        hook.provide_engine()
    monkeypatch.setenv(hook.PREBUILT, str(tmp_path / "missing"))
    with pytest.raises(hook.EngineBuildError, match="cannot be read"):
        hook.provide_engine()


def test_a_failing_download_says_what_to_do(hook: ModuleType, tmp_path: Path) -> None:
    """rule 9.3."""
    with pytest.raises(hook.EngineBuildError, match=r"(?s)cannot download.*TOOLCELL_QUICKJS_WASM"):
        hook.download(tmp_path / "d", "not a requirement !!")


def test_the_engine_goes_into_the_wheel_or_beside_the_sources(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 9.3."""
    engine = wasm(tmp_path / "mine.wasm", b"mine")
    monkeypatch.setattr(hook, "provide_engine", lambda: engine)
    build_hook = hook.EngineHook.__new__(hook.EngineHook)
    data: dict[str, Any] = {"force_include": {}}
    build_hook.initialize("standard", data)
    assert data["force_include"] == {str(engine): "toolcell/execution/quickjs/engine.wasm"}
    build_hook.initialize("editable", data)
    assert hook.IN_TREE.read_bytes() == engine.read_bytes()


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_build_from_the_pinned_sources_gives_the_locked_engine(
    hook: ModuleType, tmp_path: Path
) -> None:
    """rule 9.3: bit for bit."""
    assert hook.digest(hook.compile_engine(tmp_path)) == hook.locked_hash()
