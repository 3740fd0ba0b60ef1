"""Source screening and shell detection: before anything starts."""

import contextlib
import time

import anyio
import pytest

from toolcell.codemode.screen import MAX_SOURCE_BYTES, screen, screened
from toolcell.codemode.screen.diagnosis import syntax_error
from toolcell.codemode.screen.shell import shell_text
from toolcell.errors import CellError

SHELL = [
    "ls -la", "pwd", "pwd;", "ls", "git status", "npm test", "NODE_ENV=test npm test",
    "cat README.md", "echo hi", "curl https://x.y", "find . -name x | head", "exec ls", "wait",
    "read", "exit", "date;", "foo bar", "foo --bar=1", "custom-tool --format=json",
    "# c\npwd", "#!/bin/sh\nls", "#!/usr/bin/env node\nreturn 1", "/bin/ls /x", "./run.sh",
    'python -c "print(1)"', "if [ -f x ]; then echo; fi", "for i in 1 2 3; do echo $i; done",
    "./gradlew test", ".\\script.ps1", "C:\\workspace\\run.cmd /q", "sh -c 'ls'",
    "set -euo pipefail", "while test -f x; do sleep 1; done",
    "for ((i=0;i<3;i++)); do echo $i; done", "function task { pwd; }", "source ./env",
    "go test ./...", "jq . f", 'GREETING="hello world" npm test', "ls > out.txt",
    "echo hi > out.txt", "cat < in.txt", "custom-tool run > log.txt 2>&1", "ls -1; let ls = 7;",
    "cd /tmp && git status", "dir C:\\\\Users", "cat /etc/passwd", "rm -rf /tmp/x", "ls | head",
    "echo $(date)", "export FOO=bar", "  ls -la  ", "ps aux | grep x", "ls -la\ncd x && y",
]  # fmt: skip

JAVASCRIPT = [
    "return 1;", "true;", "foo", "value", "Infinity -1; return 42;", "const ls = 7; return ls;",
    "ls -1; function ls() {}", "x = 1; return x;", 'text("hi")', "ls()", 'tools.search("x")',
    "date - 1; return 2", 'return await exec({command:"ls"});',
    "pwd; var {pwd}={pwd:7}; return pwd;", "return -1;", "return /foo/.test('foo');",
    "return true || false;", "const ls = 3; return ls", "return globalThis.pwd === undefined",
    "/foo/.test('x')", "label: for(;;){ break label }", "read({path:'x'}).then(text)",
    "read\n({path:'x'})", "node -1; var node = 7; return node;", "cosnt a = 1;", "a instanceof b",
    "interface X { a: number }", "type X = string; return 1", "x=1; return x", "x=1, y=2",
    "find.call(x)", "echo`x`", "const b = ;", "/* ls -la */ return 1", "if (test) { return 1 }",
]  # fmt: skip


@pytest.mark.parametrize("source", SHELL)
def test_shell_text_is_refused(source):
    """BEHAVIOURS 92, BEHAVIOURS 93, BEHAVIOURS 94, BEHAVIOURS 97, EX-04."""
    with pytest.raises(CellError) as caught:
        screen(source)
    assert caught.value.code == "invalid_input"
    assert "JavaScript, not shell" in caught.value.message


@pytest.mark.parametrize("source", JAVASCRIPT)
def test_javascript_is_not_taken_for_shell(source):
    """BEHAVIOURS 95, BEHAVIOURS 96."""
    assert shell_text(source, None) is None


def test_the_refusal_names_the_shell_tool_and_stops_the_retry():
    """BEHAVIOURS 98, EX-04."""
    message = shell_text("ls -la", "exec({command: 1})")
    assert "await exec({command: 1})" in message
    assert "Do not send it again" in message
    assert "No shell tool" in shell_text("ls -la", None)


@pytest.mark.parametrize(
    "source",
    ["A=B " * 25_000, "A=B " * 25_000 + "npm test", "foo " * 25_000, "ls " + "-a " * 30_000,
     "/* " * 30_000, "a/" * 50_000, "/a" * 50_000, "\n" * 100_000, "foo '" * 20_000,
     "for i in 1 " * 10_000, "//\n" * 30_000, "import " * 14_000, "(" * 100_000],
)  # fmt: skip
def test_looking_is_linear_in_the_length(source):
    """BEHAVIOURS 99: 100 KB of hostile text takes no noticeable time."""
    begun = time.thread_time()
    with contextlib.suppress(CellError):
        screen(source)
    assert time.thread_time() - begun < 1.0


@pytest.mark.parametrize(
    "source",
    ["require('node:fs')", "require?.('x')", "(require)('x')", "(0,require)('x')",
     "r\\u0065quire('x')", "r\\u{65}quire('x')", "import('x')", "import.meta",
     "import x from 'y'", "return `${`${import('x')}`}`", "x++ / import('y') / 2",
     "a / 2; import('x')", "/re/.test('a'); import('x')", "const load = require; load('fs')",
     "module.require('fs')", "process.getBuiltinModule('fs')", "return {require}",
     'return `v=${await import("os")}`;', "export default 1", "import os",
     "const s = '" + "😀" * 96 + "'; return require('node:fs')"],
)  # fmt: skip
def test_module_access_is_refused(source):
    """rule 3.2, BEHAVIOURS 80, BEHAVIOURS 81, BEHAVIOURS 82, BEHAVIOURS 85, BEHAVIOURS 265."""
    with pytest.raises(CellError) as caught:
        screen(source)
    assert caught.value.message.startswith("code mode module access is disabled.")
    assert "enabled tool instead" in caught.value.message
    assert (caught.value.code, caught.value.phase) == ("invalid_input", "input")


@pytest.mark.parametrize(
    "source",
    ['return `first call require("path")`;', 'return /\\bimport\\(/.test("import(1)");',
     '/* from "y" import z */ return 1;', "// require('x')\nreturn 1", "return typeof require",
     'api.import(42); api.require(42); api["require"](42); api.import.meta; important',
     "x = {import: 1, require: 2}; class A { require() {} import() {} }"],
)  # fmt: skip
def test_the_words_elsewhere_are_fine(source):
    """rule 3.2, BEHAVIOURS 83, BEHAVIOURS 84, EX-05."""
    assert screen(source) == source


def test_fences_come_off_and_lines_stay_where_they_were():
    """EX-17."""
    assert screen("```js\nreturn 1+1\n```") == "\nreturn 1+1\n"
    assert screen("\n~~~\nreturn 1\n~~~\n") == "\n\nreturn 1\n"
    assert screen("const a = `\n```\n`") == "const a = `\n```\n`"


@pytest.mark.parametrize(
    "source",
    ["async () => { return 7 }", "(async () => 7)", "function f() {}", "x => x", "() => 1",
     "// c\nasync function main() { return 1 }"],
)  # fmt: skip
def test_a_lone_function_is_refused(source):
    """EX-17: it would end as null."""
    with pytest.raises(CellError, match="top level"):
        screen(source)


def test_a_function_that_is_called_is_fine():
    """EX-17."""
    for source in ("(async () => 7)()", "async function main() { return 1 }\nreturn main()"):
        assert screen(source) == source


def test_a_huge_cell_is_refused_at_once():
    """EX-18."""
    with pytest.raises(CellError, match=str(MAX_SOURCE_BYTES)):
        screen("x=1;\n" * 1_000_000)


def test_a_small_cell_takes_no_time():
    source = "const hits = await catalog.search('mail');\nreturn hits.map(h => h.callableName);"
    begun = time.thread_time()
    for _ in range(200):
        screen(source)
    assert time.thread_time() - begun < 0.2


def test_a_syntax_error_says_where_and_what_to_do():
    """BEHAVIOURS 86: the text to the letter, the detail bounded."""
    text = syntax_error("const b = ;", "bad " * 200, place="f.js:2:11", takes_typescript=False)
    assert text.startswith("SyntaxError at f.js:2:11: bad bad")
    assert text.endswith(
        ". No tools were dispatched; correct the JavaScript source and submit it again."
    )
    assert len(text) < 240 + 120


@pytest.mark.parametrize(
    "source",
    ["const n: number = 1; return n", "interface A { x: string }\nreturn 1", "return x as string",
     "enum C { A }\nreturn C.A", "type X = string;\nreturn 1"],
)  # fmt: skip
def test_typescript_is_named_as_such(source):
    """BEHAVIOURS 89."""
    text = syntax_error(source, "no", place="f.js:1:1", takes_typescript=False)
    assert "TypeScript-only syntax" in text
    assert "plain JavaScript" in text


@pytest.mark.parametrize("source", ["return super.x", "return await \\u0069mport('fs')"])
def test_what_no_typescript_compiler_would_take_either_is_not_called_typescript(source):
    """BEHAVIOURS 89, EX-03: the advice fits the fault."""
    text = syntax_error(source, "no", place="f.js:1:1", takes_typescript=False)
    assert "TypeScript" not in text


@pytest.mark.anyio
async def test_a_long_source_is_read_while_the_event_loop_goes_on():
    """rule 9.4, EX-18: a quarter of a mebibyte full of words to look into."""
    source = "'require';" + "a;" * 120_000
    began = anyio.Event()
    ticks = 0

    async def tick():
        nonlocal ticks
        began.set()
        while True:
            await anyio.sleep(0.002)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await began.wait()
        assert await screened(source) == source
        assert ticks >= 3
        group.cancel_scope.cancel()
