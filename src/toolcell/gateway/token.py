"""Owns the gateway's own token: made once, kept in a file only its owner reads.

Above: `service`, `toolcell approvals`. Below: `config.env`.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from toolcell.config.env import home
from toolcell.config.tokens import usable_token
from toolcell.errors import ConfigError

FILE: Final = "gateway-token"
_BYTES: Final = 32


def token_path() -> Path:
    """Return where the token is kept."""
    return home() / FILE


def kept_token() -> str | None:
    """Return the token of the file; None when there is none yet.

    Raises:
        ConfigError: the file cannot be read, or is empty.
    """
    path = token_path()
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the gateway token {str(path)!r}: {error}"
        raise ConfigError(msg) from error
    try:
        return usable_token(text, path=str(path))
    except ConfigError as error:
        msg = f"{str(path)!r} holds no token of toolcell's; delete it, a new one is made"
        raise ConfigError(msg) from error


def own_token() -> str:
    """Return the token of the file, made when it is not there.

    Raises:
        ConfigError: it can be neither read nor written.
    """
    found = kept_token()
    if found is not None:
        return found
    path = token_path()
    made = secrets.token_urlsafe(_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return kept_token() or own_token()
    except OSError as error:
        msg = f"cannot write the gateway token {str(path)!r}: {error}; set gateway.token"
        raise ConfigError(msg) from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(made + "\n")
    return made
