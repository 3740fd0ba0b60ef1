"""Owns what a relative path of a config file starts at: the folder of that file.

So a file means the same wherever toolcell is started. Paths of a tree that comes from no file, as
the library's do, start at the current folder, as they do in any program.

Above: the tree. Below: pydantic, `config.env`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, ValidationInfo

from toolcell.config.env import home

_FOLDER: Final = "folder"


def file_context(folder: Path | None) -> dict[str, Path] | None:
    """Return what the tree's validators are told of the file: its folder."""
    return None if folder is None else {_FOLDER: folder.expanduser().absolute()}


def anchored(path: str, info: ValidationInfo) -> str:
    """Return a path of a config file as an absolute one; `~` is expanded where it is used."""
    if not path.strip():
        raise ValueError("must not be empty; leave the key out for its default")
    folder = (info.context or {}).get(_FOLDER)
    return path if folder is None or path.startswith("~") else str(folder / path)


def object_name(text: str) -> tuple[str, str] | None:
    """Return module and attribute of `module:attribute`; None for anything else, such as a path."""
    module, colon, attribute = text.rpartition(":")
    named = colon and all(part.isidentifier() for part in module.split("."))
    return (module, attribute) if named and attribute.isidentifier() else None


def server_paths(servers: dict[str, dict[str, Any]], info: ValidationInfo) -> dict[str, Any]:
    """Return MCP servers with `cwd`, and a `command` that is a path, as absolute paths.

    A command without a slash is looked up on PATH. What `args` mean only the program knows.
    `~` is expanded here: the program is started without a shell.
    """
    return {name: _server(server, info) for name, server in servers.items()}


def _server(server: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    found = dict(server)
    for key in ("cwd", "command"):
        given = found.get(key)
        if isinstance(given, str) and given and (key == "cwd" or "/" in given):
            found[key] = str(Path(anchored(given, info)).expanduser())
    return found


def _plugin(text: str, info: ValidationInfo) -> str:
    return text if object_name(text) is not None else anchored(text, info)


def _workspace(path: str, info: ValidationInfo) -> str:
    """Refuse a folder with the token and the sessions in it, unless it is named in full."""
    found = anchored(path, info)
    kept = home().resolve()
    if found != path and kept.is_relative_to(Path(found).resolve()):
        message = (
            f"{path!r} is {found!r}, with the folder {str(kept)!r} in it, where toolcell keeps its "
            "token and sessions; leave it out to work in the folder toolcell is started in"
        )
        raise ValueError(message)
    return found


FilePath: TypeAlias = Annotated[str, AfterValidator(anchored)]
"""A path of a file or folder."""
PluginPath: TypeAlias = Annotated[str, AfterValidator(_plugin)]
"""The same, or `module:attribute`."""
WorkspacePath: TypeAlias = Annotated[str, AfterValidator(_workspace)]
"""The folder of an agent's tools."""
