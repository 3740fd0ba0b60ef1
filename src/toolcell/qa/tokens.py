"""Owns estimating tokens: tiktoken where it is installed and has its data, else bytes by four.

Above: the scenario's report. Below: `tiktoken`, when it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

Estimate = Callable[[bytes], int]


def estimator() -> tuple[str, Estimate]:
    """Return the name of the estimate and the estimate."""
    try:
        encoding = import_module("tiktoken").get_encoding("o200k_base")
    except (ImportError, OSError, ValueError):
        return "bytes/4", lambda data: (len(data) + 3) // 4
    return "tiktoken o200k_base", lambda data: len(
        encoding.encode(data.decode("utf-8", "replace"), disallowed_special=())
    )
