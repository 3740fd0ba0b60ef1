"""Owns the environment: the one file that reads it.

Above: config loading, providers' keys, debug switches. Below: `os`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from toolcell.errors import ConfigError

T = TypeVar("T")
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


_ON = frozenset({"1", "true"})
_OFF = frozenset({"", "0", "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugSwitches:
    """The debug variables (rule 12.1).

    Attributes:
        code_mode: `OPENCLAW_DEBUG_CODE_MODE=1`.
        transport: `OPENCLAW_DEBUG_MODEL_TRANSPORT=1`.
        payload: `OPENCLAW_DEBUG_MODEL_PAYLOAD=tools|full-redacted`.
        sse: `OPENCLAW_DEBUG_SSE=events|peek`.
    """

    code_mode: bool = False
    transport: bool = False
    payload: Literal["tools", "full-redacted"] | None = None
    sse: Literal["events", "peek"] | None = None

    @property
    def any(self) -> bool:
        """Whether anything is to be logged."""
        return bool(self.code_mode or self.transport or self.payload or self.sse)


def debug_switches(environment: Mapping[str, str] | None = None) -> DebugSwitches:
    """Return the debug variables.

    Raises:
        ConfigError: one of them has a value that means nothing.
    """
    known = os.environ if environment is None else environment
    return DebugSwitches(
        code_mode=_switch(known, "OPENCLAW_DEBUG_CODE_MODE"),
        transport=_switch(known, "OPENCLAW_DEBUG_MODEL_TRANSPORT"),
        payload=_choice(known, "OPENCLAW_DEBUG_MODEL_PAYLOAD", ("tools", "full-redacted")),
        sse=_choice(known, "OPENCLAW_DEBUG_SSE", ("events", "peek")),
    )


def capture_content(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether spans may hold content: what OpenTelemetry's own variable says.

    It is `true`, or in its newer form `SPAN_ONLY` or `SPAN_AND_EVENT`; everything else is no.
    """
    known = os.environ if environment is None else environment
    given = known.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    return given in {"1", "true", "span_only", "span_and_event"}


def _switch(known: Mapping[str, str], name: str) -> bool:
    given = known.get(name, "").strip().lower()
    if given in _ON | _OFF:
        return given in _ON
    msg = f"{given!r} means nothing; set it to 1, or leave it out"
    raise ConfigError(msg, path=name)


def _choice(known: Mapping[str, str], name: str, choices: tuple[T, ...]) -> T | None:
    given = known.get(name, "").strip().lower()
    if given in _OFF:
        return None
    found = next((choice for choice in choices if choice == given), None)
    if found is None:
        msg = (
            f"{given!r} means nothing; set it to {' or '.join(map(repr, choices))}, or leave it out"
        )
        raise ConfigError(msg, path=name)
    return found


def variable(name: str) -> str | None:
    """Return an environment variable; None when unset or empty."""
    return os.environ.get(name) or None


def shell_environment() -> dict[str, str]:
    """Return the variables a shell command gets: places and language, no secrets."""
    return {name: os.environ[name] for name in _SHELL_VARIABLES if name in os.environ}


def loader_environment() -> dict[str, str]:
    """Return the variables without which a Python may not find its own libraries."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def quiet_ray() -> None:
    """Keep Ray from sending usage reports and from SIGTERM, unless its own variables say otherwise.

    It takes a SIGTERM for a crash and prints the stack of the process that is told to stop. Ray has
    no other switches; it reads the variables when it starts.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")


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
