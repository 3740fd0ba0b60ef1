"""Owns looking for lines in files, many small files at a time.

Above: `sources.core.grepping`. Below: `matching`, `walk`. Refuses to know: arguments, results.

Small files are read one behind the other into one buffer, a line break after each, and the buffer
is searched at once: what is done for each file is to open, read and close it. A second thread
searches one buffer while the next one is filled (RE2 lets go of the interpreter lock). Lines come
in the order of the walk, and where a search ends depends on nothing but the files.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from toolcell.sources.core.matching import Matcher
from toolcell.sources.core.walk import FILE_FLAGS, Walk, open_file
from toolcell.sources.core.work import Stop

CHUNK_BYTES: Final = 4 << 20
"""Of a large file, this much is searched at a time; a longer line is cut."""
SLOT_BYTES: Final = 64 << 10
"""A file that fills this much is a large one."""
BATCH_BYTES: Final = 1 << 20
_FIRST_BATCH: Final = 64 << 10
"""The first buffers are small, so that a search with many matches reads little too much."""
_PROBE: Final = 8192
"""A NUL in the first bytes makes a file binary."""
_NEWLINE: Final = 10
_PAGE: Final = 4096

Buffer: TypeAlias = bytearray | bytes


@dataclass(slots=True)
class Batch:
    """Files in one buffer; the file at an index is `buffer[starts[index]:ends[index]]`.

    Attributes:
        paths: Their paths below the start of the walk.
        skipped: For each file that could not be read, how many files came before it.
        line: The number of the first line of the first file.
    """

    buffer: Buffer
    paths: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    line: int = 1

    @property
    def size(self) -> int:
        """Where the last file ends."""
        return self.ends[-1] if self.ends else 0

    def add(self, path: str, size: int) -> None:
        """Add a file that lies behind the last one and a line break."""
        start = self.ends[-1] + 1 if self.ends else 0
        self.paths.append(path)
        self.starts.append(start)
        self.ends.append(start + size)

    def with_plain_ends(self, binary: Set[int]) -> Batch:
        """Return it with plain line ends, so that `$` is the end of a line of Windows as well.

        Nothing is done for binary files.
        """
        if not self._has_dos_ends(binary):
            return self
        pieces = [
            self.buffer[start:end].replace(b"\r\n", b"\n")
            for start, end in zip(self.starts, self.ends, strict=True)
        ]
        out = Batch(b"\n".join(pieces), skipped=self.skipped, line=self.line)
        for path, piece in zip(self.paths, pieces, strict=True):
            out.add(path, len(piece))
        return out

    def _has_dos_ends(self, binary: Set[int]) -> bool:
        # A single byte is looked for ten times as fast as two.
        position = self.buffer.find(b"\r", 0, self.size)
        while position >= 0:
            index = bisect_right(self.starts, position) - 1
            end = self.ends[index]
            if index not in binary and self.buffer.find(b"\r\n", position, end) >= 0:
                return True
            position = self.buffer.find(b"\r", end, self.size)
        return False

    def binary(self) -> set[int]:
        """Return the indexes of binary files."""
        found: set[int] = set()
        position = self.buffer.find(b"\0", 0, self.size)
        while position >= 0:
            index = bisect_right(self.starts, position) - 1
            if position < self.starts[index] + _PROBE:
                found.add(index)
            position = self.buffer.find(b"\0", self.ends[index], self.size)
        return found


class Taker(Protocol):
    """Takes a line that matches."""

    def __call__(self, batch: Batch, index: int, number: int, first: int, end: int, /) -> None:
        """Take `batch.buffer[first:end]`, line `number` of the file at `index`.

        The buffer is written over after the call.
        """
        ...


@dataclass(slots=True)
class Scan:
    """One search and what it counts.

    Attributes:
        limit: Lines to take at most.
        files: Files searched.
        skipped: Files and directories passed over: binary or unreadable.
        truncated: Whether it ended before everything was searched.
    """

    matcher: Matcher
    stop: Stop
    limit: int
    take: Taker
    taken: int = 0
    files: int = 0
    skipped: int = 0
    truncated: bool = False

    def tree(self, walk: Walk, prefix: str) -> None:
        """Search the files of a walk; `prefix` comes before their paths."""
        joined = self.matcher.joinable
        pending: Future[None] | None = None
        with ThreadPoolExecutor(1, "toolcell-grep") as second:
            for found in _files(walk, prefix, joined=joined):
                if pending is not None:
                    pending.result()
                    pending = None
                if self.truncated:
                    break
                if isinstance(found, Large):
                    self._large(found)
                elif found.size >= BATCH_BYTES:
                    pending = second.submit(self._batch, found)
                else:
                    self._batch(found)  # not worth a thread
            if pending is not None:
                pending.result()
        self.truncated = self.truncated or walk.tally.cut_short
        self.skipped += walk.tally.unreadable

    def file(self, fd: int, path: str) -> None:
        """Search one open file from where it stands."""
        line = 1
        rest = b""
        first = more = True
        while more and not self.truncated:
            data = _chunk(fd)
            more = len(data) == CHUNK_BYTES
            if first and b"\0" in data[:_PROBE]:
                self.skipped += 1
                return
            first = False
            buffer = rest + data
            if more:
                # A line that is still open waits for its end; one longer than a chunk is cut.
                end = buffer.rfind(b"\n") + 1 or (len(buffer) if len(rest) >= CHUNK_BYTES else 0)
                buffer, rest = buffer[:end], buffer[end:]
            if buffer:
                chunk = Batch(buffer, line=line)
                chunk.add(path, len(buffer))
                self._lines(chunk.with_plain_ends(frozenset()), frozenset())
                line += buffer.count(b"\n") if more else 0
        self.files += 1

    def _large(self, found: Large) -> None:
        try:
            fd = open_file(found.name, found.directory)
        except OSError:
            self.skipped += 1
            return
        try:
            self.file(fd, found.path)
        except OSError:
            self.skipped += 1
        finally:
            os.close(fd)

    def _batch(self, batch: Batch) -> None:
        binary = batch.binary()
        if not self.matcher.joinable:
            batch.buffer = batch.buffer[: batch.size]  # where the text ends counts
        last = self._lines(batch.with_plain_ends(binary), binary)
        passed = [each for each in (*binary, *batch.skipped) if last is None or each <= last]
        self.skipped += len(passed)
        searched = len(batch.paths) if last is None else last + 1
        self.files += searched - sum(1 for each in binary if each < searched)

    def _lines(self, batch: Batch, binary: Set[int]) -> int | None:
        """Take the lines that match; return the index of the file it ended at before the end."""
        buffer, starts, ends, size = batch.buffer, batch.starts, batch.ends, batch.size
        index, line, position, counted = 0, batch.line, 0, 0
        while position < size:
            if self.stop.check():
                self.truncated = True
                return index
            match = self.matcher(buffer, position, size)
            if match < 0:
                return None
            if match > ends[index]:
                index = bisect_right(starts, match) - 1
                line, counted = 1, starts[index]
            start, last = starts[index], ends[index]
            if index in binary or not _in_line(buffer, match, start, last):
                position = last + 1
                continue
            if self.taken >= self.limit:
                self.truncated = True
                return index
            first = max(start, buffer.rfind(b"\n", start, match) + 1)
            end = buffer.find(b"\n", match, last)
            end = last if end < 0 else end
            line += buffer.count(b"\n", counted, first)
            counted = first
            self.taken += 1
            self.take(batch, index, line, first, end)
            position = end + 1
        return None


def _in_line(buffer: Buffer, match: int, start: int, end: int) -> bool:
    """Whether a match is in a line of its file: behind the last line break there is none."""
    return match < end or (end > start and buffer[end - 1] != _NEWLINE)


@dataclass(frozen=True, slots=True)
class Large:
    """A file to search by itself; `directory` is open until the next one is asked for."""

    directory: int
    name: str
    path: str


def _files(walk: Walk, prefix: str, *, joined: bool) -> Iterator[Batch | Large]:
    """Read the files of a walk; a batch's buffer is written over after the next batch."""
    full = _FIRST_BATCH
    buffer, spare = _buffer(full), bytearray()
    batch, room, at = Batch(buffer), memoryview(buffer), 0
    for run in walk:
        place = prefix + run.prefix
        for name in run.names:
            size = _read_into(name, run.fd, room[at : at + SLOT_BYTES])
            if 0 <= size < SLOT_BYTES:
                room[at + size] = _NEWLINE
                batch.paths.append(place + name)
                batch.starts.append(at)
                at += size
                batch.ends.append(at)
                at += 1
                if at < full and joined:
                    continue
            elif size < 0:
                batch.skipped.append(len(batch.paths))
                continue
            yield batch
            if size >= SLOT_BYTES:
                yield Large(run.fd, name, place + name)
            full = min(2 * full, BATCH_BYTES)
            spare, buffer = buffer, spare if len(spare) > full else _buffer(full)
            batch, room, at = Batch(buffer), memoryview(buffer), 0
    yield batch


def _buffer(full: int) -> bytearray:
    """Return room for files up to `full` bytes, one more file and its line break."""
    return bytearray(full + SLOT_BYTES + 1)


def _read_into(name: str, directory: int, room: memoryview) -> int:
    """Read a small file; return its size, -1 when it cannot be read.

    What is no file any more is empty, an error, or large: then it is looked at before it is read.
    """
    try:
        fd = os.open(name, FILE_FLAGS, dir_fd=directory)
    except OSError:
        return -1
    try:
        return _filled(fd, room)
    except OSError:
        return -1
    finally:
        os.close(fd)


def _filled(fd: int, room: memoryview) -> int:
    """Read until the end of the file or of the room; return how much."""
    size = os.readv(fd, [room])
    # A network file system may give less than there is, whole pages then.
    while size and size % _PAGE == 0 and size < len(room):
        more = os.readv(fd, [room[size:]])
        if not more:
            break
        size += more
    return size


def _chunk(fd: int) -> bytes:
    """Read the next chunk of a file; one that is not full is the last."""
    parts = [os.read(fd, CHUNK_BYTES)]
    left = CHUNK_BYTES - len(parts[0])
    while parts[-1] and left:
        parts.append(os.read(fd, left))
        left -= len(parts[-1])
    return b"".join(parts)
