"""Owns telling shell text from JavaScript, before any engine starts (BEHAVIOURS 92 to 99, EX-04).

Only the first line is judged. A line that does not parse as JavaScript is shell when it has the
shape of a command. One that does parse is shell when it begins with a known command and nothing but
"operands" (`ls -la` is a subtraction to a parser), and nothing hoisted gives that word a meaning.

Linear in the length of the source: each pattern reads a piece once, with possessive repeats.

Above: `screen.source`. Below: `screen.syntax`, `screen.commands`. Refuses to know: any other rule.
"""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

from toolcell.codemode.screen.commands import (
    ALONE_AS_CODE,
    COMMANDS,
    OPERATOR_WORDS,
    STATEMENT_WORDS,
)
from toolcell.codemode.screen.syntax import parse, text_of, walk

SHELL_TEXT: Final = (
    "exec runs JavaScript, not shell: this cell looks like a shell command ({excerpt}). "
    "Do not send it again. {remedy}"
)
WITH_SHELL: Final = "To run a command, call the shell tool: return await {call};"
WITHOUT_SHELL: Final = "No shell tool is enabled in this run; find an enabled tool with {search}."

_PATH: Final = re.compile(
    r"(?:\.{1,2}[/\\]|~/|[A-Za-z]:\\)[^\s;,()]|/(?:[\w.-]++/)++[\w.-]++(?=[\s;|&]|$)"
)
_ASSIGNMENT: Final = re.compile(r"""[A-Za-z_]\w*+=(?:"[^"\n]*+"|'[^'\n]*+'|[^\s"';()]*+)[ \t]++""")
_COMPOUND: Final = re.compile(
    r"""(?:if|while|until)[ \t]++(?:!|\[\[?|test|read|true|false|[a-z][\w-]*+[ \t]++[-\w$"'./])
      | for[ \t]*+\(\([^()\n]*+\)\)
      | for[ \t]++\w++[ \t]++in\b[^();\n]*+(?:;|\n)[ \t]*+do\b
      | case[ \t]++[^\s:]++[ \t]++in\b
      | function[ \t]++[\w-]++[ \t]*+\{
      | \[\[?[ \t]++-[a-z][ \t]
      | (?:export|alias|declare|local)[ \t]++(?:-\w[ \t]++)?[A-Za-z_]\w*+=[^\s=]
      | set[ \t]++[-+][A-Za-z]""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z0-9_][\w.+-]*+")
_PLAIN_ARGUMENT: Final = re.compile(r"""(?:"[^"\n]*+"|'[^'\n]*+'|[\w./\\:@%+,=~^*?$#-])++""")
_REDIRECT: Final = re.compile(r"\d?(?:>>?|<<?)&?")
_END: Final = re.compile(r"\s*+(?:$|\n|;|\|\|?|&&?)")
_BLANK: Final = re.compile(r"[ \t]++")
_LEADING: Final = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_QUOTED_OR_PIPED: Final = re.compile(r"[|&$(`'\"\[{]")
_OPERATOR: Final = re.compile(r"[=*+/%?:^,-]+|[-+*/%^]=")
_DECLARED: Final = re.compile(r"\w++[ \t]++\w++[ \t]*+=[ \t]")
_CODE_FOLLOWS: Final = frozenset("(.[=:`?,")
_CONTINUES: Final = re.compile(r"\s*+[.(\[`?=*/,]")
# `ls -la`, `cat /etc`, `ls | head`, `ls > out`, `jq . f`; not `date - 1` and not `date-1`.
_SHELL_SPACING: Final = re.compile(
    r"[ \t]+(?:[-/~.*]+\w|\.[ \t]|\|\|?[ \t]*[A-Za-z]|&&[ \t]*[A-Za-z]|>>?|<)"
)
_MAX_LINE: Final = 1000
_SHELL_NODES: Final = frozenset(
    {"identifier", "member_expression", "property_identifier", "number", "binary_expression",
     "unary_expression", "expression_statement", "regex"}
)  # fmt: skip


def shell_text(
    source: str, shell_call: str | None, search_call: str = "catalog.search"
) -> str | None:
    """Return the refusal when `source` is shell text, or None.

    Args:
        source: The cell.
        shell_call: How a guest program calls the shell tool, where there is one.
        search_call: How a guest program finds a tool.
    """
    leading = _LEADING.match(source)
    start = leading.end() if leading else 0
    if not _is_shell(source, start):
        return None
    line = source[start : start + _MAX_LINE].split("\n", 1)[0].strip()
    excerpt = repr(line if len(line) <= 60 else line[:57] + "...")
    remedy = (
        WITH_SHELL.format(call=shell_call)
        if shell_call
        else WITHOUT_SHELL.format(search=search_call)
    )
    return SHELL_TEXT.format(excerpt=excerpt, remedy=remedy)


def _is_shell(source: str, start: int) -> bool:
    if source.startswith("#", start) or _PATH.match(source, start):
        return True
    line = source[start : start + _MAX_LINE].split("\n", 1)[0]
    rest = source[start + len(line) :]
    if _COMPOUND.match(line) or _COMPOUND.match(source, start):
        return _broken(line)
    word = _WORD.match(line)
    if word is None:
        return False
    if word.group() in COMMANDS and _bare_command(line, rest, word):
        return True
    return _command_line(line) and _broken(line)


def _broken(line: str) -> bool:
    tree = parse(line)
    return tree is not None and tree.root_node.has_error


def _command_line(line: str) -> bool:
    """Whether the line has the shape of a shell command with its arguments."""
    at = 0
    while assignment := _ASSIGNMENT.match(line, at):
        at = assignment.end()
    word = _WORD.match(line, at)
    if word is None or word.group() in STATEMENT_WORDS - COMMANDS:
        return False
    blank = _BLANK.match(line, word.end())
    if blank is None:
        return at > 0
    if _DECLARED.match(line, word.start()):
        return False
    known = word.group() in COMMANDS
    first = _PLAIN_ARGUMENT.match(line, blank.end()) or _REDIRECT.match(line, blank.end())
    if first is None:
        return known and _QUOTED_OR_PIPED.match(line, blank.end()) is not None
    if first.group() in OPERATOR_WORDS or _OPERATOR.fullmatch(first.group()):
        return False
    return known or _only_plain(line, blank.end())


def _only_plain(line: str, at: int) -> bool:
    """Whether everything up to the end of the command is plain words and redirections."""
    while not _END.match(line, at):
        piece = _PLAIN_ARGUMENT.match(line, at) or _REDIRECT.match(line, at)
        if piece is None or piece.group() in {"=", "=="}:
            return False
        at = piece.end()
        if blank := _BLANK.match(line, at):
            at = blank.end()
    return True


def _bare_command(line: str, rest: str, word: re.Match[str]) -> bool:
    """Whether a line that parses begins with a command that is nothing but a command."""
    name = word.group()
    if line[word.end() : word.end() + 1] in _CODE_FOLLOWS or _CONTINUES.match(rest):
        return False
    first = _first_expression(line)
    leftmost = None if first is None else _leftmost(first)
    if first is None or leftmost is None or text_of(leftmost) != name:
        return False
    if _hoisted(line + rest, name) or any(
        node.type not in _SHELL_NODES for node in walk(first) if node.is_named
    ):
        return False
    if text_of(first).rstrip(" ;\r\t") == name:
        return name not in ALONE_AS_CODE
    return _SHELL_SPACING.match(line, word.end()) is not None


def _first_expression(line: str) -> Node | None:
    tree = parse(line)
    if tree is None or tree.root_node.has_error:
        return None
    children = tree.root_node.named_children
    first = next((node for node in children if node.type != "comment"), None)
    return first if first is not None and first.type == "expression_statement" else None


def _leftmost(statement: Node) -> Node | None:
    node = statement.named_children[0] if statement.named_children else None
    while node is not None and node.type in {"binary_expression", "member_expression"}:
        inner = node.child_by_field_name("left")
        node = inner if inner is not None else node.child_by_field_name("object")
    return node if node is not None and node.type == "identifier" else None


def _hoisted(source: str, name: str) -> bool:
    """Whether a `var` or a function declaration gives `name` a meaning from the first line on."""
    if "var" not in source and "function" not in source:
        return False
    tree = parse(source)
    if tree is None:
        return False
    for node in walk(tree.root_node):
        if node.type in {"function_declaration", "generator_function_declaration"}:
            declared = node.child_by_field_name("name")
            if declared is not None and text_of(declared) == name:
                return True
        if node.type == "variable_declaration" and any(
            text_of(inner) == name for inner in _bound_names(node)
        ):
            return True
    return False


def _bound_names(declaration: Node) -> list[Node]:
    names: list[Node] = []
    for declarator in declaration.named_children:
        pattern = declarator.child_by_field_name("name")
        if pattern is not None:
            names += [
                node
                for node in walk(pattern)
                if node.type in {"identifier", "shorthand_property_identifier_pattern"}
            ]
    return names
