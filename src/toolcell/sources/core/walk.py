"""Owns the walk of a directory tree: by descriptors, in order, within limits, never through a link.

Above: find, grep. Below: `sources.core.workspace`, `ignore`, `globs`. Refuses to know: contents.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal, TypeAlias

from toolcell.sources.core.globs import Glob, NameTest
from toolcell.sources.core.ignore import MAX_FILE_BYTES, IgnoreFile, kept
from toolcell.sources.core.work import Stop
from toolcell.sources.core.workspace import Opened, WorkspaceRoots

MAX_DEPTH: Final = 64
MAX_ENTRIES: Final = 1_000_000
_PART: Final = 1024
"""Entries of a directory between two looks at the clock."""

_DIRECTORY: Final = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
FILE_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)

"""How a file is opened for reading below an open directory: never through a link."""

Kind = Literal["file", "directory", "symlink", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """What a walk gives.

    Attributes:
        glob: Give only entries whose path below the start matches; None for all.
        kind: Give only entries of this kind; None for all.
        hidden: Also go where names start with a dot.
        gitignore: Pass over what `.gitignore` files name, and over `.git`.
        max_depth: Levels below the start; 1 is its own entries.
    """

    glob: Glob | None = None
    kind: Kind | None = None
    hidden: bool = False
    gitignore: bool = True
    max_depth: int = MAX_DEPTH


@dataclass(slots=True)
class Tally:
    """What a walk saw.

    Attributes:
        entries: Entries looked at.
        unreadable: Directories that could not be read, or lie deeper than a walk goes.
        cut_short: Whether it ended before everything was seen.
    """

    entries: int = 0
    unreadable: int = 0
    cut_short: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Entries of one directory that follow one another.

    Attributes:
        fd: The descriptor of the directory; open until the next run is asked for.
        prefix: The path of the directory below the start, `""` or `a/b/`.
        names: The names of the entries, in order.
    """

    fd: int
    prefix: str
    names: list[str]

    @property
    def paths(self) -> list[str]:
        """The paths of the entries below the start."""
        prefix = self.prefix
        return [prefix + name for name in self.names]


@dataclass(slots=True)
class _Level:
    """One directory on the way down. `steps` gives what to yield and where to go down after it."""

    fd: int
    prefix: str
    ignores: tuple[IgnoreFile, ...]
    state: tuple[int, ...]
    steps: Iterator[tuple[list[str], _Below | None]] = field(init=False)


_Below: TypeAlias = tuple[str, tuple[int, ...]]
"""The name of a directory, and the state of the glob in it."""


@dataclass(slots=True)
class Walk:
    """One walk; iterate it once.

    Nothing is done for each entry that can be done for a directory: a tree of 50,000 files is
    walked in a tenth of a second.
    """

    workspace: WorkspaceRoots
    start: Opened
    options: WalkOptions
    stop: Stop
    tally: Tally = field(default_factory=Tally)

    def __iter__(self) -> Iterator[Run]:
        """Give the entries, each directory before what is in it, names in code point order."""
        glob = self.options.glob
        above = self._ignores_above() if self.options.gitignore else ()
        first = self._level(os.dup(self.start.fd), "", above, glob.start() if glob else ())
        levels = [first]
        depth = min(self.options.max_depth, MAX_DEPTH)
        try:
            while levels:
                level = levels[-1]
                step = next(level.steps, None)
                if step is None:
                    os.close(levels.pop().fd)
                    continue
                names, below = step
                if names:
                    yield Run(level.fd, level.prefix, names)
                if self.tally.cut_short:
                    return
                if below is None:
                    continue
                if len(levels) < depth:
                    self._enter(level, below, levels)
                elif depth == MAX_DEPTH:
                    self.tally.unreadable += 1
        finally:
            for level in levels:
                os.close(level.fd)

    def _enter(self, level: _Level, below: _Below, levels: list[_Level]) -> None:
        name, state = below
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=level.fd)
        except OSError:
            self.tally.unreadable += 1
            return
        levels.append(self._level(fd, f"{level.prefix}{name}/", level.ignores, state))

    def _level(
        self, fd: int, prefix: str, ignores: tuple[IgnoreFile, ...], state: tuple[int, ...]
    ) -> _Level:
        gitignore = self.options.gitignore
        try:
            names, kinds = self._scan(fd)
            if gitignore and ".gitignore" in names and ".gitignore" not in kinds:
                text = _read_small(fd, ".gitignore")
                if text:
                    ignores = (*ignores, IgnoreFile(prefix, text))
        except BaseException:
            os.close(fd)
            raise
        if not self.options.hidden:
            names = [name for name in names if name[0] != "."]
        elif gitignore and ".git" in names:
            names.remove(".git")
        names.sort()
        level = _Level(fd, prefix, ignores, state)
        level.steps = self._steps(level, names, kinds)
        return level

    def _scan(self, fd: int) -> tuple[list[str], dict[str, Kind]]:
        """Return the names in a directory, and the kinds of those that are no files."""
        names: list[str] = []
        kinds: dict[str, Kind] = {}
        try:
            with os.scandir(fd) as found:
                while part := list(islice(found, _PART)):
                    names += [entry.name for entry in part]
                    others = [each for each in part if not each.is_file(follow_symlinks=False)]
                    kinds.update((each.name, kind_of(each)) for each in others)
                    self.tally.entries += len(part)
                    if self._over():
                        break
        except OSError:
            self.tally.unreadable += 1
        return names, kinds

    def _over(self) -> bool:
        if self.tally.entries > MAX_ENTRIES or self.stop.check():
            self.tally.cut_short = True
        return self.tally.cut_short

    def _steps(
        self, level: _Level, names: list[str], kinds: Mapping[str, Kind]
    ) -> Iterator[tuple[list[str], _Below | None]]:
        """Give the entries of a directory up to each one to go down into, and the rest."""
        test = self._test(level)
        for start in range(0, len(names), _PART):
            if start and self._over():
                return
            part = names[start : start + _PART]
            others = [name for name in part if name in kinds] if kinds else []
            files = self._files(level, part, kinds, test) if test is not None else []
            if not others:
                yield files, None
                continue
            yield from self._mixed(level, part, set(files), self._others(level, others, kinds))

    def _files(
        self, level: _Level, part: list[str], kinds: Mapping[str, Kind], test: NameTest
    ) -> list[str]:
        """Return the files to give."""
        if kinds:
            part = [name for name in part if name not in kinds]
        if test is not _every:
            part = [name for name in part if test(name)]
        return kept(level.ignores, level.prefix, part)

    def _others(
        self, level: _Level, names: list[str], kinds: Mapping[str, Kind]
    ) -> dict[str, Kind]:
        """Return what is no file and is not passed over."""
        found: dict[str, Kind] = {}
        for directories in (False, True):
            some = [name for name in names if (kinds[name] == "directory") is directories]
            some = kept(level.ignores, level.prefix, some, directories=directories)
            found.update((name, kinds[name]) for name in some)
        return found

    def _mixed(
        self, level: _Level, part: list[str], files: set[str], others: Mapping[str, Kind]
    ) -> Iterator[tuple[list[str], _Below | None]]:
        run: list[str] = []
        for name in part:
            if name in files:
                run.append(name)
            elif name in others:
                accepted, below = self._other(level, name, others[name])
                if accepted:
                    run.append(name)
                if below is not None:
                    yield run, below
                    run = []
        yield run, None

    def _test(self, level: _Level) -> NameTest | None:
        """Return the test for names of files in a directory; None when none is wanted."""
        if self.options.kind not in {None, "file"}:
            return None
        return self.options.glob.last(level.state) if self.options.glob else _every

    def _other(self, level: _Level, name: str, kind: Kind) -> tuple[bool, _Below | None]:
        """Return whether what is no file is given, and where it leads when it leads on."""
        options = self.options
        state = options.glob.step(level.state, name) if options.glob else ()
        accepted = options.kind in {None, kind} and (
            options.glob is None or options.glob.accepts(state)
        )
        leads_on = kind == "directory" and (options.glob is None or any(state))
        return accepted, (name, state) if leads_on else None

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
                        out.append(IgnoreFile("", text, way="/".join(names[index:]) + "/"))
                    deeper = os.open(name, _DIRECTORY, dir_fd=here)
                    os.close(here)
                    here = deeper
            except OSError:
                return tuple(out)
            finally:
                os.close(here)
        return tuple(out)


def open_file(name: str, directory: int) -> int:
    """Open a file of a directory for reading.

    Raises:
        OSError: it is no file (any more).
    """
    fd = os.open(name, FILE_FLAGS, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(name)
    return fd


def _every(_name: str) -> bool:
    return True


def kind_of(entry: os.DirEntry[str]) -> Kind:
    """Return what a directory entry is, links not followed."""
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "symlink" if entry.is_symlink() else "other"
    except OSError:
        return "other"


def _read_small(directory: int, name: str) -> str | None:
    """Return the text of a small file in a directory; None when there is none to read."""
    try:
        fd = open_file(name, directory)
    except OSError:
        return None
    try:
        return os.read(fd, MAX_FILE_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    finally:
        os.close(fd)
