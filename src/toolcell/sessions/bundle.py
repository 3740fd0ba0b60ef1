"""Owns writing a trajectory to a folder or a `.zip`, and reading one that a stranger may have made.

Above: the CLI. Below: `trajectory`. Refuses to know: what the files mean.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.errors import SessionError
from toolcell.sessions.trajectory import FORMAT, FORMAT_VERSION, MAX_FILE_BYTES, Bundle

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)


def write_bundle(bundle: Bundle, target: Path) -> None:
    """Write the files into a new or empty folder, or into a new `.zip`; readable by the owner only.

    Raises:
        SessionError: the target is in the way or cannot be written.
    """
    try:
        if target.suffix == ".zip":
            _write_zip(bundle, target)
        else:
            _write_folder(bundle, target)
    except FileExistsError as error:
        message = f"{str(target)!r} exists already; name another --out"
        raise SessionError(message) from error
    except OSError as error:
        message = f"cannot write {str(target)!r}: {error.strerror or error}"
        raise SessionError(message) from error


class BundleReader:
    """Reads single files of a bundle, each bounded."""

    def __init__(self, source: Path) -> None:
        """Look at the manifest.

        Raises:
            SessionError: it is no bundle, or one of a newer toolcell.
        """
        self._source = source
        manifest = self.json("manifest.json")
        known = isinstance(manifest, Mapping) and manifest.get("format") == FORMAT
        if not known:
            message = f"{str(source)!r} is no trajectory bundle: its manifest says something else"
            raise SessionError(message)
        version = manifest.get("version")
        if version != FORMAT_VERSION:
            message = (
                f"{str(source)!r} has bundle version {version!r}, this toolcell reads "
                f"{FORMAT_VERSION}; update toolcell"
            )
            raise SessionError(message)
        self.manifest: Mapping[str, Any] = manifest

    def text(self, name: str) -> str:
        """Return a file of the bundle.

        Raises:
            SessionError: it is not there, too large or no UTF-8.
        """
        try:
            data = self._data(name)
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            message = f"cannot read {name!r} of the bundle {str(self._source)!r}: {error}"
            raise SessionError(message) from error
        if len(data) > MAX_FILE_BYTES:
            message = f"{name!r} of the bundle is over {MAX_FILE_BYTES} bytes"
            raise SessionError(message)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{name!r} of the bundle is no UTF-8 text: {error.reason}"
            raise SessionError(message) from error

    def json(self, name: str) -> Any:
        """Return a JSON file of the bundle.

        Raises:
            SessionError: it is not there, or no JSON.
        """
        return _value(self.text(name), name)

    def lines(self, name: str) -> list[Any]:
        """Return the entries of a `.jsonl` file of the bundle.

        Raises:
            SessionError: it is not there, or a line is no JSON.
        """
        return [_value(line, name) for line in self.text(name).split("\n") if line]

    def _data(self, name: str) -> bytes:
        if self._source.is_dir():
            with (self._source / name).open("rb") as file:
                return file.read(MAX_FILE_BYTES + 1)
        with zipfile.ZipFile(self._source) as archive, archive.open(name) as member:
            return member.read(MAX_FILE_BYTES + 1)


def _write_folder(bundle: Bundle, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(target.iterdir()):
        raise FileExistsError(target)
    for name, data in bundle.files.items():
        file = target / name
        file.parent.mkdir(exist_ok=True, mode=0o700)
        file.touch(mode=0o600, exist_ok=False)
        file.write_bytes(data)


def _write_zip(bundle: Bundle, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode=0o600, exist_ok=False)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in bundle.files.items():
            # No time of day: equal sessions make equal bundles.
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def _value(text: str, name: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{name!r} of the bundle is no JSON: {error}"
        raise SessionError(message) from error
