"""Owns turning plain data into the config tree, with errors that name the path and the remedy.

Above: loading, the library face, `toolcell config`. Below: `config.tree`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from toolcell.config.fields import Settings
from toolcell.config.paths import file_context
from toolcell.config.tree import Config
from toolcell.config.unknown import unknown_key
from toolcell.errors import ConfigError

_PLAIN = {
    "bool_type": "must be true or false",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be text",
    "missing": "is required",
}


S = TypeVar("S", bound=Settings)


def parse_config(data: Mapping[str, Any] | Config | None, *, folder: Path | None = None) -> Config:
    """Return the tree that `data` (the file's own keys) stands for.

    Args:
        data: The keys, or a tree, which is returned as it is.
        folder: What relative paths start at: the folder of the file; None for no file.

    Raises:
        ConfigError: one or more values are wrong; the message has a line for each.
    """
    if isinstance(data, Config):
        return data
    if data is not None and not isinstance(data, Mapping):
        msg = f"the config must be an object, not {type(data).__name__}"
        raise ConfigError(msg)
    return parse_node(Config, data, folder=folder) if data else Config.model_construct()


def parse_node(
    kind: type[S],
    data: Mapping[str, Any],
    at: tuple[str, ...] = (),
    *,
    folder: Path | None = None,
) -> S:
    """Return the node at the path `at` of the tree that `data` stands for.

    Raises:
        ConfigError: as `parse_config`.
    """
    try:
        return kind.model_validate(dict(data), context=file_context(folder))
    except ValidationError as error:
        problems = _problems(error, at)
    first = problems[0][0]
    if len(problems) == 1:
        raise ConfigError(problems[0][1], path=first)
    lines = "\n".join(f"  {path}: {text}" for path, text in problems)
    msg = f"{len(problems)} config values are wrong:\n{lines}"
    raise ConfigError(msg)


def _problems(error: ValidationError, at: tuple[str, ...]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for entry in error.errors(include_url=False, include_input=False):
        place = _place((*at, *entry["loc"]))
        path = _dotted(place.parts)
        text = _sentence(entry["type"], entry["msg"], entry.get("ctx") or {}, place)
        found[path] = f"{found[path]}; or {text}" if path in found else text
    return list(found.items())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error is: keys and indexes, and the node that the last of them belongs to."""

    parts: tuple[str | int, ...]
    node: type[BaseModel] | None


def _place(location: Sequence[str | int]) -> _Place:
    """Follow pydantic's location down the tree's types.

    Names that people chose, such as an agent's id, may be spelt like a key or like the name of a
    union's member, so that only the types tell what a part is.
    """
    parts: list[str | int] = []
    node: type[BaseModel] | None = None
    kind: Any = Config
    for part in location:
        kind, choices = _bare(kind)
        if choices and isinstance(part, str) and _union_tag(part):
            continue
        parts.append(part)
        node = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        kind = _field(node, part) if node is not None else _element(kind)
    return _Place(tuple(parts), node)


def _bare(kind: Any) -> tuple[Any, bool]:
    """Return a type without `Annotated` and None, and whether it still is a union."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) not in {Union, UnionType}:
        return kind, False
    members = [member for member in get_args(kind) if member is not type(None)]
    return _bare(members[0]) if len(members) == 1 else (None, True)


def _field(node: type[BaseModel], part: str | int) -> Any:
    for name, field in node.model_fields.items():
        if part in {name, field.alias}:
            return field.annotation
    return None


def _element(kind: Any) -> Any:
    """Return the type of what a mapping or a list holds."""
    arguments = get_args(kind)
    return arguments[-1] if get_origin(kind) in {dict, list} else None


def _dotted(location: Sequence[str | int]) -> str:
    parts: list[str] = []
    for part in location:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            plain = "." not in part and "/" not in part
            parts.append(f".{part}" if plain else f'["{part}"]')
    return "".join(parts).removeprefix(".")


def _union_tag(part: str) -> bool:
    """Pydantic names the member of a union it tried; the reader knows only keys."""
    return part in {"bool", "int", "none", "str"} or part.startswith(("literal[", "function-"))


def _sentence(kind: str, message: str, context: Mapping[str, Any], place: _Place) -> str:
    if kind == "extra_forbidden":
        return unknown_key(str(place.parts[-1]), _keys_of(place.node))
    if kind == "value_error":
        return str(context.get("error", message))
    if kind == "literal_error":
        return f"must be {context.get('expected', 'one of the documented values')}"
    return _PLAIN.get(kind) or message.replace("Input should be", "must be")


def _keys_of(node: type[BaseModel] | None) -> list[str]:
    """Return the keys of a node, and those below it as paths: `mcpServers` may be meant for one."""
    keys: list[str] = []
    for field in node.model_fields.values() if node is not None else ():
        name = field.alias or ""
        keys.append(name)
        inner, _ = _bare(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys += [f"{name}.{below.alias}" for below in inner.model_fields.values()]
    return keys
