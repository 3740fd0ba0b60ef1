"""Owns the shape of a submitted cell: Markdown fences come off, a lone function is refused.

Above: `screen.source`. Below: `screen.syntax`. Refuses to know: any other rule.
"""

from __future__ import annotations

import re
from typing import Final

from toolcell.codemode.screen.syntax import parse

LONE_FUNCTION: Final = (
    "the cell is one function expression, which would never be called. Write the statements "
    "themselves at top level, with `return` for the final value: top-level await is allowed."
)

_OPENING: Final = re.compile(r"\s*(`{3,}|~{3,})[ \t]*[\w+.-]*[ \t]*\r?\n")
_CALLABLE_START: Final = re.compile(
    r"(?:\s|//[^\n]*\n|/\*.*?\*/)*+(?:async\b|function\b|\(|[\w$]+\s*=>)", re.DOTALL
)
_FUNCTIONS: Final = frozenset({"function_expression", "arrow_function", "generator_function"})
_DECLARATIONS: Final = frozenset({"function_declaration", "generator_function_declaration"})


def without_fences(source: str) -> str:
    """Return `source` without a Markdown fence around the whole of it, line numbers kept."""
    opening = _OPENING.match(source)
    if opening is None:
        return source
    fence = opening.group(1)
    body, found, rest = source[opening.end() :].rpartition(fence)
    if not found or rest.strip() or (body and not body.endswith("\n")):
        return source
    return "\n" * source[: opening.end()].count("\n") + body


def lone_function(source: str) -> bool:
    """Whether the whole program is one function that nobody calls (REPORTS EX-17)."""
    if _CALLABLE_START.match(source) is None:
        return False
    tree = parse(source)
    if tree is None or tree.root_node.has_error:
        return False
    root = tree.root_node
    statements = [node for node in root.named_children if node.type != "comment"]
    statements = [node for node in statements if node.type != "empty_statement"]
    if len(statements) != 1:
        return False
    only = statements[0]
    if only.type in _DECLARATIONS:
        return True
    if only.type != "expression_statement":
        return False
    expression = only.named_children[0] if only.named_children else None
    while expression is not None and expression.type == "parenthesized_expression":
        expression = expression.named_children[0] if expression.named_children else None
    return expression is not None and expression.type in _FUNCTIONS
