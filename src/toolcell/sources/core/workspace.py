"""Owns the workspace roots: every path a file tool opens is opened here, below a root.

Above: the file tools, the shell's working directory. Below: `os`. Refuses to know: contents.

A path is walked from a root one component at a time, each opened relative to the one before
(`openat` with O_NOFOLLOW), and links are read and walked by hand. So `..`, links and a link swapped
in between check and use cannot lead out: there is no check apart from the use. Hard links cannot be
told from files; who can make them inside a root can read the file anyway.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcell.errors import CallError, ConfigError
from toolcell.sources.core.work import failed, refused

MAX_PATH: Final = 4096
MAX_DEPTH: Final = 256
"""Directories below a root; each is held open until the walk is over."""
MAX_LINKS: Final = 40
_RETRIES: Final = 3

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = (
    os.O_RDONLY
    | _NOFOLLOW
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class NotFoundError(CallError):
    """There is nothing at the path; below a root, so this tells nothing about the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Something that was opened below a root.

    Attributes:
        fd: Its descriptor; closed by who opened it.
        shown: Its path for people and later calls: relative in the first root, else absolute.
        names: Its path below its root.
        root: The index of its root.
        info: Its `fstat`.
    """

    fd: int
    shown: str
    names: tuple[str, ...]
    root: int
    info: os.stat_result

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.info.st_mode)

    def child(self, relative: str) -> str:
        """Return the shown path of something below this directory."""
        return relative if self.shown == "." else f"{self.shown}/{relative}"


class WorkspaceRoots:
    """The directories file tools may read; relative paths start at the first one."""

    def __init__(self, roots: Sequence[str | Path]) -> None:
        """Take the roots.

        Raises:
            ConfigError: none is given, one is no directory, or the platform has no `openat`.
        """
        if not roots:
            raise ConfigError("no workspace root is given; name at least one directory")
        if os.open not in os.supports_dir_fd or not _NOFOLLOW:
            raise ConfigError("the file tools need Linux, macOS or another system with openat")
        self._given = tuple(_parts(os.path.abspath(os.fspath(each))) for each in roots)  # noqa: PTH100 - keeps `..` and links as text
        self._real = tuple(_real_directory(Path(each)) for each in roots)

    @property
    def first(self) -> Path:
        """The root relative paths start at."""
        return self._real[0]

    @property
    def roots(self) -> Sequence[Path]:
        """All roots, links resolved."""
        return self._real

    @contextmanager
    def opened(self, path: str) -> Iterator[Opened]:
        """Open a file or directory for reading and close it afterwards.

        Raises:
            NotFoundError: there is nothing at the path.
            CallError: it leads out of the workspace, is neither file nor directory, or cannot be
                opened.
        """
        found = self._open(path)
        try:
            yield found
        finally:
            os.close(found.fd)

    @contextmanager
    def directory(self, path: str) -> Iterator[Opened]:
        """Open a directory; raises like `opened`, and when the path names a file."""
        with self.opened(path) as found:
            if not found.is_directory:
                msg = f"{path!r} is not a directory."
                raise failed(msg)
            yield found

    @contextmanager
    def file(self, path: str) -> Iterator[Opened]:
        """Open a regular file; raises like `opened`, and when the path names a directory."""
        with self.opened(path) as found:
            if found.is_directory:
                msg = f"{path!r} is a directory; list it with ls."
                raise failed(msg)
            yield found

    @contextmanager
    def root_directory(self, index: int) -> Iterator[int]:
        """Open a root itself."""
        fd = os.open(self._real[index], _DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def real_path(self, found: Opened) -> Path:
        """Return where something is, for what cannot work on a descriptor."""
        return self._real[found.root].joinpath(*found.names)

    def locate(self, path: str) -> tuple[int, list[str]] | None:
        """Return the root an absolute path lies below by its text, and the rest; else None."""
        parts = _parts(path)
        best: tuple[int, int] | None = None
        for prefixes in (self._given, [_parts(str(each)) for each in self._real]):
            for index, prefix in enumerate(prefixes):
                longer = best is None or len(prefix) > best[1]
                if parts[: len(prefix)] == prefix and longer:
                    best = (index, len(prefix))
        return None if best is None else (best[0], parts[best[1] :])

    def shown(self, root: int, names: Sequence[str]) -> str:
        """Return the path people and later calls use."""
        if root == 0:
            return "/".join(names) or "."
        return str(self._real[root].joinpath(*names))

    def descent(self, path: str) -> Descent:
        """Return a walk that has not begun, for `placing`, which ends it one step earlier.

        Raises:
            CallError: the path leads out by its text alone.
        """
        return Descent(self, path, *self._start(path))

    def _open(self, path: str) -> Opened:
        descent = self.descent(path)
        try:
            return descent.run()
        except OSError as error:
            raise translated(path, error) from None

    def _start(self, path: str) -> tuple[int, list[str]]:
        if "\0" in path:
            msg = f"path {path[:80]!r} contains a NUL character."
            raise refused(msg)
        if len(path) > MAX_PATH:
            msg = f"path {path[:80]!r}… has {len(path)} characters, at most {MAX_PATH}."
            raise refused(msg)
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            msg = f"path {path[:80]!r} holds a lone surrogate, which no name of a file has."
            raise refused(msg) from None
        if not path.startswith("/"):
            return 0, path.split("/")
        located = self.locate(path)
        if located is None:
            roots = ", ".join(repr(str(each)) for each in self._real)
            msg = f"path {path!r} is outside the workspace. It may lie below: {roots}."
            raise refused(msg)
        return located


class Descent:
    """One walk from a root to what a path names. Holds the descriptors of the way down."""

    def __init__(self, roots: WorkspaceRoots, path: str, root: int, parts: list[str]) -> None:
        self._roots = roots
        self._path = path
        self._root = root
        self._pending = deque(parts)
        self._fds = [os.open(roots.roots[root], _DIRECTORY)]
        self._names: list[str] = []
        self._links = 0
        self._retries = 0

    @property
    def here(self) -> int:
        """The descriptor of the directory the walk has come to."""
        return self._fds[-1]

    def next_part(self) -> str | None:
        """Return the next component that means something; None at the end."""
        while self._pending:
            part = self._pending.popleft()
            if part not in {"", "."}:
                return part
        return None

    @property
    def at_last(self) -> bool:
        """Whether nothing but empty components is left."""
        return all(each in {"", "."} for each in self._pending)

    def enter(self, part: str) -> None:
        """Go into a directory; raises OSError when it is none (any more)."""
        if len(self._names) >= MAX_DEPTH:
            msg = f"path {self._path[:80]!r}… is more than {MAX_DEPTH} directories deep."
            raise refused(msg)
        self._fds.append(os.open(part, _DIRECTORY | _NOFOLLOW, dir_fd=self.here))
        self._names.append(part)

    def take_here(self) -> int:
        """Hand over the descriptor of the directory the walk has come to."""
        return self._fds.pop()

    def place_of(self, name: str) -> tuple[str, int, tuple[str, ...]]:
        """Return the shown path, the root and the names of something in this directory."""
        names = (*self._names, name)
        return self._roots.shown(self._root, names), self._root, names

    def close(self) -> None:
        """Close every descriptor of the way down."""
        while self._fds:
            os.close(self._fds.pop())

    def run(self) -> Opened:
        """Go all the way and open what is there. Can be done once."""
        try:
            while self._pending:
                part = self._pending.popleft()
                if part in {"", "."}:
                    continue
                if part == "..":
                    self.up()
                    continue
                file = self._enter(part)
                if file is not None:
                    return self._result(file)
            return self._result(self._fds.pop())
        finally:
            self.close()

    def _result(self, fd: int) -> Opened:
        return Opened(
            fd=fd,
            shown=self._roots.shown(self._root, self._names),
            names=tuple(self._names),
            root=self._root,
            info=os.fstat(fd),
        )

    def up(self) -> None:
        """Take one step back; never above the root."""
        if len(self._fds) == 1:
            raise self._outside()
        os.close(self._fds.pop())
        self._names.pop()

    def _enter(self, part: str) -> int | None:
        """Go into a directory or link; return the descriptor of a file, which ends the walk."""
        here = self._fds[-1]
        mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            self.follow(os.readlink(part, dir_fd=here))
            return None
        try:
            if stat.S_ISDIR(mode):
                self.enter(part)
                return None
            if not stat.S_ISREG(mode):
                msg = f"{self._path!r} is neither a file nor a directory."
                raise failed(msg)
            if not self.at_last:
                msg = f"{self._path!r}: {part!r} is a file, not a directory."
                raise failed(msg)
            fd = os.open(part, _FILE, dir_fd=here)
        except OSError as error:
            self._retry(part, error)
            return None
        self._names.append(part)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            msg = f"{self._path!r} changed while it was opened; try again."
            raise failed(msg)
        return fd

    def _retry(self, part: str, error: OSError) -> None:
        """Look again at a component that became a link between the look and the opening."""
        self._retries += 1
        if error.errno not in {errno.ELOOP, errno.ENOTDIR} or self._retries > _RETRIES:
            raise error
        self._pending.appendleft(part)

    def follow(self, target: str) -> None:
        """Go on where a link points."""
        self._links += 1
        if self._links > MAX_LINKS:
            msg = f"{self._path!r} goes through more than {MAX_LINKS} links."
            raise failed(msg)
        if not target.startswith("/"):
            self._pending.extendleft(reversed(target.split("/")))
            return
        located = self._roots.locate(target)
        if located is None:
            raise self._outside()
        self._root, parts = located
        fresh = os.open(self._roots.roots[self._root], _DIRECTORY)
        for fd in self._fds:
            os.close(fd)
        self._fds = [fresh]
        self._names = []
        self._pending.extendleft(reversed(parts))

    def _outside(self) -> CallError:
        return refused(f"path {self._path!r} leads outside the workspace.")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _real_directory(path: Path) -> Path:
    try:
        real = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        msg = f"workspace root {str(path)!r} cannot be used: {error}"
        raise ConfigError(msg) from error
    if not real.is_dir():
        msg = f"workspace root {str(path)!r} is not a directory"
        raise ConfigError(msg)
    return real


def translated(path: str, error: OSError) -> CallError:
    """Return what a caller is told of an error of the system."""
    match error.errno:
        case errno.ENOENT:
            message = f"{path!r} does not exist."
            return NotFoundError(message, code="tool_error", effect="none")
        case errno.EACCES | errno.EPERM:
            return failed(f"{path!r} may not be read: permission denied.")
        case errno.ENOTDIR:
            return failed(f"{path!r} goes through a file as if it were a directory.")
        case errno.ELOOP:
            return failed(f"{path!r} changed while it was opened; try again.")
        case errno.ENAMETOOLONG:
            return refused(f"{path[:80]!r}… has a name that is too long.")
        case _:
            return failed(f"{path!r} cannot be opened: {error.strerror or error}.")
