"""Owns where a file is put: the open directory and the name, found the way `read` finds a file.

Above: write, edit, apply_patch. Below: `sources.core.workspace`. Refuses to know: contents.

What is written goes into a fresh file beside the target and is renamed over it. The rename takes
the open directory and a name, so a link swapped in meanwhile is replaced, never followed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from toolcell.sources.core.work import failed, refused
from toolcell.sources.core.workspace import Descent, NotFoundError, WorkspaceRoots, translated

_RETRIES: Final = 3
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TEMPORARY: Final = ".toolcell-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name in an open directory below a root.

    Attributes:
        fd: The directory; closed by who made the place.
        name: The name in it, of a regular file or of nothing.
        shown: Its path for people and later calls.
        names: Its path below its root.
        root: The index of its root.
        info: The file's `lstat`; None when there is nothing yet.
    """

    fd: int
    name: str
    shown: str
    names: tuple[str, ...]
    root: int
    info: os.stat_result | None

    @property
    def key(self) -> tuple[int, tuple[str, ...]]:
        """What tells one place from another."""
        return self.root, self.names

    def check_unchanged(self) -> None:
        """Look again.

        Raises:
            CallError: it is not the file that was found.
        """
        now = _look(self.fd, self.name)
        if not same_file(now, self.info):
            raise changed(self.shown)

    def read(self, limit: int) -> bytes:
        """Return the file's bytes.

        Raises:
            CallError: it is larger than `limit`, or changed since it was found.
        """
        fd = os.open(self.name, _OLD, dir_fd=self.fd)
        with os.fdopen(fd, "rb") as file:
            info = os.fstat(fd)
            if not same_file(info, self.info):
                raise changed(self.shown)
            if info.st_size > limit:
                message = f"{self.shown!r} has {info.st_size} bytes, at most {limit} can be edited."
                raise failed(message)
            return file.read(limit + 1)

    def stage(self, data: bytes) -> str:
        """Write a fresh file beside the target and return its name. It keeps the permissions.

        Raises:
            CallError: the target is read-only; a rename would not mind.
        """
        if self.info is not None and not self.info.st_mode & 0o222:
            message = f"{self.shown!r} is read-only."
            raise failed(message)
        name = f"{_TEMPORARY}{secrets.token_hex(8)}"
        # Without setuid and setgid, as when a file is written in place: the content is another's.
        mode = 0o666 if self.info is None else self.info.st_mode & 0o777
        fd = os.open(name, _NEW, mode, dir_fd=self.fd)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                if self.info is not None:
                    os.fchmod(fd, mode)
                file.flush()
                os.fsync(fd)
        except BaseException:
            self.drop(name)
            raise
        return name

    def commit(self, staged: str) -> None:
        """Put a staged file in the target's place, at one instant."""
        os.rename(staged, self.name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def drop(self, staged: str) -> None:
        """Remove a staged file; nothing happens when it is gone."""
        with suppress(OSError):
            os.unlink(staged, dir_fd=self.fd)

    def remove(self) -> None:
        """Delete the file."""
        os.unlink(self.name, dir_fd=self.fd)

    def keep(self) -> str:
        """Give the file a second name and return it; `commit` of that name brings it back."""
        name = f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            os.link(self.name, name, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except OSError:  # a file system without hard links
            return self.stage(self.read(self.info.st_size if self.info else 0))
        return name

    def set_aside(self) -> str:
        """Give the file another name and return it; `commit` of that name brings it back."""
        name = f"{_TEMPORARY}{secrets.token_hex(8)}"
        os.rename(self.name, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        return name


@contextmanager
def placed(workspace: WorkspaceRoots, path: str, *, make_parents: bool) -> Iterator[Place]:
    """Find where a file is, or would be, and close its directory afterwards.

    Directories that were made on the way are removed again when the work fails.

    Raises:
        NotFoundError: a directory on the way does not exist, and is not to be made.
        CallError: it leads out of the workspace, or something else than a file is there.
    """
    if path.rstrip("./") == "" or path.endswith(("/", "/.", "/..")):
        message = f"path {path!r} names a directory; name a file."
        raise refused(message)
    with _Parents(make=make_parents) as parents:
        descent = workspace.descent(path)
        try:
            place = _descended(descent, path, parents)
        except OSError as error:
            raise _told(path, error) from None
        finally:
            descent.close()
        try:
            yield place
        finally:
            os.close(place.fd)


class _Parents:
    """The directories made on the way to a place. Left with an error, it removes them again."""

    def __init__(self, *, make: bool) -> None:
        self._make = make
        self._made: list[tuple[int, str]] = []

    def add(self, name: str, directory: int, path: str) -> None:
        """Make a directory.

        Raises:
            NotFoundError: directories are not to be made.
        """
        if not self._make:
            message = f"{path!r} does not exist."
            raise NotFoundError(message, code="tool_error", effect="none")
        try:
            os.mkdir(name, dir_fd=directory)
        except FileExistsError:
            return
        self._made.append((os.dup(directory), name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        while self._made:
            directory, name = self._made.pop()
            if error is not None:
                with suppress(OSError):  # not empty: somebody else uses it already
                    os.rmdir(name, dir_fd=directory)
            os.close(directory)


@contextmanager
def told_of(path: str) -> Iterator[None]:
    """Turn errors of the system into what a caller is told."""
    try:
        yield
    except OSError as error:
        raise _told(path, error) from None


def _told(path: str, error: OSError) -> Exception:
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return failed(f"{path!r} may not be written: {os.strerror(error.errno)}.")
    if error.errno == errno.ENOSPC:
        return failed(f"{path!r} cannot be written: the disk is full.")
    return translated(path, error)


def changed(path: str) -> Exception:
    """Return the error for a file that somebody else changed meanwhile."""
    return failed(f"{path!r} was changed by somebody else meanwhile; read it and try again.")


def _descended(descent: Descent, path: str, parents: _Parents) -> Place:
    retries = 0
    while (part := descent.next_part()) is not None:
        if part == "..":
            descent.up()
            continue
        info = _look(descent.here, part)
        if info is not None and stat.S_ISLNK(info.st_mode):
            descent.follow(os.readlink(part, dir_fd=descent.here))
            continue
        if descent.at_last and (info is None or not stat.S_ISDIR(info.st_mode)):
            return _place(descent, path, part, info)
        if info is None:
            parents.add(part, descent.here, path)
        elif not stat.S_ISDIR(info.st_mode):
            message = f"{path!r}: {part!r} is a file, not a directory."
            raise failed(message)
        try:
            descent.enter(part)
        except OSError as error:
            retries += 1
            if error.errno not in {errno.ELOOP, errno.ENOTDIR} or retries > _RETRIES:
                raise
            descent.follow(part)  # became a link meanwhile: look at it again
    message = f"{path!r} is a directory; name a file."
    raise failed(message)


def _place(descent: Descent, path: str, name: str, info: os.stat_result | None) -> Place:
    if info is not None and not stat.S_ISREG(info.st_mode):
        message = f"{path!r} is neither a file nor a directory."
        raise failed(message)
    if name.startswith(_TEMPORARY):
        message = f"{path!r} is a name toolcell keeps for itself; choose another."
        raise refused(message)
    shown, root, names = descent.place_of(name)
    return Place(fd=descent.take_here(), name=name, shown=shown, names=names, root=root, info=info)


def _look(fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def same_file(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether two looks saw the same file in the same state, or both saw nothing."""
    if one is None or other is None:
        return one is other
    return _marks(one) == _marks(other)


def _marks(info: os.stat_result) -> tuple[int, int, int, int]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns
