"""TypeScript bodies become JavaScript by Node's own transformer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.execution.conformance.harness import run
from toolcell.execution.node.executor import NodeExecutor

pytestmark = pytest.mark.anyio


@pytest.fixture
async def executor() -> AsyncIterator[NodeExecutor]:
    made = NodeExecutor()
    yield made
    await made.aclose()


async def test_types_become_blanks_and_positions_stay(executor: NodeExecutor) -> None:
    """Rule 9.5."""
    source = "const a: number = await call('echo', 2);\nreturn (a as any) * 2;"
    outcome = await executor.strip_types(source, "cell.ts")
    assert outcome.mode == "strip"
    assert outcome.code is not None
    assert [len(line) for line in outcome.code.splitlines()] == [
        len(line) for line in source.splitlines()
    ]
    assert (await run(executor, outcome.code)).value == 4


async def test_enums_and_namespaces_are_rewritten_with_a_map(executor: NodeExecutor) -> None:
    """Rule 9.5: what cannot be stripped."""
    source = "enum Color { Red = 3 }\nnamespace N { export const x = 4 }\nreturn [Color.Red, N.x];"
    outcome = await executor.strip_types(source, "cell.ts")
    assert outcome.mode == "transform"
    assert outcome.code is not None
    assert outcome.source_map is not None
    assert json.loads(outcome.source_map)["version"] == 3
    assert (await run(executor, outcome.code)).value == [3, 4]


async def test_a_diagnostic_has_the_users_line_and_column(executor: NodeExecutor) -> None:
    """Rule 9.5, EX-03."""
    for source, place in (("const a = 1;\n  const b: = 3;", (2, 12)), ("const q: = 1", (1, 10))):
        outcome = await executor.strip_types(source, "cell.ts")
        assert outcome.code is None
        assert outcome.error is not None
        assert (outcome.error.line, outcome.error.column) == place
        assert outcome.error.name == "SyntaxError"


async def test_a_body_that_closes_its_function_stays_a_syntax_error(
    executor: NodeExecutor,
) -> None:
    """Rule 3.2: through the transformer too."""
    for source in ("}; x(); {", "} enum A { B } function f() {"):
        outcome = await executor.strip_types(source, "cell.ts")
        if outcome.code is not None:
            assert (await run(executor, outcome.code)).fault.kind == "syntax"


async def test_the_transformer_is_loaded_when_it_is_needed(executor: NodeExecutor) -> None:
    """Rule 9.5: JavaScript cells never load it; the probe shows both modes."""
    assert (await run(executor, "return 1")).value == 1
    await executor.probe_typescript()
