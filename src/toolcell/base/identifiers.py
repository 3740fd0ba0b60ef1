"""Owns fresh identifiers: unguessable, prefixed, URL-safe.

Above: runs, sessions, cells, approvals. Below: `uuid`.
"""

from __future__ import annotations

import hashlib
import uuid


def fresh(prefix: str) -> str:
    """Return `<prefix>_<uuid4>`; 122 random bits, so it cannot be guessed."""
    return f"{prefix}_{uuid.uuid4()}"


def digest(*parts: str, length: int = 24) -> str:
    """Return the first `length` hex digits of the SHA-256 of the parts, kept apart by NUL."""
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:length]
