"""Owns what the model is told about `exec` and `wait` (rule 4.10, areas C and D).

Deterministic: the same catalog and options give the same bytes. Text of remote servers never gets
in (rule 4.6, REPORTS SE-06, PP-10).

Above: controls. Below: `catalog.quick_index`, extensions. Refuses to know: cells.
"""

from __future__ import annotations

from typing import Final

from toolcell.codemode.extensions.contract import GuestExtension
from toolcell.codemode.view import GuestView
from toolcell.config.code_mode import CodeModeOptions

EXEC: Final = """\
Run a JavaScript program that calls this run's tools. JavaScript only, not shell: if shell text \
was refused, do not send it again. No require, import, Node modules, files or network; all work \
goes through tools.
- Top-level await and return are allowed. `return` the final value; without it the value is null. \
text(value), json(value) and console.log append to the output.
- Each tool below is an async global that takes one object: `const r = await name({...})`. Run \
independent calls together with Promise.all. A failed call rejects with {message, code}; catch it \
and go on.
- A tool with a declared output (`-> {...}`) may be called, filtered and chained in one program. \
For `-> ?` the output is unknown: return its raw value in this exec and transform it in a later \
one; the same when declared reads feed a final `-> ?` call. Never guess field names.
- Tools not listed: `await catalog.search("what you want to do", {limit})` gives callable handles \
(callableName, description, input, output, describe()); catalog.all() lists every native tool. Use \
only names you have seen.
- yield_control(reason) parks the program; setTimeout and TextEncoder/TextDecoder exist. \
results.save(value) keeps data for later programs of this run: results.load(id).
- Limits: {seconds} ms of wall clock per exec or wait, {output} bytes of output and value together \
(more is truncated), {inbox} bytes per tool reply. Output is incremental: each result has only new \
entries.
- status "waiting" means the program goes on later: call wait with its runId. status "failed" \
says why; effects of calls that ran remain, so do not repeat them blindly."""
EXEC_TOOLS: Final = """\
Run a JavaScript or TypeScript program that calls this run's tools; not shell: if shell text was \
refused, do not send it again. No require, import, Node modules, files or network; all work goes \
through tools.
- Top-level await and return are allowed. `return` the final value; without it the value is null. \
text(value), json(value) and console.log append to the output.
- Call a tool by its exact id: `const r = await tools.callValue("openclaw:core:read", {...})` \
gives its value; tools.call gives {tool, result}. tools.<name>({...}) exists for names that are \
not ambiguous. Run independent calls together with Promise.all. A failed call rejects with \
{message, code}; catch it and go on.
- A tool with a declared output (`-> {...}`) may be called, filtered and chained in one program. \
For `-> ?` the output is unknown: return its raw value in this exec and transform it in a later \
one; the same when declared reads feed a final `-> ?` call. Never guess field names.
- ALL_TOOLS is the full compact catalog; `await tools.search("what you want to do", {limit})` \
finds tools, `await tools.describe(id)` gives schemas. Never invent an id.
- yield_control(reason) parks the program; setTimeout and TextEncoder/TextDecoder exist. \
results.save(value) keeps data for later programs of this run: results.load(id).
- Limits: {seconds} ms of wall clock per exec or wait, {output} bytes of output and value together \
(more fails), {inbox} bytes per tool reply. Output is cumulative.
- status "waiting" means the program goes on later: call wait with its runId. status "failed" \
says why; effects of calls that ran remain, so do not repeat them blindly."""
CODE_TOOLS: Final = (
    "JavaScript or TypeScript program: statements at top level, await allowed, `return` for the "
    "final value. No Markdown fences, no shell."
)
MCP_HEAD: Final = "\n- "
SHELL: Final = "\n- Shell commands: await {call} inside the program."
WAIT: Final = (
    'Resume a code mode program. Call it only after exec or wait returned status "waiting", with '
    "the top-level runId of that result; it returns the same kind of result. Pending tool calls go "
    "on meanwhile and nothing is run again."
)
CODE: Final = (
    "JavaScript program: statements at top level, await allowed, `return` for the final value. No "
    "Markdown fences, no shell, no TypeScript."
)
RUN_ID: Final = "The runId of a waiting result, such as cm_..."
RESTART_SAFE: Final = (
    "True only for read-only work: calls that are not proven replay-safe are refused before they "
    "run."
)
TITLE: Final = "A few words for people on what the program does."


def exec_description(
    view: GuestView, extensions: tuple[GuestExtension, ...], options: CodeModeOptions, index: str
) -> str:
    """Return the description of `exec`; `index` is the quick index, or empty."""
    template = EXEC if options.guest_api == "catalog" else EXEC_TOOLS
    text = template.replace("{seconds}", str(options.timeout_ms))
    text = text.replace("{output}", str(options.max_output_bytes))
    text = text.replace("{inbox}", str(options.inbox_bytes))
    for extension in extensions:
        prompt = extension.prompt(view)
        if prompt:
            text += MCP_HEAD + prompt
    if view.shell_call is not None:
        text += SHELL.format(call=view.shell_call)
    return f"{text}\n\n{index}" if index else text
