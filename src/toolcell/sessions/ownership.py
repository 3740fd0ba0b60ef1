"""Owns which programs that run agents are alive: each holds a lock on a file of its own.

The system takes the lock away when a program ends, however it ends; no clock and no process number
is asked. The files are beside the session database, whose journal needs one machine anyway.

Above: `store`, `open_runs`. Below: the file system.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolcell.errors import SessionError

_OWNER: Final = re.compile(r"[a-z]{1,20}_[0-9a-f-]{36}")


@contextmanager
def held(database: Path, owner: str) -> Iterator[None]:
    """Be alive as `owner` for the body of the `with` statement.

    Raises:
        SessionError: the file cannot be made.
    """
    _sweep(database)
    file = _locked(_place(database, owner))
    try:
        yield
    finally:
        _place(database, owner).unlink(missing_ok=True)
        os.close(file)


def alive(database: Path, owner: str) -> bool:
    """Whether the program that is `owner` still runs; the file of a dead one is removed."""
    if not _OWNER.fullmatch(owner):
        return True  # whatever that is, it is not ours to take from
    place = _place(database, owner)
    try:
        file = os.open(place, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        place.unlink(missing_ok=True)
        return False
    finally:
        os.close(file)


def _locked(place: Path) -> int:
    while True:
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(place, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            message = (
                f"cannot make {str(place)!r}: {error.strerror}; check the folder's permissions"
            )
            raise SessionError(message) from error
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return file
        os.close(file)  # somebody swept it before it was locked


def _sweep(database: Path) -> None:
    """Remove the files of programs that were killed."""
    for each in database.parent.glob(f"{glob.escape(database.name)}.*.lock"):
        alive(database, each.name.removeprefix(f"{database.name}.").removesuffix(".lock"))


def _place(database: Path, owner: str) -> Path:
    return database.with_name(f"{database.name}.{owner}.lock")
