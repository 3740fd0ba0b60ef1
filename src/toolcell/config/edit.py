"""Owns changing one value of a JSON5 file: comments, order and layout of all the rest stay.

The parser tells where each value stands in the text; an edit splices the text there.

Above: `toolcell config`, `toolcell doctor --fix`. Below: json5.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import json5
from json5.loader import ModelLoader
from json5.model import JSONObject, JSONText

from toolcell.base.jsontext import dumps
from toolcell.errors import ConfigError

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_PATH_PART = re.compile(r'\.?(?:\["((?:[^"\\]|\\.)*)"\]|([^.\[\]"]+))')
_INDENT = "  "


def split_path(path: str) -> tuple[str, ...]:
    """Return the keys of a dotted path; a key with dots is written `["a.b"]`.

    Raises:
        ConfigError: it is not such a path.
    """
    parts: list[str] = []
    position = 0
    while position < len(path):
        match = _PATH_PART.match(path, position)
        if match is None:
            break
        parts.append(match.group(1) if match.group(1) is not None else match.group(2))
        position = match.end()
    if not parts or position != len(path):
        msg = f'{path!r} is not a config path; write it like tools.codeMode or mcp.servers["a.b"]'
        raise ConfigError(msg)
    return tuple(parts)


def set_value(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return `text` with the value at `keys` set, making objects on the way.

    Raises:
        ConfigError: something on the way is not an object.
    """
    if not text.strip():
        text = "{}\n"
    node = _root(text)
    for depth, key in enumerate(keys):
        member = _member(node, key)
        if member is None:
            return _insert(text, node, keys[depth:], value, depth)
        if depth == len(keys) - 1:
            return text[: _start(member)] + _render(value, depth + 1) + text[_end(member) :]
        if not isinstance(member, JSONObject):
            raise ConfigError("is not an object", path=".".join(keys[: depth + 1]))
        node = member
    return text


def unset_value(text: str, keys: tuple[str, ...]) -> str:
    """Return `text` without the value at `keys`.

    Raises:
        ConfigError: there is no such value.
    """
    node: Any = _root(text)
    for key in keys[:-1]:
        node = _member(node, key) if isinstance(node, JSONObject) else None
    index = _index(node, keys[-1]) if isinstance(node, JSONObject) else None
    if index is None:
        raise ConfigError("is not set in the config file", path=".".join(keys))
    start, end = _start(node.keys[index]), _end(node.values[index])
    comma = re.match(r"\s*,", text[end:])
    if comma is not None:
        end += comma.end()
    elif index > 0:
        start = _end(node.values[index - 1])
    line_start = text.rfind("\n", 0, start) + 1
    if text[line_start:start].strip() == "" and re.match(r"[ \t]*\r?\n", text[end:]):
        start, end = line_start, end + text[end:].index("\n") + 1
    return text[:start] + text[end:]


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one step, keeping its permissions; make its folder where needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _root(text: str) -> JSONObject:
    try:
        model: JSONText = json5.loads(text, loader=ModelLoader())
    except (ValueError, RecursionError) as error:
        msg = f"the config file is not valid JSON5: {error}"
        raise ConfigError(msg) from error
    if not isinstance(model.value, JSONObject):
        msg = "the config file must hold one object"
        raise ConfigError(msg)
    return model.value


def _key_text(node: Any) -> str:
    return str(node.name if hasattr(node, "name") else node.characters)


def _index(node: JSONObject, key: str) -> int | None:
    for index, name in enumerate(node.keys):
        if _key_text(name) == key:
            return index
    return None


def _member(node: JSONObject, key: str) -> Any:
    index = _index(node, key)
    return None if index is None else node.values[index]


def _start(node: Any) -> int:
    return int(node._tok.index)


def _end(node: Any) -> int:
    return int((node._end_tok or node._tok).end)


def _insert(text: str, node: JSONObject, keys: tuple[str, ...], value: Any, depth: int) -> str:
    for key in reversed(keys[1:]):
        value = {key: value}
    line = f"{_write_key(keys[0])}: {_render(value, depth + 1)}"
    pad, close_pad = _INDENT * (depth + 1), _INDENT * depth
    close = _end(node) - 1
    if not node.values:
        return f"{text[: _start(node) + 1]}\n{pad}{line},\n{close_pad}{text[close:]}"
    last = _end(node.values[-1])
    rest = text[last:close]
    comma = "" if node.trailing_comma else ","
    tail = rest.rstrip()
    return f"{text[:last]}{comma}{tail}\n{pad}{line},\n{close_pad}{text[close:]}"


def _write_key(key: str) -> str:
    return key if _IDENTIFIER.match(key) else dumps(key)


def _render(value: Any, depth: int) -> str:
    pad = _INDENT * depth
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = "".join(
            f"{pad}{_INDENT}{_write_key(str(key))}: {_render(item, depth + 1)},\n"
            for key, item in value.items()
        )
        return "{\n" + inner + pad + "}"
    return dumps(value)
