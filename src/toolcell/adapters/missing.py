"""Owns the error for an optional package that is not there.

Above: the adapters. Below: `errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolcell.errors import ToolcellError


@contextmanager
def needs(package: str) -> Iterator[None]:
    """Turn a failed import inside the block into an error that names the package to install.

    Raises:
        ToolcellError: the import failed.
    """
    try:
        yield
    except ImportError as error:
        msg = f"this adapter needs {package}: run `pip install {package}` ({error})"
        raise ToolcellError(msg, code="missing_package") from error
