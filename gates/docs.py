"""Checks the documentation: links lead somewhere, generated pages are current.

Run: python gates/docs.py [--write]
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args, get_origin

from cyclopts import App
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from toolcell.cli.main import app
from toolcell.config.tree import Config

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "configuration.md"
COMMANDS = ROOT / "docs" / "commands.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
HEAD = """# Configuration

toolcell reads one JSON5 file: `--config FILE`, else `$TOOLCELL_CONFIG`, else
`~/.toolcell/toolcell.json`. `toolcell config get|set|unset|validate` read and change it; `set`
keeps your comments. The library takes the same tree as `CodeMode(config={...})`. Unknown keys and
wrong types are errors that name the path and, for a key, the one that was meant; numbers outside
a range are moved to its nearer end. Relative paths in it start at the folder the file is in,
wherever toolcell is started; `~` is your home. That goes for `workspace`, `sessions.path`,
`plugins.paths`, `nodePath`, and for `cwd` and `command` of MCP servers. Options of commands and
environment variables start at the current folder, and so do paths of a tree that is given in code.
This page is generated from the models (`python3 tasks.py docs --write`).
"""
COMMANDS_HEAD = """# Commands

Every command of `toolcell`; `toolcell COMMAND --help` says more. Each takes `--json` for output
that programs read, and each but `qa suite` takes `--config FILE`. The exit code is 0 when all went
well, 1 when what was asked failed, and 2 when the command or the config is wrong.
This page is generated from the commands (`python3 tasks.py docs --write`).

| command | what it does | options |
| --- | --- | --- |
"""


def pages() -> list[Path]:
    """Return every Markdown page of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def broken_links(page: Path) -> Iterator[str]:
    """Yield a line for each relative link that leads nowhere."""
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        target = match.group(1)
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (page.parent / target).exists():
            yield f"{page.relative_to(ROOT)}: link to {target!r} leads nowhere"


def nested(annotation: object) -> type[BaseModel] | None:
    """Return the model inside an annotation such as `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = nested(argument)
        if found is not None:
            return found
    return None


def attribute_texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each attribute, of the class and of those it extends.

    Read from the source here, so that importing the models stays quick.
    """
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, BaseModel) or owner is BaseModel:
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        if not isinstance(node, ast.ClassDef):
            continue
        for line, below in pairwise(node.body):
            if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr):
                text = ast.literal_eval(below.value)
                found[ast.unparse(line.target)] = " ".join(str(text).split())
    return found


def facts(field: FieldInfo, text: str, *, alone: bool) -> Iterator[str]:
    """Yield what the model knows of a setting and its text does not say.

    The words it may be, the range of a number, whether it must be there, its default.
    """
    words = choices(field.annotation)
    if len(words) > 1 and not all(f"`{word}`" in text for word in words):
        yield " or ".join((", ".join(f"`{word}`" for word in words[:-1]), f"`{words[-1]}`"))
    low, high = bounds(field)
    if low is not None:
        yield f"{low} to {high}" if high is not None else f"at least {low}"
    if field.is_required():
        yield "required"
        return
    default = field.default
    if alone and isinstance(default, str | int) and default != "" and "Default" not in text:
        yield f"default `{str(default).lower() if isinstance(default, bool) else default}`"


def bounds(field: FieldInfo) -> tuple[object, object]:
    """Return the least and the greatest number a setting may be, as far as there are such."""
    found: dict[str, object] = {}
    for rule in field.metadata:
        if isinstance(rule, BeforeValidator):  # `clamped`
            found |= inspect.getclosurevars(rule.func).nonlocals
        else:
            found |= {"low": getattr(rule, "ge", None), "high": getattr(rule, "le", None)}
    return found.get("low"), found.get("high")


def choices(annotation: object) -> list[str]:
    """Return the words of a `Literal`, also of an optional or a listed one."""
    inside = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [str(word) for word in inside]
    if get_origin(annotation) is dict:
        return []
    return [word for each in inside for word in choices(each)]


def section(model: type[BaseModel], path: str, seen: set[str]) -> Iterator[str]:
    """Yield the lines of one node of the tree and of those below it."""
    if path in seen:
        return
    seen.add(path)
    below: list[tuple[type[BaseModel], str]] = []
    title = path or "The tree"
    yield f"\n## {title}\n"
    doc = (model.__doc__ or "").strip()
    yield doc.split("\n\n")[0].replace("\n", " ") + "\n"
    texts = attribute_texts(model)
    for attribute, field in model.model_fields.items():
        name = field.alias or ""
        where = f"{path}.{name}" if path else name
        # What an agent does not say of its tools is the global setting, and no default.
        alone = not path.startswith("agents.entries.<id>.tools")
        known = "; ".join(facts(field, texts[attribute], alone=alone))
        yield f"- `{name}`{f' ({known})' if known else ''}: {texts[attribute]}"
        inner = nested(field.annotation)
        if inner is not None:
            keyed = "dict[" in str(field.annotation)
            listed = "list[" in str(field.annotation)
            below.append((inner, f"{where}.<id>" if keyed else f"{where}[]" if listed else where))
    for inner, where in below:
        yield from section(inner, where, seen)


def reference() -> str:
    """Return the generated configuration page."""
    return HEAD + "\n".join(section(Config, "", set())) + "\n"


def commands(within: App, words: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Yield every command that does something, as it is typed."""
    for name in sorted(each for each in within if not each.startswith("-")):
        inner, typed = within[name], (*words, name)
        if inner.default_command is None:
            yield from commands(inner, typed)
        else:
            yield " ".join(typed), inner


def command_line(typed: str, command: App) -> str:
    """Return the row of one command."""
    told = (command.help or "").split("\n\n")[0]
    words, options = [typed], []
    for each in command.assemble_argument_collection():
        name = each.names[0]
        if not each.show or name in {"--config", "--json"}:
            continue
        if each.field_info.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            word = name.removeprefix("--").upper()
            words.append(word if each.required else f"[{word}]")
        else:
            options.append(f"`{name}`")
    return f"| `toolcell {' '.join(words)}` | {joined(told.split())} | {', '.join(options)} |\n"


def joined(words: Iterable[str]) -> str:
    """Return words as they may stand in a table."""
    return " ".join(words).replace("|", "\\|")


def command_page() -> str:
    """Return the generated page of commands."""
    return COMMANDS_HEAD + "".join(command_line(*each) for each in commands(app))


def main(arguments: list[str]) -> int:
    """Check, or write with `--write`; return the number of problems."""
    generated = {REFERENCE: reference(), COMMANDS: command_page()}
    if "--write" in arguments:
        for page, text in generated.items():
            page.write_text(text, encoding="utf-8")
    problems = [line for page in pages() for line in broken_links(page)]
    for page, text in generated.items():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            name = page.relative_to(ROOT)
            problems.append(f"{name} is not current: run python3 tasks.py docs --write")
    sys.stdout.write("\n".join([*problems, f"docs: {len(problems)} problems"]) + "\n")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
