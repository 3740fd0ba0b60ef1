"""Owns tool results: content blocks a model reads, and `details`, the JSON value guest code reads.

Above: tools, the gate, sources. Below: `base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias


class Missing:
    """The type of `MISSING`: a result that has no `details` at all (unlike `details: null`)."""

    def __repr__(self) -> str:
        """Name the constant."""
        return "MISSING"

    def __reduce__(self) -> str:
        """Stay the one value there is, in another process, too."""
        return "MISSING"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class TextContent:
    """Text for the model."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's JSON."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image for the model; `data` is base64. It never crosses the guest bridge."""

    data: str
    mime_type: str

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's JSON."""
        return {"type": "image", "data": self.data, "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class OtherContent:
    """A block this version has no class for, kept as the plain JSON it arrived as."""

    block: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the block."""
        return dict(self.block)


Content: TypeAlias = TextContent | ImageContent | OtherContent


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gives back.

    Attributes:
        content: Blocks for a model that called the tool directly.
        details: Plain JSON for guest code; `MISSING` when the tool has none.
        is_error: The tool itself reports failure, as a value.
        untrusted: It came from the network (MCP, web): wrapped where a model reads it (rule 4.9).
        terminate: The turn is over with this call: the model need not be asked again. Only local
            code may say so, and never of a failure.
    """

    content: tuple[Content, ...] = ()
    details: Any = MISSING
    is_error: bool = False
    untrusted: bool = False
    terminate: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return `{content, details?, isError?, terminate?}`."""
        out: dict[str, Any] = {"content": [block.to_dict() for block in self.content]}
        if self.details is not MISSING:
            out["details"] = self.details
        if self.is_error:
            out["isError"] = True
        if self.terminate:
            out["terminate"] = True
        return out
