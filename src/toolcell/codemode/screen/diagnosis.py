"""Owns the explanation of a syntax error: TypeScript, or a fault with its place.

The engine has already refused the program as a whole, so no tool was called (rule 3.2, BEHAVIOURS
86 and 89).

Above: `codemode.faults`. Below: `screen.syntax`. Refuses to know: executors.
"""

from __future__ import annotations

from typing import Final

from toolcell.codemode.screen.syntax import only_typescript

TYPESCRIPT: Final = (
    "SyntaxError at {place}: {detail}. This is TypeScript-only syntax and Code Mode accepts "
    "JavaScript only: leave out type annotations, interfaces, enums, `as` and generics, and use "
    "API.read(...) for tool types. No tools were dispatched; submit plain JavaScript."
)
LANGUAGE: Final = (
    "SyntaxError at {place}: {detail}. This is TypeScript-only syntax in a JavaScript cell: submit "
    'it with language: "typescript", or leave the types out. No tools were dispatched.'
)
SYNTAX: Final = (
    "SyntaxError at {place}: {detail}. No tools were dispatched; correct the JavaScript source and "
    "submit it again."
)
MAX_DETAIL: Final = 240


def syntax_error(source: str, detail: str, *, place: str, takes_typescript: bool) -> str:
    """Return the text for a program the engine could not parse.

    Args:
        source: The program.
        detail: The engine's words.
        place: `file:line:column`, counted from 1.
        takes_typescript: Whether a cell may say that it is TypeScript (tools API).
    """
    short = " ".join(detail.split())[:MAX_DETAIL].rstrip(". ")
    template = SYNTAX
    if only_typescript(source):
        template = LANGUAGE if takes_typescript else TYPESCRIPT
    return template.format(place=place, detail=short)
