"""Owns text from a file or from standard input: bounded, UTF-8, with errors that say which.

Above: the commands that read something. Below: `errors`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolcell.errors import ConfigError

MAX_BYTES = 4 << 20


def read_text(file: str) -> str:
    """Return the text of a file; `-` is standard input.

    Raises:
        ConfigError: it looks like an option, cannot be read, is too long or is no UTF-8.
    """
    if file == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    elif file.startswith("-"):
        msg = f"unknown option {file!r}; a file of that name is written ./{file}"
        raise ConfigError(msg)
    else:
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            msg = f"cannot read {file!r}: {error.strerror}"
            raise ConfigError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{file!r} is over {MAX_BYTES} bytes"
        raise ConfigError(msg)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{file!r} is not UTF-8 text: {error.reason} at byte {error.start}"
        raise ConfigError(msg) from error
