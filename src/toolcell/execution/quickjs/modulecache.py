"""Owns the private disk cache of compiled engines.

Loading compiled code trusts it completely, so the directory belongs to this user alone, every
entry carries the hash of its contents, and an entry that does not match is compiled again.

Above: images. Below: `platformdirs`, the file system. Refuses to know: wasmtime.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path


class ModuleCache:
    """Compiled modules by key, in one directory that only this user may enter.

    Where no such directory can be had, everything is compiled in memory: correct, but slower to
    start.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or user_cache_path("toolcell", appauthor=False) / "quickjs"

    def load(
        self, key: str, compile_it: Callable[[], bytes], usable: Callable[[Path], bool]
    ) -> Path | bytes:
        """Return the file of the compiled module, or its bytes where it cannot be stored.

        An entry that is whole but not `usable` (made on another machine that shares this home, or
        with other settings) is compiled again.
        """
        if not self._private():
            return compile_it()
        path = self._directory / f"{key}.cwasm"
        if self._sound(path) and usable(path):
            return path
        compiled = compile_it()
        try:
            self._store(path, compiled)
        except OSError:
            return compiled
        return path

    def _private(self) -> bool:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._directory.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(status.st_mode):
            return False
        if not hasattr(os, "geteuid"):
            return True
        if status.st_uid != os.geteuid():
            return False
        if status.st_mode & 0o077:
            try:
                self._directory.chmod(0o700)
            except OSError:
                return False
        return True

    def _sound(self, path: Path) -> bool:
        try:
            recorded = path.with_suffix(".sha256").read_text(encoding="ascii").strip()
            return hashlib.sha256(path.read_bytes()).hexdigest() == recorded
        except (OSError, UnicodeDecodeError):
            return False

    def _store(self, path: Path, compiled: bytes) -> None:
        self._replace(path, compiled)
        digest = hashlib.sha256(compiled).hexdigest()
        self._replace(path.with_suffix(".sha256"), digest.encode("ascii"))

    def _replace(self, path: Path, data: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self._directory, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except OSError:
            with suppress(OSError):
                Path(name).unlink()
            raise
