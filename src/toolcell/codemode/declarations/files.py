"""Owns the table of declaration files of one view: paths, descriptions, contents.

Made once for each catalog and set of visible tools, when a program first mentions `API`; nothing is
written to disk.

Above: the `API` extension. Below: `declarations.remote`, `declarations.native`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcell.base.jsontext import utf8_length
from toolcell.codemode.declarations.native import native_file
from toolcell.codemode.declarations.remote import index_file, server_file
from toolcell.codemode.view import GuestView

INDEX = "index"


@dataclass(frozen=True, slots=True)
class ApiFile:
    """One virtual file."""

    path: str
    description: str
    content: str

    def listed(self) -> dict[str, object]:
        """Return what `API.list` says: path, description and the length in UTF-8 bytes."""
        return {
            "path": self.path,
            "description": self.description,
            "bytes": utf8_length(self.content),
        }


def api_files(view: GuestView) -> tuple[ApiFile, ...]:
    """Return the files of a view: the MCP index and one for each server.

    With the catalog API there is one for each native tool, too. A server called `index` stands in
    the index file itself (BEHAVIOURS 235).
    """
    files: list[ApiFile] = []
    servers = {name: server_file(name, view) for name in view.servers}
    if servers:
        index = index_file(view) + ("\n" + servers.pop(INDEX) if INDEX in servers else "")
        files.append(ApiFile("mcp/index.d.ts", "MCP servers of this run", index))
    files.extend(
        ApiFile(f"mcp/{name}.d.ts", f"functions of MCP.{name}", text)
        for name, text in servers.items()
    )
    if view.guest_api == "catalog":
        files.extend(
            ApiFile(f"tools/{name}.d.ts", f"the function {name}", native_file(name, entry))
            for name, entry in view.native.items()
        )
    return tuple(files)
