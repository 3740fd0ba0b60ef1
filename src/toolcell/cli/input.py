"""Owns text and images from files and standard input: bounded, with errors that say which.

Above: the commands that read something. Below: `base.images`, `errors`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolcell.base.images import MAX_IMAGE_BYTES, base64_text, picture_for_model
from toolcell.errors import ConfigError
from toolcell.protocol.messages import ImagePart

MAX_BYTES = 4 << 20
_SHOWN = 200


def read_text(file: str, *, aside: str = "") -> str:
    """Return the text of a file; `-` is standard input, and a person at it is told so.

    Args:
        file: Its path, or `-`.
        aside: What else can be done, said where the file cannot be read.

    Raises:
        ConfigError: it looks like an option, cannot be read, is too long or is no UTF-8.
    """
    if file == "-":
        if sys.stdin.isatty():
            sys.stderr.write("reading from the terminal; end with Ctrl-D on a line of its own\n")
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    elif file.startswith("-"):
        msg = f"unknown option {file!r}; a file of that name is written ./{file}"
        raise ConfigError(msg)
    else:
        try:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = error.strerror if isinstance(error, OSError) else error
            msg = f"cannot read {file[:_SHOWN]!r}: {why}{aside and '; '}{aside}"
            raise ConfigError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{file!r} is over {MAX_BYTES} bytes"
        raise ConfigError(msg)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{file!r} is not UTF-8 text: {error.reason} at byte {error.start}"
        raise ConfigError(msg) from error


def read_image(file: str) -> ImagePart:
    """Return an image of a file for a message.

    Raises:
        ConfigError: it cannot be read, or no model can be sent it.
    """
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_IMAGE_BYTES + 1)
            size = max(len(data), Path(file).stat().st_size)
    except OSError as error:
        msg = f"cannot read {file!r}: {error.strerror}"
        raise ConfigError(msg) from error
    picture = picture_for_model(data, size)
    if isinstance(picture, str):
        msg = f"{file!r} cannot be shown to a model: {picture}"
        raise ConfigError(msg)
    return ImagePart(base64_text(data), picture.mime_type)
