"""Owns the walk of a directory tree: by descriptors, in order, within limits, never through a link.

Above: find, grep. Below: `sources.core.workspace`, `ignore`, `globs`. Refuses to know: contents.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from toolcell.sources.core.globs import Glob
from toolcell.sources.core.ignore import MAX_FILE_BYTES, IgnoreFile, is_ignored
from toolcell.sources.core.work import Stop
from toolcell.sources.core.workspace import Opened, WorkspaceRoots

MAX_DEPTH: Final = 64
MAX_ENTRIES: Final = 1_000_000
_CHECK_EVERY: Final = 256

_DIRECTORY: Final = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_FILE: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)

Kind = Literal["file", "directory", "symlink", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """What a walk gives.

    Attributes:
        glob: Give only entries whose path below the start matches; None for all.
        hidden: Also go where names start with a dot.
        gitignore: Pass over what `.gitignore` files name, and over `.git`.
        max_depth: Levels below the start; 1 is its own entries.
    """

    glob: Glob | None = None
    hidden: bool = False
    gitignore: bool = True
    max_depth: int = MAX_DEPTH


@dataclass(slots=True)
class Tally:
    """What a walk saw."""

    entries: int = 0
    unreadable: int = 0
    cut_short: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Something below the start; `parent` is the descriptor of its directory while it is given."""

    name: str
    path: str
    kind: Kind
    parent: int

    def open_file(self) -> tuple[int, int]:
        """Open it for reading; return the descriptor and its size.

        Raises:
            OSError: it is no file (any more).
        """
        fd = os.open(self.name, _FILE, dir_fd=self.parent)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise FileNotFoundError(self.path)
        return fd, info.st_size


@dataclass(slots=True)
class _Level:
    """One directory on the way down."""

    fd: int
    prefix: str
    entries: Iterator[tuple[str, Kind]]
    ignores: tuple[IgnoreFile, ...]
    state: tuple[int, ...]


@dataclass(slots=True)
class Walk:
    """One walk; iterate it once."""

    workspace: WorkspaceRoots
    start: Opened
    options: WalkOptions
    stop: Stop
    tally: Tally = field(default_factory=Tally)

    def __iter__(self) -> Iterator[Entry]:
        """Give the entries, each directory before what is in it, names in code point order."""
        glob = self.options.glob
        above = self._ignores_above() if self.options.gitignore else ()
        first = self._level(os.dup(self.start.fd), "", above, glob.start() if glob else ())
        levels = [first]
        try:
            while levels:
                level = levels[-1]
                found = next(level.entries, None)
                if found is None:
                    os.close(levels.pop().fd)
                    continue
                if self._over():
                    return
                yield from self._visit(level, *found, levels)
        finally:
            for level in levels:
                os.close(level.fd)

    def _over(self) -> bool:
        self.tally.entries += 1
        due = self.tally.entries % _CHECK_EVERY == 0
        if self.tally.entries > MAX_ENTRIES or (due and self.stop.check()):
            self.tally.cut_short = True
        return self.tally.cut_short

    def _visit(self, level: _Level, name: str, kind: Kind, levels: list[_Level]) -> Iterator[Entry]:
        """Give the entry if it matches, and go into it if it is a directory worth it."""
        options = self.options
        if name[0] == "." and not options.hidden:
            return
        path = level.prefix + name
        is_directory = kind == "directory"
        if options.gitignore and self._passes_over(level, name, path, is_directory=is_directory):
            return
        state = options.glob.step(level.state, name) if options.glob else ()
        if options.glob is None or options.glob.accepts(state):
            yield Entry(name, path, kind, level.fd)
        if not is_directory or len(levels) >= min(options.max_depth, MAX_DEPTH):
            return
        if options.glob is not None and not any(state):
            return
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=level.fd)
        except OSError:
            self.tally.unreadable += 1
            return
        levels.append(self._level(fd, f"{path}/", level.ignores, state))

    def _passes_over(self, level: _Level, name: str, path: str, *, is_directory: bool) -> bool:
        if name == ".git":
            return True
        return bool(level.ignores) and is_ignored(
            level.ignores, name, path, is_directory=is_directory
        )

    def _level(
        self, fd: int, prefix: str, ignores: tuple[IgnoreFile, ...], state: tuple[int, ...]
    ) -> _Level:
        names: list[tuple[str, Kind]] = []
        try:
            with os.scandir(fd) as found:
                for index, entry in enumerate(found):
                    names.append((entry.name, kind_of(entry)))
                    if index % 4096 == 4095 and (self.stop.check() or index > MAX_ENTRIES):
                        self.tally.cut_short = True
                        break
        except OSError:
            self.tally.unreadable += 1
        except BaseException:
            os.close(fd)
            raise
        names.sort()
        if self.options.gitignore and (".gitignore", "file") in names:
            text = _read_small(fd, ".gitignore")
            if text:
                ignores = (*ignores, IgnoreFile(prefix, text))
        return _Level(fd, prefix, iter(names), ignores, state)

    def _ignores_above(self) -> tuple[IgnoreFile, ...]:
        """Return the rules of the directories from the root down to the start's parent."""
        out: list[IgnoreFile] = []
        names = self.start.names
        with self.workspace.root_directory(self.start.root) as root:
            here = os.dup(root)
            try:
                for index, name in enumerate(names):
                    text = _read_small(here, ".gitignore")
                    if text:
                        out.append(_Above("/".join(names[index:]) + "/", text))
                    deeper = os.open(name, _DIRECTORY, dir_fd=here)
                    os.close(here)
                    here = deeper
            except OSError:
                return tuple(out)
            finally:
                os.close(here)
        return tuple(out)


class _Above(IgnoreFile):
    """Rules of a directory above the start; `way` leads from there to the start."""

    __slots__ = ("_way",)

    def __init__(self, way: str, text: str) -> None:
        super().__init__("", text)
        self._way = way

    def decide(self, name: str, path: str, *, is_directory: bool) -> bool | None:
        return super().decide(name, self._way + path, is_directory=is_directory)


def kind_of(entry: os.DirEntry[str]) -> Kind:
    """Return what a directory entry is, links not followed."""
    try:
        if entry.is_symlink():
            return "symlink"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"


def _read_small(directory: int, name: str) -> str | None:
    """Return the text of a small file in a directory; None when there is none to read."""
    try:
        fd = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.read(fd, MAX_FILE_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    finally:
        os.close(fd)
