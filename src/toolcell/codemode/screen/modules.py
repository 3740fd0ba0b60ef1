"""Owns the search for module access: `import`, `require` and other loaders (rule 3.2).

Found in the syntax tree, so the same words in strings, comments, template text, regular
expressions, property and method names are fine (BEHAVIOURS 80 to 84, REPORTS EX-05).

Above: `screen.source`. Below: `screen.syntax`. Refuses to know: any other rule.
"""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

from toolcell.codemode.screen.syntax import parse, text_of, walk

MODULE_ACCESS: Final = (
    "code mode module access is disabled. Line {line}: {what}. Call an enabled tool instead "
    "(find one with {search}) and do not retry with require or import."
)

# An identifier may be spelt with escapes, so any `\u` is a reason to look properly.
_SUSPECT: Final = re.compile(r"import|require|export|getBuiltinModule|\\u")
_ESCAPE: Final = re.compile(r"\\u(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))")
_NAMES: Final = frozenset({"identifier", "shorthand_property_identifier"})
_LOADER_HOSTS: Final = frozenset({"module", "process"})
_LOADER_MEMBERS: Final = frozenset({"require", "getBuiltinModule", "createRequire"})


def module_access(source: str, search_call: str) -> str | None:
    """Return the message for the first module access in `source`, or None."""
    if _SUSPECT.search(source) is None:
        return None
    tree = parse(source)
    if tree is None:
        return None
    for node in walk(tree.root_node):
        what = _access(node)
        if what is not None:
            return MODULE_ACCESS.format(line=node.start_point[0] + 1, what=what, search=search_call)
    return None


def _access(node: Node) -> str | None:
    match node.type:
        case "import":
            return "`import` is not available"
        case "meta_property" if text_of(node).startswith("import"):
            return "`import.meta` is not available"
        case "export_statement":
            return "`export` is not available"
        case "member_expression":
            return _loader_member(node)
        case kind if kind in _NAMES and _plain(text_of(node)) == "require":
            return None if _only_typeof(node) else "`require` is not available"
        case _:
            return None


def _loader_member(node: Node) -> str | None:
    owner = node.child_by_field_name("object")
    member = node.child_by_field_name("property")
    if owner is None or member is None or owner.type != "identifier":
        return None
    if _plain(text_of(owner)) in _LOADER_HOSTS and _plain(text_of(member)) in _LOADER_MEMBERS:
        return f"`{text_of(node)[:60]}` is not available"
    return None


def _only_typeof(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type != "unary_expression":
        return False
    operator = parent.child_by_field_name("operator")
    return operator is not None and operator.type == "typeof"


def _plain(name: str) -> str:
    """Undo the escapes an identifier may be spelt with."""
    if "\\" not in name:
        return name
    return _ESCAPE.sub(_character, name)


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1) or match.group(2), 16)
    return chr(code) if code <= 0x10FFFF else match.group(0)
