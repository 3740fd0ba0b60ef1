"""Owns finding and reading the config file (JSON5).

Above: doors, `app`. Below: `config.parse`, `config.env`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import json5

from toolcell.config.env import CONFIG_VARIABLE, home, variable
from toolcell.config.parse import parse_config
from toolcell.config.tree import Config
from toolcell.errors import ConfigError


def config_path(explicit: str | Path | None = None) -> tuple[Path, bool]:
    """Return the config file's path, and whether somebody named it (so that it must exist).

    In order: `explicit` (`--config`), `$TOOLCELL_CONFIG`, `~/.toolcell/toolcell.json`.
    """
    if explicit is not None:
        return Path(explicit).expanduser(), True
    named = variable(CONFIG_VARIABLE)
    if named is not None:
        return Path(named).expanduser(), True
    return home() / "toolcell.json", False


def read_text(path: Path, *, required: bool) -> str | None:
    """Return the file's text; None when it is absent and not required.

    Raises:
        ConfigError: it is required and absent, or it cannot be read as UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if not required:
            return None
        msg = f"config file {str(path)!r} does not exist; create it or drop --config"
        raise ConfigError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"config file {str(path)!r} cannot be read: {error}"
        raise ConfigError(msg) from error


def parse_json5(text: str, *, origin: str) -> Any:
    """Return the value of JSON5 text.

    Raises:
        ConfigError: it is not JSON5; the message has the parser's position.
    """
    try:
        return json5.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{origin} is not valid JSON5: {error}"
        raise ConfigError(msg) from error


def load_config(explicit: str | Path | None = None) -> Config:
    """Return the configured tree; an absent default file means an empty one.

    Raises:
        ConfigError: the file is missing though named, unreadable, not JSON5, or wrong.
    """
    path, required = config_path(explicit)
    text = read_text(path, required=required)
    if text is None:
        return parse_config(None)
    data = parse_json5(text, origin=f"config file {str(path)!r}") if text.strip() else {}
    if not isinstance(data, dict):
        msg = f"config file {str(path)!r} must hold one object"
        raise ConfigError(msg)
    try:
        return parse_config(data, folder=path.parent)
    except ConfigError as error:
        msg = f"config file {str(path)!r}: {error.message}"
        raise ConfigError(msg) from error
