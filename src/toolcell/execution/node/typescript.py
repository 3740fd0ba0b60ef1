"""Owns what comes back when TypeScript is made JavaScript: code, or where it does not parse.

Above: code mode, for TypeScript cells (rule 9.5). Below: `guest/typescript.mjs`, which does it.
Refuses to know: types; nothing is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import GuestError


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOutcome:
    """The JavaScript of a TypeScript body, or why there is none.

    Attributes:
        code: The body of an async function; `None` with an error.
        mode: `strip`: types became blanks, so every position is that of the source. `transform`:
            enums or namespaces were rewritten and `source_map` tells the positions.
        source_map: Source map JSON text (version 3) of a transformed body. Its columns on line 1
            count from `map_prefix` on, and those of the source from `source_prefix` on.
        map_prefix: Columns before the body on the first line of the mapped code.
        source_prefix: Columns before the body on the first line of the mapped source.
        error: The diagnostic, with the user's line and column where known.
    """

    code: str | None = None
    mode: Literal["strip", "transform"] | None = None
    source_map: str | None = None
    map_prefix: int = 0
    source_prefix: int = 0
    error: GuestError | None = None


def read_outcome(told: dict[str, Any], filename: str) -> TransformOutcome:
    """Read the supervisor's answer.

    Raises:
        RuntimeUnavailableError: the transformer itself does not work.
    """
    if "broken" in told:
        msg = f"the TypeScript transformer of Node does not work: {told['broken']}"
        raise RuntimeUnavailableError(msg)
    if "error" in told:
        line, column = told.get("line"), told.get("column")
        known = isinstance(line, int) and isinstance(column, int)
        error = GuestError(
            name="SyntaxError",
            message=str(told["error"]),
            stack=f"    at {filename}:{line}:{column}" if known else "",
            line=line if known else None,
            column=column if known else None,
        )
        return TransformOutcome(error=error)
    source_map = told.get("map")
    return TransformOutcome(
        code=str(told["code"]),
        mode="transform" if told["mode"] == "transform" else "strip",
        source_map=source_map if isinstance(source_map, str) else None,
        map_prefix=int(told.get("map_prefix", 0)),
        source_prefix=int(told.get("source_prefix", 0)),
    )
