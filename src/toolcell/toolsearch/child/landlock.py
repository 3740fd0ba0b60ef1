"""Owns a second fence around the locked thread, where the kernel has Landlock: no writes, no TCP.

It is more than the contract asks for and is never counted on: `lock` is the fence that must hold.

Above: `lock`. Below: `ctypes`. Nothing may be written, made or removed anywhere, nothing bound or
connected over TCP, no abstract socket reached and no process outside signalled.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, Final

_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
# <linux/landlock.h>: write, remove and make in all forms; then what later versions added.
_WRITES: Final = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_BY_VERSION: Final = ((2, 1 << 13), (3, 1 << 14))
_TCP: Final = 0b11
_SCOPES: Final = 0b11
_WITH_TCP, _WITH_SCOPES = 4, 6


def restrict_this_thread(libc: Any) -> bool:
    """Put up the fence for this thread and what it starts; return whether it stands.

    Needs no_new_privs. `libc` is a `ctypes.CDLL` of the C library.
    """
    version = libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:
        return False
    writes = _WRITES | sum(bit for since, bit in _BY_VERSION if version >= since)
    fields = [writes]
    if version >= _WITH_TCP:
        fields.append(_TCP)
    if version >= _WITH_SCOPES:
        fields.append(_SCOPES)
    rules = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.c_char_p(rules), len(rules), 0)
    if ruleset < 0:
        return False
    try:
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)
