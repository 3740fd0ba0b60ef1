"""Owns rewriting a config file of an older contract: rule 1.3.

Above: `toolcell doctor --fix`, gateway start. Below: `config.edit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolcell.config.edit import set_value, unset_value
from toolcell.config.load import parse_json5

_BASES: tuple[str, ...] = ("tools", "codeMode")


@dataclass(frozen=True, slots=True)
class Migration:
    """A rewritten file: its text and one line for each change."""

    text: str
    changes: tuple[str, ...]


def migrate(text: str, *, origin: str = "the config file") -> Migration:
    """Return `text` with every `runtime: "quickjs-wasi"` as `executor: "quickjs"`.

    Only this key changes; an explicit `executor` beside it wins and `runtime` is dropped.
    """
    data = parse_json5(text, origin=origin) if text.strip() else {}
    changes: list[str] = []
    for path in _code_mode_paths(data):
        settings = _at(data, path)
        if not isinstance(settings, dict) or settings.get("runtime") != "quickjs-wasi":
            continue
        if "executor" not in settings:
            text = set_value(text, (*path, "executor"), "quickjs")
        text = unset_value(text, (*path, "runtime"))
        changes.append(
            f'{".".join(path)}: runtime "quickjs-wasi" is now executor "quickjs"; '
            'programs written for tools.* need guestApi: "tools"'
        )
    return Migration(text, tuple(changes))


def _code_mode_paths(data: Any) -> list[tuple[str, ...]]:
    paths = [_BASES]
    entries = _at(data, ("agents", "entries"))
    if isinstance(entries, dict):
        paths.extend(("agents", "entries", str(agent), *_BASES) for agent in entries)
    return paths


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data
