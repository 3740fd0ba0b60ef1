"""Owns turning plain data into the config tree, with errors that name the path and the remedy.

Above: loading, the library face, `toolcell config`. Below: `config.tree`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from toolcell.config.fields import Settings
from toolcell.config.tree import Config
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


def parse_config(data: Mapping[str, Any] | Config | None) -> Config:
    """Return the tree that `data` (the file's own keys) stands for.

    Raises:
        ConfigError: one or more values are wrong; the message has a line for each.
    """
    if isinstance(data, Config):
        return data
    if data is not None and not isinstance(data, Mapping):
        msg = f"the config must be an object, not {type(data).__name__}"
        raise ConfigError(msg)
    return parse_node(Config, data) if data else Config.model_construct()


def parse_node(kind: type[S], data: Mapping[str, Any], at: tuple[str, ...] = ()) -> S:
    """Return the node at the path `at` of the tree that `data` stands for.

    Raises:
        ConfigError: as `parse_config`.
    """
    try:
        return kind.model_validate(dict(data))
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
        location = (*at, *entry["loc"])
        path = _dotted(location)
        text = _sentence(entry["type"], entry["msg"], entry.get("ctx") or {}, location)
        found[path] = f"{found[path]}; or {text}" if path in found else text
    return list(found.items())


def _dotted(location: Sequence[str | int]) -> str:
    parts: list[str] = []
    for part in location:
        if isinstance(part, int) and parts:
            parts[-1] += f"[{part}]"
        elif isinstance(part, str) and not _union_tag(part):
            parts.append(part if "." not in part and "/" not in part else f'["{part}"]')
    return ".".join(parts).replace(".[", "[")


def _union_tag(part: str) -> bool:
    """Pydantic names the member of a union it tried; the reader knows only keys."""
    return part in {"bool", "int", "none", "str"} or part.startswith(("literal[", "function-"))


def _sentence(
    kind: str, message: str, context: Mapping[str, Any], location: Sequence[str | int]
) -> str:
    if kind == "extra_forbidden":
        return _unknown_key(location)
    if kind == "value_error":
        return str(context.get("error", message))
    if kind == "literal_error":
        return f"must be {context.get('expected', 'one of the documented values')}"
    return _PLAIN.get(kind) or message.replace("Input should be", "must be")


def _unknown_key(location: Sequence[str | int]) -> str:
    key = str(location[-1])
    near = difflib.get_close_matches(key, _keys_at(location[:-1]), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown key{hint}"


def _keys_at(location: Sequence[str | int]) -> list[str]:
    model: type[BaseModel] | None = Config
    for part in location:
        if model is None:
            return []
        by_alias = {field.alias: field for field in model.model_fields.values()}
        field = by_alias.get(str(part))
        if field is not None:
            model = _model_in(field.annotation)
    return [field.alias or "" for field in model.model_fields.values()] if model else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
