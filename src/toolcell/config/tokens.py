"""Owns what may be the token of a door: the gateway's, and that of `toolcell mcp serve`.

Above: those doors, `toolcell doctor`. Below: `errors`.
"""

from __future__ import annotations

import re
from typing import Final

from toolcell.errors import ConfigError

MIN_TOKEN_CHARS: Final = 16
"""Fewer can be tried one after the other."""

_UNSENT: Final = re.compile(r"[^!-~]")
"""A header carries these not at all, or not as they are; a line's end comes of `$(cat file)`."""


def usable_token(token: str, *, path: str) -> str:
    """Return the token.

    Args:
        token: What clients are to send.
        path: Names the setting in an error.

    Raises:
        ConfigError: it keeps nobody out, or clients cannot send it. The error does not show it.
    """
    if len(token) < MIN_TOKEN_CHARS:
        msg = (
            f"has {len(token)} characters, too few to keep anybody out; give at least "
            f"{MIN_TOKEN_CHARS}, such as what `openssl rand -base64 32` prints"
        )
        raise ConfigError(msg, path=path)
    odd = _UNSENT.search(token)
    if odd is not None:
        what = "a space or an end of line" if odd[0].isspace() else "a character beyond ASCII"
        msg = (
            f"holds {what} at place {odd.start() + 1}, which no header carries; give "
            "letters, digits and signs only"
        )
        raise ConfigError(msg, path=path)
    return token
