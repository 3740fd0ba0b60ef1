"""500 random cells end the same on both engines, but for the wording of errors.

Programs are drawn from a small grammar with a fixed seed: values, operators, loops, closures,
classes, generators, promises, tool calls, exceptions, and output.
"""

import random

import anyio
import pytest

from toolcell import CodeMode, Completed, Failed, tool

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

CELLS = 500
SEED = 20261130


@tool
async def echo(v: object) -> object:
    """Say it again."""
    return v


@tool
async def boom(why: str) -> None:
    """Fail."""
    raise ValueError(why)


class Grammar:
    """Draws programs."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def value(self, depth=3):
        leaf = (
            lambda: str(self.random.randint(-9, 99)),
            lambda: str(round(self.random.uniform(-5, 5), 3)),
            lambda: self.one('"a"', '"é"', '"😀x"', '""', '"10"', '"\\ud83d"'),
            lambda: self.one("true", "false", "null", "undefined", "NaN", "-0", "1e21", "12n"),
            lambda: self.one("x", "y", "z"),
        )
        if depth <= 0:
            return self.one(*leaf)()
        inner = lambda: self.value(depth - 1)
        return self.one(
            *leaf,
            lambda: f"[{inner()}, {inner()}]",
            lambda: f"{{a: {inner()}, b: {inner()}}}",
            lambda: (
                f"({inner()} {self.one('+', '*', '==', '===', '<', '??', '||', '&&')} {inner()})"
            ),
            lambda: f"String({inner()})",
            lambda: f"JSON.stringify({inner()} ?? null)",
            lambda: f"[{inner()}, {inner()}].map((v) => typeof v)",
            lambda: f"Object.keys(Object({inner()}))",
            lambda: f'"b-a-c".split("-").sort().join({self.one(chr(34) + chr(34), "undefined")})',
            lambda: f"Number({inner()})",
            lambda: "/(a+)(b?)/.exec('xaab')",
            lambda: f"[...new Set([{inner()}, {inner()}])].length",
            lambda: f"Math.max({self.random.randint(0, 5)}, [3, 7, 1].at({self.one(0, 1, -1)}))",
            lambda: (
                f"(await echo({{v: {self.one('x', '[x, y]', '{k: 1}', chr(34) + 's' + chr(34))}}}))"
            ),
        )()

    def statement(self):
        return self.one(
            lambda: f"x = {self.value()};",
            lambda: f"y = {self.value(2)};",
            lambda: f"text({self.value(1)});",
            lambda: f"json({self.value(2)});",
            lambda: f"for (let i = 0; i < {self.random.randint(1, 6)}; i++) {{ z = z + i; }}",
            lambda: (
                f"try {{ {self.one('null.q', 'nope()', 'throw new RangeError(1)', 'x()')}; }} "
                "catch (error) { y = error.name; }"
            ),
            lambda: "try { await boom({why: 'q'}); } catch (error) { y = error.message; }",
            lambda: (
                f"const r{self.random.randint(0, 10**9)} = await Promise.all([echo({{v: 1}}), 2]);"
            ),
            lambda: (
                "class P { constructor(n) { this.n = n; } get d() { return this.n * 2; } } "
                "z = new P(z).d;".replace("P", f"P{self.random.randint(0, 10**9)}")
            ),
            lambda: "function* g() { yield* [1, 2, z]; } z = [...g()].length;".replace(
                "g()", f"g{self.random.randint(0, 10**9)}()"
            ),
            lambda: f"switch ({self.value(1)}) {{ case 1: z = 1; break; default: z += 2; }}",
            lambda: f"({{a: x, ...Object({self.value(1)})}});",
            lambda: "[z] = [z + 1];",
        )()

    def program(self):
        body = "\n".join(self.statement() for _ in range(self.random.randint(1, 6)))
        ending = self.one(
            "return [x, y, z];",
            f"return {self.value()};",
            "throw new TypeError('end');",
            "return x.y.z.q;",
            "await boom({why: 'end'});",
            "return new Map([[1, x]]);",
        )
        return f"let x = 1, y = 'y', z = 0;\n{body}\n{ending}"


def told(outcome):
    """Return what must be the same: how it ended, value, output; of an error only its name."""
    output = [dict(entry) for entry in outcome.output]
    if isinstance(outcome, Completed):
        return ("completed", outcome.value, output)
    assert isinstance(outcome, Failed), outcome
    return ("failed", outcome.code, outcome.phase, outcome.error.split(":")[0], output)


async def test_five_hundred_random_cells_end_the_same_on_both_engines():
    """rule 9.1, rule 9.2, rule 9.3."""
    grammar = Grammar(SEED)
    programs = [grammar.program() for _ in range(CELLS)]
    results = {}

    async def run_all(name):
        async with CodeMode([echo, boom], executor=name) as cm:
            results[name] = [told(await cm.exec(program)) for program in programs]

    async with anyio.create_task_group() as group:
        group.start_soon(run_all, "quickjs")
        group.start_soon(run_all, "node")
    pairs = zip(programs, results["quickjs"], results["node"], strict=True)
    apart = [(program, q, n) for program, q, n in pairs if q != n]
    assert not apart, f"{len(apart)} of {CELLS} differ; the first:\n" + "\n".join(
        str(part) for part in apart[0]
    )
    completed = sum(result[0] == "completed" for result in results["quickjs"])
    assert CELLS // 4 < completed < CELLS, f"{completed} of {CELLS} completed"
