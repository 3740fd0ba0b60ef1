"""TypeScript cells of the tools API: transformed, never checked, with places of the source."""

import anyio
import pytest

from toolcell import CodeMode, tool
from toolcell.errors import RuntimeUnavailableError

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("executor", ["quickjs", "node"])]


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def code_mode(executor, **options):
    return CodeMode([add], executor=executor, guest_api="tools", **options)


async def run(cm, code, language="typescript"):
    result = await cm.call("exec", {"code": code, "language": language})
    return result.details


async def test_types_are_stripped_and_never_checked(executor):
    """rule 9.5, BEHAVIOURS 261, BEHAVIOURS 262."""
    async with code_mode(executor) as cm:
        done = await run(cm, "const value: number = 40 + 2; return { value };")
        assert (done["status"], done["value"]) == ("completed", {"value": 42})
        assert (await run(cm, 'const n: number = "x"; return n'))["value"] == "x"
        assert (await run(cm, "return await tools.add({a: 1, b: 2}) as number"))["value"] == 3
        assert (await run(cm, "enum A { B = 3 }\nreturn A.B"))["value"] == 3


async def test_diagnostics_name_the_place_in_the_typescript(executor):
    """BEHAVIOURS 263."""
    async with code_mode(executor) as cm:
        failed = await run(cm, "type Ignored = string;\nconst value: number = ;")
        assert (failed["status"], failed["code"]) == ("failed", "invalid_input")
        assert "Expression expected" in failed["error"]
        assert "openclaw-code-mode:user.ts:2:" in failed["error"]


@pytest.mark.parametrize(
    "code",
    ["const o: any = null;\n\nreturn o!.x", "enum A { B }\nconst o: any = null;\nreturn o.x"],
)
async def test_run_time_errors_name_the_line_of_the_source(executor, code):
    """rule 9.5: stripped and transformed cells alike."""
    async with code_mode(executor) as cm:
        failed = await run(cm, code)
        assert failed["error"].startswith("TypeError")
        assert "openclaw-code-mode:user.ts:3:" in failed["error"]


async def test_modules_are_refused_and_their_words_are_not(executor):
    """BEHAVIOURS 265, rule 3.2."""
    async with code_mode(executor) as cm:
        emoji = "😀" * 96
        for load in ("await import('node:fs')", "require('node:fs')"):
            failed = await run(cm, f"const s: string = '{emoji}'; return {load}")
            assert failed["code"] == "invalid_input"
            assert "module access is disabled" in failed["error"]
        words = await run(cm, "const s: string = `import('x')`; return /require\\('x'\\)/.test(s)")
        assert words["value"] is False
        hoisted = await run(cm, "node -1; var node: number = 7; return node;")
        assert hoisted["value"] == 7
        assert "JavaScript" in (await run(cm, "pwd"))["error"]


async def test_a_disabled_language_is_refused(executor):
    """BEHAVIOURS 72, rule 3.1."""
    config = {"tools": {"codeMode": {"languages": ["javascript"]}}}
    async with code_mode(executor, config=config) as cm:
        failed = await run(cm, "return 1")
        assert (failed["code"], failed["failurePhase"]) == ("invalid_input", "input")
        assert (await run(cm, "return 1", "javascript"))["value"] == 1


class Transformer:
    """Stands where the transformer is, and counts."""

    def __init__(self, behave):
        self.asked = 0
        self.behave = behave

    async def __call__(self, _source, _filename):
        self.asked += 1
        return await self.behave()


async def never():
    await anyio.sleep_forever()


async def broken():
    msg = "no transformer"
    raise RuntimeUnavailableError(msg)


@pytest.mark.parametrize(("behave", "code"), [(broken, "runtime_unavailable"), (never, "timeout")])
async def test_without_a_transformer_typescript_fails_and_javascript_does_not(
    executor, behave, code, monkeypatch
):
    """rule 9.5, BEHAVIOURS 264: it is asked for TypeScript cells only; no tool is dispatched."""
    transform = Transformer(behave)
    monkeypatch.setattr("toolcell.app.executors.Executors.transform", transform, raising=True)
    async with code_mode(executor, config={"tools": {"codeMode": {"timeoutMs": 200}}}) as cm:
        failed = await run(cm, "return 1")
        assert (failed["status"], failed["code"]) == ("failed", code)
        assert failed["bridgeDispatchStarted"] is False
        assert transform.asked == 1
        assert (await run(cm, "return 2", "javascript"))["value"] == 2
        assert transform.asked == 1


async def test_types_in_a_javascript_cell_are_told_what_to_set(executor):
    """BEHAVIOURS 89: with the tools API a cell may say that it is TypeScript."""
    async with code_mode(executor) as cm:
        failed = await run(cm, "const n: number = 1; return n", "javascript")
        assert failed["code"] == "invalid_input"
        assert 'language: "typescript"' in failed["error"]
