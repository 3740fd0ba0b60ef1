"""Owns what is said of names that models expect and no cell has: Node's, the browser's, Python's.

Constant texts, chosen by the name alone: nothing of a run's tools or settings can show through.

Above: `codemode.absent`. Below: nothing. Refuses to know: tools, engines, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SWARM: Final = (
    "`agents`, `phase` and `log` start and follow child agents. They exist only where "
    "tools.swarm.enabled is true and the policy of the run allows sessions_spawn. Without them do "
    "the work in this cell, with the tools it has"
)
_OUTPUT: Final = "Output is written with text(value), json(value) or console.log(value)"
_SLEEP: Final = (
    "A program pauses with `await new Promise((done) => setTimeout(done, milliseconds))`"
)
_NETWORK: Final = "A cell has no network: only tools reach it, {search} finds them"
_FILES: Final = "A cell has no files and no modules: only tools reach files, {search} finds them"
_PROCESS: Final = "A cell is no Node process: it has no environment, arguments, files or modules"
_BROWSER: Final = "A cell is no browser: it has no window, document or storage"
_BYTES: Final = (
    "Bytes are a Uint8Array; TextEncoder and TextDecoder turn text into them and back, atob and "
    "btoa are base64"
)
_CALL: Final = "Tools are called by name, {call}; {search} finds them"
_MCP: Final = "Tools of MCP servers are called as MCP.<server>.<tool>({{...}})"
_WAIT: Final = (
    "`wait` is a tool of the model, called after a result of status waiting. In a program, "
    "`await yield_control()` parks the cell"
)
_EXEC: Final = (
    "`exec` is a tool of the model, and no shell tool is enabled for this program; {search} finds "
    "what is"
)
_PYTHON: Final = "A cell is JavaScript, not Python"
_MODULES: Final = "A cell has no modules; every global it has is there already"
_TEXT: Final = "Take text apart with string methods or regular expressions"

_SAID: Final[tuple[tuple[str, str], ...]] = (
    ("agents phase", SWARM),
    ("log", f"{_OUTPUT}. {SWARM}"),
    ("print println echo puts printf display", _OUTPUT),
    ("sleep delay setInterval clearInterval", _SLEEP),
    ("setImmediate clearImmediate", "setTimeout and clearTimeout exist"),
    ("structuredClone", "Copy plain data with `JSON.parse(JSON.stringify(value))`"),
    ("fetch XMLHttpRequest axios WebSocket EventSource Headers Request Response http https",
     _NETWORK),
    ("AbortController AbortSignal FormData Blob File", _NETWORK),
    ("URL URLSearchParams", f"{_TEXT}; encodeURIComponent and decodeURIComponent exist"),
    ("fs path os child_process readFile writeFile readFileSync writeFileSync", _FILES),
    ("process __dirname __filename Deno Bun", _PROCESS),
    ("module exports require importScripts define", _MODULES),
    ("window document self global navigator location localStorage sessionStorage alert prompt",
     f"{_BROWSER}. The global object is globalThis"),
    ("Buffer", _BYTES),
    ("crypto", "There is no cryptography; Math.random exists"),
    ("Intl", "There is no Intl: format numbers and dates by hand"),
    ("Worker WebAssembly SharedArrayBuffer", "A cell is one program on one thread"),
    ("openclaw codemode callTool call_tool useTool runTool invokeTool tool client", _CALL),
    ("search searchTools tool_search tool_describe tool_call tool_search_code", _CALL),
    ("mcp mcpClient servers", _MCP),
    ("wait", _WAIT),
    ("exec", _EXEC),
    ("None", f"{_PYTHON}: null"),
    ("True False", f"{_PYTHON}: true and false"),
    ("len range str dict list input", f"{_PYTHON}. {_OUTPUT}"),
)  # fmt: skip

ABSENT: Final[Mapping[str, str]] = MappingProxyType(
    {name: text for names, text in _SAID for name in names.split()}
)
"""What to say of a name; `{call}` and `{search}` stand for how a program does that here."""

OTHER_API: Final = (
    '`{name}` belongs to the other guest API: this run has tools.codeMode.guestApi set to "tools". '
    "Tools are called as tools.<name>({{...}}) and found with tools.search(...)"
)
CATALOG_ONLY: Final = frozenset({"catalog", "results"})
"""Globals of the catalog API alone."""

MEMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "catalog": "catalog has search(query, {{limit}}) and all()",
        "results": "results has save(value), load(id) and delete(id)",
        "API": "API has list(prefix) and read(path)",
        "json": "json(value) writes output; JSON.parse and JSON.stringify are spelt in capitals",
        "text": "text(value) writes output and has no methods",
        "console": "console has log, info, warn, error and debug",
    }
)
"""What to say of a missing method of a global that every cell has."""
