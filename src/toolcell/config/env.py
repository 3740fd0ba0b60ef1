"""Owns the environment: the one file that reads it.

Above: config loading, providers' keys, debug switches. Below: `os`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from toolcell.errors import ConfigError

CONFIG_VARIABLE = "TOOLCELL_CONFIG"
HOME_VARIABLE = "TOOLCELL_HOME"
_SHELL_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
)
MIN_SECRET_CHARS = 8
"""Shorter values, such as `1` or `utf-8`, are settings, not secrets."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)",
    re.IGNORECASE,
)


def variable(name: str) -> str | None:
    """Return an environment variable; None when unset or empty."""
    return os.environ.get(name) or None


def shell_environment() -> dict[str, str]:
    """Return the variables a shell command gets: places and language, no secrets."""
    return {name: os.environ[name] for name in _SHELL_VARIABLES if name in os.environ}


def home() -> Path:
    """Return toolcell's own folder: `$TOOLCELL_HOME`, else `~/.toolcell`."""
    given = variable(HOME_VARIABLE)
    return Path(given).expanduser() if given else Path.home() / ".toolcell"


def secret_values(environment: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the values of environment variables that are secrets by their name."""
    known = os.environ if environment is None else environment
    return frozenset(
        value
        for name, value in known.items()
        if len(value) >= MIN_SECRET_CHARS and _SECRET_NAME.search(name)
    )


def expand(text: str, *, path: str, environment: Mapping[str, str] | None = None) -> str:
    """Return `text` with each `${NAME}` replaced by that environment variable.

    Raises:
        ConfigError: a named variable is not set; `path` says in which config value.
    """
    known = os.environ if environment is None else environment

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in known:
            msg = f"environment variable {name!r} is not set"
            raise ConfigError(msg, path=path)
        return known[name]

    return _REFERENCE.sub(value_of, text)
